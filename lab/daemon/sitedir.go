// SPDX-License-Identifier: Apache-2.0
// Copyright the talos-proxmox authors.

package daemon

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"hash/fnv"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"syscall"
	"time"
)

const (
	traceFile = "trace.jsonl"
	logFile   = "serve.log"
)

// ErrNotRunning is returned where a running lab is needed.
var ErrNotRunning = errors.New("no lab runs")

// SiteDir holds the absolute path of a site's directory, by which other processes reach its lab.
type SiteDir string

// Path returns the path of one of the site's files.
func (p SiteDir) Path(name string) string { return filepath.Join(string(p), name) }

// Trace returns the path of the file of the site's operations: one JSON [site.Event] per line.
func (p SiteDir) Trace() string { return p.Path(traceFile) }

// socket returns where the lab is controlled. Unix sockets have short names, so a site far down gets one elsewhere.
func (p SiteDir) socket() string {
	const longest = 100
	if path := p.Path("lab.sock"); len(path) <= longest {
		return path
	}

	h := fnv.New64a()
	_, _ = h.Write([]byte(p)) // never fails

	return filepath.Join(os.TempDir(), fmt.Sprintf("lab-%d-%x.sock", os.Getuid(), h.Sum64()))
}

// Info asks the running lab what a command needs to know; [ErrNotRunning] when none runs.
func (p SiteDir) Info() (Info, error) {
	var i Info

	return i, p.call(http.MethodGet, "/info", &i)
}

// Status asks the running lab what there is on its site; [ErrNotRunning] when none runs.
func (p SiteDir) Status() (Status, error) {
	var s Status

	return s, p.call(http.MethodGet, "/status", &s)
}

// client reaches the running lab.
func (p SiteDir) client(timeout time.Duration) *http.Client {
	return &http.Client{Timeout: timeout, Transport: &http.Transport{
		DisableKeepAlives: true,
		DialContext: func(ctx context.Context, _, _ string) (net.Conn, error) {
			var d net.Dialer

			return d.DialContext(ctx, "unix", p.socket())
		},
	}}
}

// call asks the running lab.
func (p SiteDir) call(method, path string, into any) error { return p.send(method, path, nil, into) }

// send returns call with a body. What the lab refuses is an error in its words.
func (p SiteDir) send(method, path string, body, into any) error {
	data, err := json.Marshal(body)
	if err != nil {
		return fmt.Errorf("asking the lab: %w", err)
	}
	req, err := http.NewRequest(method, "http://lab"+path, bytes.NewReader(data))
	if err != nil {
		return fmt.Errorf("asking the lab: %w", err)
	}
	res, err := p.client(time.Minute).Do(req)
	if errors.Is(err, os.ErrNotExist) || errors.Is(err, syscall.ECONNREFUSED) {
		return fmt.Errorf("%w on %s; `lab exec -- COMMAND` starts it", ErrNotRunning, p)
	}
	if err != nil {
		return fmt.Errorf("asking the lab: %w", err)
	}
	defer func() { _ = res.Body.Close() }() // read below

	if res.StatusCode == http.StatusBadRequest {
		var r refusal
		if err := json.NewDecoder(res.Body).Decode(&r); err == nil && r.Error != "" {
			return errors.New(r.Error)
		}
	}
	if err := json.NewDecoder(res.Body).Decode(into); err != nil {
		return fmt.Errorf("reading the lab's answer: %w", err)
	}

	return nil
}
