// SPDX-License-Identifier: Apache-2.0
// Copyright the talos-proxmox authors.

package daemon

import (
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"net"
	"net/http"
	"os"
	"time"
)

// Info holds what a command needs to know of a running lab.
type Info struct {
	PID     int     `json:"pid"`
	Site    string  `json:"site"`    // absolute path
	Gateway string  `json:"gateway"` // URL
	Bundle  string  `json:"bundle"`  // path
	Token   string  `json:"token"`   // of Proxmox VE
	Speed   float64 `json:"speed"`

	Socks    string `json:"socks"`    // host:port of the SOCKS proxy into the site
	GitToken string `json:"gitToken"` // of the git hosts
	HostKey  string `json:"hostKey"`  // of the git hosts, as known_hosts has it after the name
}

// listen serves the commands of other processes.
func (d *Daemon) listen() (*http.Server, error) {
	socket := d.siteDir.socket()
	// A lab that was killed leaves its socket; the lock says that it is dead.
	if err := os.Remove(socket); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return nil, fmt.Errorf("opening the lab's control socket: %s is in the way: remove it", socket)
	}
	l, err := net.Listen("unix", socket)
	if err != nil {
		return nil, fmt.Errorf("opening the lab's control socket: %w", err)
	}
	if err := os.Chmod(socket, 0o600); err != nil {
		return nil, fmt.Errorf("closing the lab's control socket to others: %w", err)
	}

	mux := http.NewServeMux()
	mux.HandleFunc("GET /info", func(w http.ResponseWriter, _ *http.Request) { reply(w, d.Info()) })
	mux.HandleFunc("GET /status", func(w http.ResponseWriter, _ *http.Request) { reply(w, d.Status()) })
	mux.HandleFunc("POST /command", d.commands.serve)
	d.faultRoutes(mux)
	mux.HandleFunc("POST /stop", func(w http.ResponseWriter, _ *http.Request) {
		reply(w, struct{}{})
		select {
		case d.asked <- struct{}{}:
		default: // asked already
		}
	})
	server := &http.Server{Handler: mux, ReadHeaderTimeout: time.Minute}
	server.RegisterOnShutdown(d.commands.close) // they hold a request open
	go func() {
		if err := server.Serve(l); !errors.Is(err, http.ErrServerClosed) {
			d.opts.Log.Error("the control socket stopped", "error", err)
		}
	}()

	return server, nil
}

// refusal holds the body of a refused request.
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
