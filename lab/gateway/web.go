// SPDX-License-Identifier: Apache-2.0
// Copyright the talos-proxmox authors.

package gateway

import (
	"fmt"
	"net"
	"net/http"
	"strings"
	"sync"
)

// Web holds what answers at HTTPS names of the world outside: some by name, others by what is asked of them.
type Web struct {
	mu      sync.Mutex
	hosts   map[string]http.Handler
	mirrors []mirror
}

type mirror struct {
	serves  func(path string) bool
	handler http.Handler
}

// Host gives a name a handler. It replaces the one it had.
func (w *Web) Host(name string, h http.Handler) {
	w.mu.Lock()
	defer w.mu.Unlock()

	if w.hosts == nil {
		w.hosts = map[string]http.Handler{}
	}
	w.hosts[strings.ToLower(name)] = h
}

// Mirror lets h answer at every name without a handler for paths that serves holds for.
func (w *Web) Mirror(serves func(path string) bool, h http.Handler) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.mirrors = append(w.mirrors, mirror{serves, h})
}

// ServeHTTP answers 502 with a sentence where nobody is.
func (w *Web) ServeHTTP(out http.ResponseWriter, r *http.Request) {
	if h := w.find(r); h != nil {
		h.ServeHTTP(out, r)

		return
	}
	http.Error(out, fmt.Sprintf("the lab has nobody at https://%s%s; nothing here leaves this machine", r.Host, r.URL.Path),
		http.StatusBadGateway)
}

func (w *Web) find(r *http.Request) http.Handler {
	host := r.Host
	if h, _, err := net.SplitHostPort(host); err == nil {
		host = h
	}

	w.mu.Lock()
	defer w.mu.Unlock()

	if h, ok := w.hosts[strings.ToLower(host)]; ok {
		return h
	}
	for _, m := range w.mirrors {
		if m.serves(r.URL.Path) {
			return m.handler
		}
	}

	return nil
}
