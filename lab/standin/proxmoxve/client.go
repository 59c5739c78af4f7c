// SPDX-License-Identifier: Apache-2.0
// Copyright the talos-proxmox authors.

package proxmoxve

import (
	"context"
	"crypto/tls"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"slices"
	"strconv"
	"strings"
	"sync"
)

// errNotFound: the API says that the thing does not exist.
var errNotFound = errors.New("the requested resource does not exist")

// httpError reports any other refusal.
type httpError struct {
	code    int
	message string
}

func (e *httpError) Error() string {
	return fmt.Sprintf("received an HTTP %d response - Reason: %s", e.code, e.message)
}

// api calls one Proxmox VE API.
type api struct {
	base  string // https://host:8006/api2/json/
	http  *http.Client
	login credentials
	shell shellLogin

	mu     sync.Mutex
	ticket ticket

	ids sync.Mutex // one automatic VM id at a time
}

func newAPI(endpoint string, insecure bool, minTLS uint16, login credentials) *api {
	return &api{
		base: strings.TrimSuffix(endpoint, "/") + "/api2/json/",
		http: &http.Client{Transport: &http.Transport{
			Proxy: http.ProxyFromEnvironment,
			TLSClientConfig: &tls.Config{
				MinVersion: minTLS, InsecureSkipVerify: insecure, // as configured
			},
		}},
		login: login,
	}
}

// get reads path into out.
func (a *api) get(ctx context.Context, path string, out any) error {
	return a.do(ctx, http.MethodGet, path, nil, out)
}

// do makes a call; out receives "data" and may be nil.
func (a *api) do(ctx context.Context, method, path string, form url.Values, out any) error {
	target, body := a.base+path, io.Reader(nil)

	if len(form) > 0 {
		if method == http.MethodGet || method == http.MethodDelete {
			target += "?" + form.Encode()
		} else {
			body = strings.NewReader(form.Encode())
		}
	}

	req, err := http.NewRequestWithContext(ctx, method, target, body)
	if err != nil {
		return fmt.Errorf("failed to create HTTP %s request (path: %s) - Reason: %w", method, path, err)
	}
	if body != nil {
		req.Header.Set("Content-Type", "application/x-www-form-urlencoded")
	}

	return a.send(req, path, out)
}

func (a *api) send(req *http.Request, path string, out any) error {
	req.Header.Set("Accept", "application/json")

	if err := a.authenticate(req); err != nil {
		return fmt.Errorf("failed to authenticate HTTP %s request (path: %s) - Reason: %w", req.Method, path, err)
	}

	res, err := a.attempt(req)
	if err != nil {
		return fmt.Errorf("failed to perform HTTP %s request (path: %s) - Reason: %w", req.Method, path, err)
	}
	defer res.Body.Close() //nolint:errcheck // it is only read

	if err := refusal(res); err != nil {
		return err
	}
	if out == nil {
		return nil
	}

	envelope := struct {
		Data json.RawMessage `json:"data"`
	}{}
	if err := json.NewDecoder(res.Body).Decode(&envelope); err != nil {
		return fmt.Errorf("failed to decode HTTP %s response (path: %s) - Reason: %w", req.Method, path, err)
	}
	if len(envelope.Data) == 0 || string(envelope.Data) == "null" {
		return nil
	}
	if err := json.Unmarshal(envelope.Data, out); err != nil {
		return fmt.Errorf("failed to decode HTTP %s response (path: %s) - Reason: %w", req.Method, path, err)
	}

	return nil
}

// attempt repeats reads that the network lost, up to three times.
func (a *api) attempt(req *http.Request) (*http.Response, error) {
	const attempts = 3

	for i := 1; ; i++ {
		res, err := a.http.Do(req)
		if err == nil || req.Method != http.MethodGet || i == attempts || req.Context().Err() != nil {
			return res, err
		}
	}
}

// refusal reads an error out of an answer.
func refusal(res *http.Response) error {
	if res.StatusCode >= 200 && res.StatusCode < 300 {
		return nil
	}

	if res.StatusCode == http.StatusNotFound ||
		(res.StatusCode == http.StatusInternalServerError && strings.Contains(res.Status, "does not exist")) {
		return errNotFound
	}

	message := strings.TrimPrefix(res.Status, strconv.Itoa(res.StatusCode)+" ")

	detail := struct {
		Errors map[string]string `json:"errors"`
	}{}
	if err := json.NewDecoder(res.Body).Decode(&detail); err == nil && len(detail.Errors) > 0 {
		var list []string
		for k, v := range detail.Errors {
			list = append(list, k+": "+strings.TrimRight(v, "\r\n"))
		}
		slices.Sort(list)
		message += " (" + strings.Join(list, " - ") + ")"
	}

	return &httpError{code: res.StatusCode, message: message}
}
