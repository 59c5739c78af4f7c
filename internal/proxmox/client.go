// SPDX-License-Identifier: Apache-2.0
// Copyright the talos-proxmox authors.

// Package proxmox makes the few calls to Proxmox VE that no provider makes: it finds a VM that an
// interrupted run left behind, and removes it when there is nothing on it yet. The calls are so few that
// a client library would be more to build than to write.
package proxmox

import (
	"cmp"
	"context"
	"crypto/tls"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"os"
	"strconv"
	"strings"
	"time"
)

// Access holds how the API is reached.
type Access struct {
	// Endpoint is the API's address, "https://pve.example.com:8006".
	Endpoint string
	// Token is "user@realm!token=uuid"; else Username and Password count.
	Token              string
	Username, Password string
	// Insecure turns certificate verification off.
	Insecure bool
}

// OrEnvironment returns the access with what it leaves out as the provider finds it: in the variables PROXMOX_VE_ENDPOINT,
// PROXMOX_VE_API_TOKEN, PROXMOX_VE_USERNAME and PROXMOX_VE_PASSWORD. Insecure stays as it is.
func (a Access) OrEnvironment() Access {
	for name, field := range map[string]*string{
		"ENDPOINT": &a.Endpoint, "API_TOKEN": &a.Token, "USERNAME": &a.Username, "PASSWORD": &a.Password,
	} {
		*field = cmp.Or(*field, os.Getenv("PROXMOX_VE_"+name))
	}

	return a
}

// InsecureByEnvironment reports whether PROXMOX_VE_INSECURE turns certificate verification off.
func InsecureByEnvironment() bool {
	insecure, _ := strconv.ParseBool(os.Getenv("PROXMOX_VE_INSECURE"))

	return insecure
}

// Complete reports whether it is enough to connect with.
func (a Access) Complete() bool {
	return a.Endpoint != "" && (a.Token != "" || (a.Username != "" && a.Password != ""))
}

// Client asks one Proxmox VE API. It dials through HTTPS_PROXY where that is set.
type Client struct {
	access Access
	base   string
	http   *http.Client

	ticket, csrf string
}

// callLimit bounds one request.
const callLimit = time.Minute

// New makes a client; it dials nothing yet.
func New(a Access) (*Client, error) {
	endpoint, err := url.Parse(a.Endpoint)
	if err != nil {
		return nil, fmt.Errorf("the address of Proxmox VE: %w", err)
	}
	transport := http.DefaultTransport.(*http.Transport).Clone()
	transport.TLSClientConfig = &tls.Config{
		MinVersion: tls.VersionTLS12, InsecureSkipVerify: a.Insecure,
	}

	return &Client{
		access: a, base: "https://" + endpoint.Host + "/api2/json",
		http: &http.Client{Transport: transport, Timeout: callLimit},
	}, nil
}

// call makes a request and decodes the answer's data.
func (c *Client) call(ctx context.Context, method, path string, form url.Values, into any) error {
	if err := c.logIn(ctx); err != nil {
		return err
	}

	return c.send(ctx, method, path, form, into)
}

// logIn gets a ticket where there is no token.
func (c *Client) logIn(ctx context.Context) error {
	if c.access.Token != "" || c.ticket != "" {
		return nil
	}
	var got struct {
		Ticket string `json:"ticket"`
		CSRF   string `json:"CSRFPreventionToken"`
	}
	form := url.Values{"username": {c.access.Username}, "password": {c.access.Password}}
	if err := c.send(ctx, http.MethodPost, "/access/ticket", form, &got); err != nil {
		return err
	}
	c.ticket, c.csrf = got.Ticket, got.CSRF

	return nil
}

func (c *Client) send(ctx context.Context, method, path string, form url.Values, into any) error {
	var body io.Reader
	if form != nil {
		body = strings.NewReader(form.Encode())
	}
	req, err := http.NewRequestWithContext(ctx, method, c.base+path, body)
	if err != nil {
		return fmt.Errorf("%s %s: %w", method, path, err)
	}
	if form != nil {
		req.Header.Set("Content-Type", "application/x-www-form-urlencoded")
	}
	switch {
	case c.access.Token != "":
		req.Header.Set("Authorization", "PVEAPIToken="+c.access.Token)
	case c.ticket != "":
		req.AddCookie(&http.Cookie{Name: "PVEAuthCookie", Value: c.ticket})
		req.Header.Set("CSRFPreventionToken", c.csrf)
	}

	res, err := c.http.Do(req)
	if err != nil {
		return fmt.Errorf("asking Proxmox VE: %w", err)
	}
	defer res.Body.Close() //nolint:errcheck // read below
	if res.StatusCode >= http.StatusBadRequest {
		return fmt.Errorf("asking Proxmox VE for %s: %w", path, &refused{code: res.StatusCode, status: res.Status})
	}
	var answer struct {
		Data json.RawMessage `json:"data"`
	}
	if err := json.NewDecoder(res.Body).Decode(&answer); err != nil {
		return fmt.Errorf("reading the answer to %s: %w", path, err)
	}
	if into == nil {
		return nil
	}
	if err := json.Unmarshal(answer.Data, into); err != nil {
		return fmt.Errorf("reading the answer to %s: %w", path, err)
	}

	return nil
}

// refused reports an error that the API answered with. Proxmox VE puts its reason into the status line.
type refused struct {
	code   int
	status string
}

func (r *refused) Error() string { return r.status }

// gone reports whether the API has no such thing.
func gone(err error) bool {
	var r *refused

	return errors.As(err, &r) && strings.Contains(r.status, "does not exist")
}
