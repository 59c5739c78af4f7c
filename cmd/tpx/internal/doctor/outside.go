// SPDX-License-Identifier: Apache-2.0
// Copyright the talos-proxmox authors.

package doctor

import (
	"crypto/tls"
	"crypto/x509"
	"encoding/base64"
	"fmt"
	"net/http"
	"net/url"
	"strings"

	"github.com/talos-proxmox/talos-proxmox/internal/image"
	"github.com/talos-proxmox/talos-proxmox/spec"
)

// plainSchematic is the factory's id of an image without extensions: every factory knows it.
const plainSchematic = "376567988ad370138ad8b2698212367b8edcb69b5fd68c80be1f2ec7d603b4ba"

// factory finds whether the Image Factory, or its mirror, has the version, and whether hosts reach it.
func (e *examiner) factory() error {
	told := map[string]bool{}
	for _, n := range e.Config.Nodes {
		img, host := e.Config.Image(n), spec.Value(n.Host)
		plain := img
		plain.Extensions = nil
		address := image.DownloadURL(plain, plainSchematic, spec.Value(e.Config.Talos.Version))
		if told[host+address] {
			continue
		}
		told[host+address] = true
		if img.ISOMirror == nil && !told[address] {
			told[address] = true
			if code, err := e.request(address, nil, nil); err != nil {
				e.found("image.factoryUrl", "the Image Factory does not answer: "+reason(err), "see that "+address+" can be fetched from here")
			} else if code == http.StatusNotFound {
				e.found("talos.version", "the Image Factory has no image of this version",
					"see "+spec.Value(img.FactoryURL)+"/versions")
			}
		}
		if e.client == nil || !e.up[host] {
			continue
		}
		if err := e.get("/nodes/"+url.PathEscape(host)+"/query-url-metadata?url="+url.QueryEscape(address), nil); err != nil {
			e.found("proxmox.hosts."+host, "the host does not reach "+address+": "+reason(err),
				"hosts download images themselves: give the host a way out, or name a mirror as image.isoMirror")
		}
	}

	return nil
}

// mirrors finds registry mirrors that do not answer as registries.
func (e *examiner) mirrors() error {
	for _, name := range sortedKeys(e.Config.Talos.Registries) {
		for i, endpoint := range e.Config.Talos.Registries[name].Endpoints {
			setting := fmt.Sprintf("talos.registries.%s.endpoints[%d]", name, i)
			u, err := url.Parse(endpoint)
			if err != nil {
				continue // a rule refuses it
			}
			code, err := e.request(u.Scheme+"://"+u.Host+"/v2/", nil, nil)
			switch {
			case err != nil:
				e.warn(setting, u.Host+" does not answer from here: "+reason(err),
					"see that nodes reach it, and trust its certificate (talos.registries.…)")
			case code >= http.StatusInternalServerError:
				e.warn(setting, fmt.Sprintf("%s answers %d to /v2/", u.Host, code), "see that the registry runs")
			case code != http.StatusOK && code != http.StatusUnauthorized && code != http.StatusForbidden:
				e.found(setting, fmt.Sprintf("%s answers %d to /v2/: that is no registry", u.Host, code), "write the registry's address")
			}
		}
	}

	return nil
}

// git finds whether the repository can be read with the credentials that the stack has.
func (e *examiner) git() error {
	g := e.Config.GitOps
	if g.Git.URL == nil {
		return nil
	}
	u, err := url.Parse(*g.Git.URL)
	if err != nil {
		return skipf("git.url is no URL")
	}
	if u.Scheme == "ssh" {
		return e.gitSSH(u, g.Git)
	}

	return e.gitHTTP(u, g.Git)
}

func (e *examiner) gitHTTP(u *url.URL, g spec.Git) error {
	header := http.Header{}
	if g.Auth != nil && g.Auth.Password != nil {
		name := spec.Value(g.Auth.Username)
		header.Set("Authorization", "Basic "+base64.StdEncoding.EncodeToString([]byte(name+":"+g.Auth.Password.Reveal())))
	}
	var trust *tls.Config
	if g.Auth != nil && g.Auth.CA != nil {
		trust = &tls.Config{RootCAs: x509.NewCertPool(), MinVersion: tls.VersionTLS12}
		trust.RootCAs.AppendCertsFromPEM([]byte(*g.Auth.CA))
	}
	code, err := e.request(strings.TrimSuffix(u.String(), "/")+"/info/refs?service=git-upload-pack", trust, header)
	switch {
	case err != nil:
		e.found("gitops.git.url", u.Host+" does not answer: "+reason(err), "see that it can be reached from here, and from the nodes")
	case code == http.StatusUnauthorized || code == http.StatusForbidden:
		if g.Auth != nil && spec.Value(g.Auth.Type) == "githubApp" {
			return skipf("a GitHub App's token is made by the controller alone")
		}
		e.found("gitops.git.auth", fmt.Sprintf("the git host answers %d: the credentials may not read the repository", code),
			"give a token that may")
	case code == http.StatusNotFound:
		e.found("gitops.git.url", "the git host knows no such repository, or does not show it without credentials",
			"see its address, and gitops.git.auth")
	}

	return nil
}
