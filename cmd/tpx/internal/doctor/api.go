// SPDX-License-Identifier: Apache-2.0
// Copyright the talos-proxmox authors.

package doctor

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"strconv"
	"strings"
	"time"

	"github.com/talos-proxmox/talos-proxmox/internal/proxmox"
	"github.com/talos-proxmox/talos-proxmox/spec"
)

// unverified trusts everybody: it is for questions that carry nothing secret.
func unverified() *tls.Config {
	return &tls.Config{InsecureSkipVerify: true, MinVersion: tls.VersionTLS12}
}

// request makes a GET request and returns the answer's status.
func (e *examiner) request(address string, trust *tls.Config, header http.Header) (int, error) {
	call, cancel := context.WithTimeout(e.ctx, e.Timeout)
	defer cancel()
	req, err := http.NewRequestWithContext(call, http.MethodGet, address, nil)
	if err != nil {
		return 0, err
	}
	if header != nil {
		req.Header = header
	}
	transport := http.DefaultTransport.(*http.Transport).Clone()
	transport.TLSClientConfig, transport.DisableKeepAlives = trust, true
	client := http.Client{Transport: transport, CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse }}
	res, err := client.Do(req)
	if err != nil {
		return 0, err
	}
	_ = res.Body.Close()

	return res.StatusCode, nil
}

// api finds whether anybody answers at the API's address.
func (e *examiner) api() error {
	if e.Access.Endpoint == "" {
		e.found("proxmox.endpoint", "there is no endpoint", "write https://<host>:8006, or set PROXMOX_VE_ENDPOINT")

		return nil
	}
	if _, err := e.request(e.Access.Endpoint, unverified(), nil); err != nil {
		e.found("proxmox.endpoint", "nothing answers at "+e.Access.Endpoint+": "+reason(err),
			"see that the name resolves, that port 8006 is open from here, and that HTTPS_PROXY and NO_PROXY are as you need them")
		e.Access.Endpoint = ""
	}

	return nil
}

// reason returns the cause of a failed request, without the method and the address.
func reason(err error) string {
	var at *url.Error
	if errors.As(err, &at) {
		return at.Err.Error()
	}

	return err.Error()
}

// tls finds whether the API's certificate is trusted. Without that no credentials are sent.
func (e *examiner) tls() error {
	if e.Access.Endpoint == "" {
		return skipf("the API does not answer")
	}
	if e.Access.Insecure {
		e.warn("proxmox.insecure", "certificates are not verified: anybody on the way can read the token",
			"trust Proxmox's own CA instead; docs/proxmox.md says how")

		e.connect()

		return nil
	}
	_, err := e.request(e.Access.Endpoint, nil, nil)
	var unknown x509.UnknownAuthorityError
	var none x509.SystemRootsError
	var hostname x509.HostnameError
	var invalid x509.CertificateInvalidError
	host := e.Access.Endpoint
	if u, parsed := url.Parse(e.Access.Endpoint); parsed == nil {
		host = u.Hostname()
	}
	switch {
	case err == nil:
		e.connect()
	case errors.As(err, &unknown), errors.As(err, &none):
		e.found("proxmox.endpoint", "its certificate is signed by an authority that this machine does not trust, as a new Proxmox VE has it",
			"scp root@"+host+":/etc/pve/pve-root-ca.pem .   # compare its fingerprint with the one in the web interface\n"+
				"export SSL_CERT_FILE=$PWD/pve-root-ca.pem  # alone; or add it to the system's certificates\n"+
				"or use a certificate by ACME; or, on a network that you trust, proxmox.insecure: true")
	case errors.As(err, &hostname):
		e.found("proxmox.endpoint", hostname.Error(), "write the endpoint with a name that is in the certificate")
	case errors.As(err, &invalid):
		e.found("proxmox.endpoint", invalid.Error(), "renew it: pvecm updatecerts --force")
	default:
		e.found("proxmox.endpoint", "the connection is not secure: "+reason(err), "see which TLS versions both sides take")
	}

	return nil
}

func (e *examiner) connect() {
	client, err := proxmox.New(e.Access)
	if err != nil {
		e.found("proxmox.endpoint", err.Error(), "write https://<host>:8006")

		return
	}
	e.client = client
}

// get asks the API.
func (e *examiner) get(path string, into any) error {
	call, cancel := context.WithTimeout(e.ctx, e.Timeout)
	defer cancel()

	return e.client.Get(call, path, into)
}

// reachable ends a check that needs the API.
func (e *examiner) reachable() error {
	if e.client == nil {
		return skipf("there is no trusted connection to the API")
	}

	return nil
}

// pveRelease holds what Proxmox VE says of itself.
type pveRelease struct {
	Version string `json:"version"`
}

// token finds whether the credentials are taken.
func (e *examiner) token() error {
	if err := e.reachable(); err != nil {
		return err
	}
	if !e.Access.Complete() {
		e.found("proxmox.apiToken", "there are no credentials", "set PROXMOX_VE_API_TOKEN to user@realm!name=uuid, or: "+
			"pulumi config set --secret --path proxmox.apiToken")
		e.client = nil

		return nil
	}
	var v pveRelease
	switch err := e.get("/version", &v); {
	case err == nil:
		major, _, _ := strings.Cut(v.Version, ".")
		e.version, _ = strconv.Atoi(major)
	case proxmox.Status(err) == http.StatusUnauthorized:
		user, _ := e.user()
		e.found("proxmox.apiToken", "Proxmox VE does not take the credentials ("+reason(err)+")",
			"make a token and write it whole, user@realm!name=uuid: pveum user token add "+user+" talos --privsep 0")
		e.client = nil
	default:
		e.found("proxmox.endpoint", "this is not the API of Proxmox VE, or something between answers: "+reason(err),
			"see that the endpoint is https://<host>:8006, without a path")
		e.client = nil
	}

	return nil
}

// user returns the user of the credentials, and the whole id of the token, if it is one.
func (e *examiner) user() (user, token string) {
	if e.Access.Token == "" {
		return e.Access.Username, ""
	}
	id, _, _ := strings.Cut(e.Access.Token, "=")
	user, _, _ = strings.Cut(id, "!")

	return user, id
}

// pveVersion compares the API's version with the one that the stack names.
func (e *examiner) pveVersion() error {
	if err := e.reachable(); err != nil {
		return err
	}
	said := spec.Value(e.Config.Proxmox.Version)
	switch {
	case e.version < 8:
		e.found("proxmox.version", fmt.Sprintf("the hosts run Proxmox VE %d; 8 and 9 are supported", e.version), "upgrade the hosts")
	case e.version != said:
		e.found("proxmox.version", fmt.Sprintf("the hosts run Proxmox VE %d, and the stack says %d", e.version, said),
			fmt.Sprintf("pulumi config set --path proxmox.version %d", e.version))
	}

	return nil
}

// skew is how far clocks may be apart: certificates begin at the time of the machine that makes them.
const skew = 30 * time.Second

// clock compares the hosts' time with this machine's.
func (e *examiner) clock() error {
	if err := e.reachable(); err != nil {
		return err
	}
	for _, host := range e.hostNames() {
		var is struct {
			Time int64 `json:"time"`
		}
		before := e.Now()
		if err := e.get("/nodes/"+url.PathEscape(host)+"/time", &is); err != nil {
			if code := proxmox.Status(err); code == http.StatusForbidden || code == http.StatusNotImplemented {
				return skipf("%s", reason(err))
			}

			continue // the check of hosts tells it
		}
		if off := time.Unix(is.Time, 0).Sub(before); off.Abs() > skew {
			e.found("proxmox.hosts."+host, fmt.Sprintf("its clock is %s off this machine's", off.Abs().Round(time.Second)),
				"on both: timedatectl set-ntp true; certificates are valid from the time that the maker's clock shows")
		}
	}

	return nil
}
