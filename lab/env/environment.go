// SPDX-License-Identifier: Apache-2.0
// Copyright the talos-proxmox authors.

package env

import (
	"encoding/base64"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/talos-proxmox/talos-proxmox/lab/daemon"
	"github.com/talos-proxmox/talos-proxmox/lab/tools"
)

// Environment maps the variables of a command that runs in a lab to their values.
type Environment map[string]string

// New returns the environment own ("NAME=value" each, as from [os.Environ]) with the lab as its environment. A
// passphrase and a Proxmox VE token that own has stay.
func New(lab daemon.Info, bin tools.Dir, own []string) (Environment, error) {
	e := Environment{}
	for _, kv := range own {
		if k, v, ok := strings.Cut(kv, "="); ok {
			e[k] = v
		}
	}

	state := filepath.Join(lab.Site, "pulumi-state")
	if err := os.MkdirAll(state, 0o700); err != nil {
		return nil, fmt.Errorf("making the state's directory: %w", err)
	}
	// Without the files of metadata beside those of the state: Pulumi writes them in place, so that a kill
	// leaves empty ones, and then nobody can read the state.
	e["PULUMI_BACKEND_URL"] = "file://" + filepath.ToSlash(state) + "?metadata=skip"
	if e["PULUMI_CONFIG_PASSPHRASE_FILE"] == "" {
		e.setDefault("PULUMI_CONFIG_PASSPHRASE", "lab")
	}
	e["PULUMI_DISABLE_AUTOMATIC_PLUGIN_ACQUISITION"] = "true"
	e["PULUMI_SKIP_UPDATE_CHECK"] = "true"

	for _, name := range []string{"HTTPS_PROXY", "HTTP_PROXY", "https_proxy", "http_proxy"} {
		e[name] = lab.Gateway
	}
	for _, name := range []string{"NO_PROXY", "no_proxy"} {
		e[name] = "localhost,127.0.0.1,::1"
	}
	for _, name := range []string{"ALL_PROXY", "all_proxy"} { // it would lead past the lab
		delete(e, name)
	}
	// What Go reads, and what curl, git, Python and Node read in its place.
	for _, name := range []string{"SSL_CERT_FILE", "CURL_CA_BUNDLE", "GIT_SSL_CAINFO", "REQUESTS_CA_BUNDLE", "NODE_EXTRA_CA_CERTS"} {
		e[name] = lab.Bundle
	}
	e["LAB_SITE"] = lab.Site
	// Some of the lab's charts are stand-ins: they must not stay where real ones are kept.
	e["HELM_CACHE_HOME"] = filepath.Join(lab.Site, "helm")
	e["TALOS_PROXMOX_CHART_CACHE"] = filepath.Join(lab.Site, "charts")
	// They are packed here, so that no archive has the digest of the repository's.
	e["TALOS_PROXMOX_CHART_LOCK"] = filepath.Join(lab.Site, "charts.lock.yaml")
	e.openGit(lab)
	e.setDefault("PROXMOX_VE_API_TOKEN", lab.Token)
	e["PROXMOX_VE_SSH_SOCKS5_SERVER"] = lab.Socks // its SSH knows no other proxy
	e.setDefault("GIT_SSH_COMMAND", fmt.Sprintf("ssh -o ProxyCommand='%s connect %%h %%p'", bin.Path(tools.Lab)))
	e["PATH"] = string(bin) + string(os.PathListSeparator) + e["PATH"]

	return e, nil
}

// openGit lets git write to the site's git hosts. The header is for every host, of which there is none
// but the site's.
func (e Environment) openGit(lab daemon.Info) {
	e.setDefault("LAB_GIT_TOKEN", lab.GitToken)
	if e["GIT_CONFIG_COUNT"] != "" {
		return // the user's own
	}
	e["GIT_CONFIG_COUNT"] = "1"
	e["GIT_CONFIG_KEY_0"] = "http.extraHeader"
	e["GIT_CONFIG_VALUE_0"] = "Authorization: Basic " + base64.StdEncoding.EncodeToString([]byte("lab:"+lab.GitToken))
}

// setDefault sets what the user has not.
func (e Environment) setDefault(name, value string) {
	if _, ok := e[name]; !ok {
		e[name] = value
	}
}

// List returns the environment as commands take it, sorted.
func (e Environment) List() []string {
	var all []string
	for _, k := range slices.Sorted(maps.Keys(e)) {
		all = append(all, k+"="+e[k])
	}

	return all
}

// LookPath finds a command on the environment's PATH.
func (e Environment) LookPath(name string) (string, error) {
	if strings.Contains(name, string(filepath.Separator)) {
		return name, nil
	}
	for _, dir := range filepath.SplitList(e["PATH"]) {
		file := filepath.Join(dir, name)
		if info, err := os.Stat(file); err == nil && !info.IsDir() && info.Mode()&0o111 != 0 {
			return file, nil
		}
	}

	return "", fmt.Errorf("there is no command %q on the PATH; `make tools` builds the project's own", name)
}
