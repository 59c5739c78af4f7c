// SPDX-License-Identifier: Apache-2.0
// Copyright the talos-proxmox authors.

package main

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"strings"
	"syscall"
	"time"
)

// info is what a command needs to know of the running lab.
type info struct {
	PID     int     `json:"pid"`
	Gateway string  `json:"gateway"` // URL
	Bundle  string  `json:"bundle"`  // path
	Token   string  `json:"token"`
	Speed   float64 `json:"speed"`

	GitToken string `json:"gitToken"`
	HostKey  string `json:"hostKey"` // of the git hosts, as known_hosts has it after the name
}

// lock makes sure that a site has one lab. The lock goes with the process.
func lock(o options) (func(), error) {
	f, err := os.OpenFile(o.path("lab.lock"), os.O_CREATE|os.O_RDWR, 0o600)
	if err != nil {
		return nil, fmt.Errorf("locking the site: %w", err)
	}
	if err := syscall.Flock(int(f.Fd()), syscall.LOCK_EX|syscall.LOCK_NB); err != nil {
		pid, _ := io.ReadAll(f) // only to name it
		_ = f.Close()

		return nil, fmt.Errorf("a lab already runs on %s (process %s); `lab stop` ends it", o.site, strings.TrimSpace(string(pid)))
	}
	if err := f.Truncate(0); err == nil {
		_, _ = fmt.Fprintf(f, "%d\n", os.Getpid()) // only to name it
	}

	return func() { _ = f.Close() }, nil
}

// locked tells whether a lab runs on the site.
func locked(o options) bool {
	f, err := os.OpenFile(o.path("lab.lock"), os.O_RDWR, 0o600)
	if err != nil {
		return false
	}
	defer func() { _ = f.Close() }() // gives the lock back

	return syscall.Flock(int(f.Fd()), syscall.LOCK_EX|syscall.LOCK_NB) != nil
}

// control serves the commands of other processes.
func (d *daemon) control() (*http.Server, error) {
	_ = os.Remove(d.socket()) // a lab that was killed leaves its socket; the lock says that it is dead
	l, err := net.Listen("unix", d.socket())
	if err != nil {
		return nil, fmt.Errorf("opening the lab's control socket: %w", err)
	}
	if err := os.Chmod(d.socket(), 0o600); err != nil {
		return nil, fmt.Errorf("closing the lab's control socket to others: %w", err)
	}

	mux := http.NewServeMux()
	mux.HandleFunc("GET /info", func(w http.ResponseWriter, _ *http.Request) {
		reply(w, info{
			PID: os.Getpid(), Gateway: d.gateway.URL(), Bundle: d.authority.BundlePath(), Token: d.secrets.Token, Speed: d.speed,
			GitToken: d.secrets.GitToken, HostKey: d.git.HostKey(),
		})
	})
	mux.HandleFunc("GET /status", func(w http.ResponseWriter, _ *http.Request) { reply(w, d.status()) })
	mux.HandleFunc("POST /command", d.commands.serve)
	d.faultRoutes(mux)
	mux.HandleFunc("POST /stop", func(w http.ResponseWriter, _ *http.Request) {
		reply(w, struct{}{})
		d.stop()
	})
	server := &http.Server{Handler: mux, ReadHeaderTimeout: time.Minute}
	server.RegisterOnShutdown(d.commands.close) // they hold a request open
	go func() {
		if err := server.Serve(l); !errors.Is(err, http.ErrServerClosed) {
			d.log.Error("the control socket stopped", "error", err)
		}
	}()

	return server, nil
}

// refusal is the body of a refused request.
type refusal struct {
	Error string `json:"error"`
}

// refuse answers that a request cannot be meant.
func refuse(w http.ResponseWriter, err error) {
	w.Header().Set("Content-Type", "application/json")
	w.WriteHeader(http.StatusBadRequest)
	_ = json.NewEncoder(w).Encode(refusal{Error: err.Error()}) // the client is gone when this fails
}

func reply(w http.ResponseWriter, v any) {
	w.Header().Set("Content-Type", "application/json")
	_ = json.NewEncoder(w).Encode(v) // the client is gone when this fails
}

// errNotRunning is what a command gets that needs a running lab.
func errNotRunning(o options) error {
	return fmt.Errorf("no lab runs on %s; `lab exec -- COMMAND` starts it", o.site)
}

// call asks the running lab.
func call(o options, method, path string, into any) error {
	return send(o, method, path, nil, into)
}

// client reaches the running lab.
func client(o options, timeout time.Duration) *http.Client {
	return &http.Client{Timeout: timeout, Transport: &http.Transport{
		DisableKeepAlives: true,
		DialContext: func(ctx context.Context, _, _ string) (net.Conn, error) {
			var d net.Dialer

			return d.DialContext(ctx, "unix", o.socket())
		},
	}}
}

// send is call with a body. What the lab refuses is an error in its words.
func send(o options, method, path string, body, into any) error {
	data, err := json.Marshal(body)
	if err != nil {
		return fmt.Errorf("asking the lab: %w", err)
	}
	req, err := http.NewRequest(method, "http://lab"+path, bytes.NewReader(data))
	if err != nil {
		return fmt.Errorf("asking the lab: %w", err)
	}
	res, err := client(o, time.Minute).Do(req)
	if errors.Is(err, os.ErrNotExist) || errors.Is(err, syscall.ECONNREFUSED) {
		return errNotRunning(o)
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

// stop ends the running lab and waits until it has.
func stop(o options) error {
	if !locked(o) {
		fmt.Println("no lab runs on", o.site)

		return nil
	}
	if err := call(o, http.MethodPost, "/stop", &struct{}{}); err != nil {
		return err
	}

	const limit, poll = time.Minute, 20 * time.Millisecond
	for until := time.Now().Add(limit); locked(o); {
		if time.Now().After(until) {
			return fmt.Errorf("the lab on %s has not stopped within %s; see %s", o.site, limit, o.path("serve.log"))
		}
		time.Sleep(poll)
	}
	fmt.Println("the lab on", o.site, "has stopped")

	return nil
}
