// SPDX-License-Identifier: Apache-2.0
// Copyright the talos-proxmox authors.

package proxmox

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"strings"

	"github.com/talos-proxmox/talos-proxmox/lab/fault"
	"github.com/talos-proxmox/talos-proxmox/lab/site"
	"github.com/talos-proxmox/talos-proxmox/lab/site/pve"
	"github.com/talos-proxmox/talos-proxmox/lab/site/pve/schema"
)

const (
	maxBody = 1 << 28
	// statusNoConnection is what a host answers that cannot reach the host a call is for.
	statusNoConnection = 595
)

// failure describes an answer that is not a success.
type failure struct {
	status  int
	message string
	fields  map[string]string
}

// request holds an authenticated call.
type request struct {
	*http.Request
	caller
	cluster *site.Cluster
	form    url.Values
}

// param returns the first value of a parameter.
func (r *request) param(name string) string { return r.form.Get(name) }

// flag reports whether a boolean parameter is set.
func (r *request) flag(name string) bool { return r.param(name) == "1" || r.param(name) == "true" }

// params returns the parameters with their first values.
func (r *request) params() map[string]string {
	m := map[string]string{}
	for k, v := range r.form {
		m[k] = v[0]
	}

	return m
}

// handler answers a call with what becomes "data".
type handler func(r *request) (any, error)

type api struct {
	site *site.Site
	auth *Auth
	mux  *http.ServeMux
}

// New serves the API of every cluster of s.
func New(s *site.Site, auth *Auth) http.Handler {
	a := &api{site: s, auth: auth, mux: http.NewServeMux()}
	a.cluster()
	a.nodes()
	a.storage()
	a.qemu()
	a.pools()
	a.ha()
	a.mappings(site.KindPCI)
	a.mappings(site.KindUSB)
	a.mux.HandleFunc("POST /api2/json/access/ticket", a.ticket)
	a.handle("GET /access/permissions", "", permissions)
	a.mux.HandleFunc("/", notImplemented)

	refuse := func(w http.ResponseWriter, f fault.Answer) { fail(w, &failure{status: f.Status, message: f.Message}) }

	return s.Faults().HTTP(fault.Proxmox, "/api2/json", refuse, slashless(a.mux))
}

// notImplemented answers a call that is none of the API's.
func notImplemented(w http.ResponseWriter, r *http.Request) {
	fail(w, &failure{
		status:  http.StatusNotImplemented,
		message: fmt.Sprintf("Method '%s %s' not implemented", r.Method, strings.TrimPrefix(r.URL.Path, "/api2/json")),
	})
}

// slashless serves "ha/resources/" as "ha/resources": Proxmox VE tells no difference, and the provider
// writes some of its paths so.
func slashless(next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if path := strings.TrimRight(r.URL.Path, "/"); path != r.URL.Path && r.URL.RawPath == "" {
			u := *r.URL
			u.Path = path
			short := *r
			short.URL = &u
			r = &short
		}
		next.ServeHTTP(w, r)
	})
}

// handle registers a call: "GET /nodes". A caller without the privilege on what the call is about, or without any of
// "A|B", gets 403.
func (a *api) handle(pattern, privilege string, h handler) {
	method, path, _ := strings.Cut(pattern, " ")
	a.mux.HandleFunc(method+" /api2/json"+path, func(w http.ResponseWriter, r *http.Request) {
		cluster := a.site.Cluster(r.Host)
		if node := r.PathValue("node"); !cluster.HostUp(node) {
			fail(w, &failure{status: statusNoConnection, message: "No route to host"})

			return
		}
		who, problem := a.auth.authenticate(r)
		if problem != nil {
			fail(w, problem)

			return
		}
		if d, err := schema.Load(cluster.PVE()); err == nil && !d.Knows(called(pattern)) {
			notImplemented(w, r)

			return
		}
		if privilege != "" {
			if err := who.check(at(objectOf(r), strings.Split(privilege, "|")...)); err != nil {
				fail(w, toFailure(err))

				return
			}
		}

		form, err := readForm(r)
		if err != nil {
			fail(w, &failure{status: http.StatusBadRequest, message: err.Error()})

			return
		}
		if err := checkParameters(cluster.PVE(), pattern, r, form); err != nil {
			fail(w, toFailure(err))

			return
		}
		data, err := h(&request{Request: r, caller: who, cluster: cluster, form: form})
		if err != nil {
			fail(w, toFailure(err))

			return
		}
		w.Header().Set("Content-Type", "application/json;charset=UTF-8")
		_ = json.NewEncoder(w).Encode(map[string]any{"data": data}) // the client is gone when this fails
	})
}

// readForm reads the parameters of the query and of a form-encoded or JSON body, whatever the method.
func readForm(r *http.Request) (url.Values, error) {
	form := r.URL.Query()
	kind := r.Header.Get("Content-Type")
	if strings.HasPrefix(kind, "multipart/form-data") {
		return form, nil // read by the upload
	}

	body, err := io.ReadAll(io.LimitReader(r.Body, maxBody))
	if err != nil {
		return nil, fmt.Errorf("reading the request: %w", err)
	}
	if strings.HasPrefix(kind, "application/json") {
		var values map[string]any
		if err := json.Unmarshal(body, &values); err != nil {
			return nil, fmt.Errorf("reading the request: %w", err)
		}
		for k, v := range values {
			form.Set(k, fmt.Sprint(v))
		}

		return form, nil
	}

	more, err := url.ParseQuery(string(body))
	if err != nil {
		return nil, fmt.Errorf("reading the request: %w", err)
	}
	for k, v := range more {
		form[k] = append(form[k], v...)
	}

	return form, nil
}

func toFailure(err error) *failure {
	var e *pve.Error
	if errors.As(err, &e) {
		message := e.Message
		if before, wrapped := strings.CutSuffix(err.Error(), e.Error()); wrapped {
			message = before + message
		}

		return &failure{status: e.Status, message: message, fields: e.Fields}
	}

	return &failure{status: http.StatusInternalServerError, message: err.Error()}
}

// fail answers with the problem in the reason phrase, where clients of Proxmox VE look for it.
func fail(w http.ResponseWriter, f *failure) {
	body := map[string]any{"data": nil, "message": f.message + "\n"}
	if len(f.fields) > 0 {
		body["errors"] = f.fields
	}
	data, err := json.Marshal(body)
	if err != nil {
		data = []byte(`{"data":null}`)
	}

	hijacker, ok := w.(http.Hijacker)
	if !ok {
		w.WriteHeader(f.status)
		_, _ = w.Write(data) // the client is gone when this fails

		return
	}
	conn, rw, err := hijacker.Hijack()
	if err != nil {
		w.WriteHeader(f.status)

		return
	}
	defer func() { _ = conn.Close() }() // everything was written, or nobody reads it

	phrase := strings.NewReplacer("\r", " ", "\n", " ").Replace(f.message)
	_, _ = fmt.Fprintf(rw,
		"HTTP/1.1 %d %s\r\nContent-Type: application/json;charset=UTF-8\r\nContent-Length: %d\r\nConnection: close\r\n\r\n%s",
		f.status, phrase, len(data), data) // the client is gone when this fails
	_ = rw.Flush()
}

func (a *api) ticket(w http.ResponseWriter, r *http.Request) {
	form, err := readForm(r)
	if err != nil {
		fail(w, &failure{status: http.StatusBadRequest, message: err.Error()})

		return
	}
	data, problem := a.auth.login(form.Get("username"), form.Get("password"))
	if problem != nil {
		fail(w, problem)

		return
	}
	w.Header().Set("Content-Type", "application/json;charset=UTF-8")
	_ = json.NewEncoder(w).Encode(map[string]any{"data": data}) // the client is gone when this fails
}
