// SPDX-License-Identifier: Apache-2.0
// Copyright the talos-proxmox authors.

package proxmoxve

import (
	"crypto/tls"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"os"
	"regexp"
	"strconv"
	"strings"

	"github.com/talos-proxmox/talos-proxmox/lab/standin/bridge"
)

// credentials in the order of their precedence.
type credentials struct {
	token              string
	ticket, csrf       string
	username, password string
	otp                string
}

type ticket struct {
	Ticket string `json:"ticket"`
	CSRF   string `json:"CSRFPreventionToken"`
}

// tokenForm returns user@realm!name=uuid.
func tokenForm() *regexp.Regexp { return regexp.MustCompile(`^\S+@\S+!\S+=([a-zA-Z0-9-]+)$`) }

// setting returns a value of the configuration, or of the environment when the configuration has none.
func setting(config bridge.Tree, name, env string) string {
	if v := config.Str(name); v != "" {
		return v
	}

	return os.Getenv("PROXMOX_VE_" + env)
}

// configure reads the configuration and makes no call: wrong credentials show at the first one.
func configure(config bridge.Tree) (*api, error) {
	endpoint, err := url.Parse(setting(config, "endpoint", "ENDPOINT"))
	if err != nil || endpoint.Host == "" {
		return nil, errors.New("missing the Proxmox VE API endpoint: set endpoint, or PROXMOX_VE_ENDPOINT")
	}
	if endpoint.Scheme != "https" {
		return nil, errors.New("the specified endpoint is invalid: only the https scheme is supported")
	}

	login := credentials{
		token:    setting(config, "apiToken", "API_TOKEN"),
		ticket:   setting(config, "authTicket", "AUTH_TICKET"),
		csrf:     setting(config, "csrfPreventionToken", "CSRF_PREVENTION_TOKEN"),
		username: setting(config, "username", "USERNAME"), password: setting(config, "password", "PASSWORD"),
		otp: setting(config, "otp", "OTP"),
	}

	switch {
	case login.token != "":
		if !tokenForm().MatchString(login.token) {
			return nil, errors.New("the API token must be in the format 'USER@REALM!TOKENID=UUID'")
		}
	case login.ticket != "" && login.csrf != "":
	case login.username != "" && login.password != "":
	default:
		return nil, errors.New("must provide either user credentials, an API token, or an auth ticket")
	}

	insecure := config.Bool("insecure")
	if !config.Has("insecure") {
		insecure, _ = strconv.ParseBool(os.Getenv("PROXMOX_VE_INSECURE"))
	}

	minTLS, err := tlsVersion(setting(config, "minTls", "MIN_TLS"))
	if err != nil {
		return nil, err
	}

	a := newAPI("https://"+endpoint.Host, insecure, minTLS, login)
	a.shell = shellOf(config, login)

	return a, nil
}

func tlsVersion(name string) (uint16, error) {
	switch name {
	case "", "1.3":
		return tls.VersionTLS13, nil
	case "1.2":
		return tls.VersionTLS12, nil
	case "1.1":
		return tls.VersionTLS11, nil
	case "1.0":
		return tls.VersionTLS10, nil
	}

	return 0, fmt.Errorf("unsupported minimal TLS version %s", name)
}

func (a *api) authenticate(req *http.Request) error {
	if a.login.token != "" {
		req.Header.Set("Authorization", "PVEAPIToken="+a.login.token)
		return nil
	}

	t, err := a.session(req)
	if err != nil {
		return err
	}

	req.AddCookie(&http.Cookie{Name: "PVEAuthCookie", Value: t.Ticket})
	if req.Method != http.MethodGet {
		req.Header.Set("CSRFPreventionToken", t.CSRF)
	}

	return nil
}

// session logs in with a password once; a ticket that was given is used as it is.
func (a *api) session(req *http.Request) (ticket, error) {
	if a.login.ticket != "" {
		return ticket{Ticket: a.login.ticket, CSRF: a.login.csrf}, nil
	}

	a.mu.Lock()
	defer a.mu.Unlock()

	if a.ticket.Ticket != "" {
		return a.ticket, nil
	}

	form := url.Values{"username": {a.login.username}, "password": {a.login.password}}
	if a.login.otp != "" {
		form.Set("otp", a.login.otp)
	}

	login, err := http.NewRequestWithContext(req.Context(), http.MethodPost, a.base+"access/ticket",
		strings.NewReader(form.Encode()))
	if err != nil {
		return ticket{}, err
	}
	login.Header.Set("Content-Type", "application/x-www-form-urlencoded")

	res, err := a.http.Do(login)
	if err != nil {
		return ticket{}, fmt.Errorf("failed to retrieve authentication response: %w", err)
	}
	defer res.Body.Close() //nolint:errcheck // it is only read

	if err := refusal(res); err != nil {
		return ticket{}, fmt.Errorf("failed to authenticate: %w", err)
	}

	envelope := struct{ Data ticket }{}
	if err := json.NewDecoder(res.Body).Decode(&envelope); err != nil || envelope.Data.Ticket == "" {
		return ticket{}, errors.New("the server did not include a ticket in the authentication response")
	}
	a.ticket = envelope.Data

	return a.ticket, nil
}
