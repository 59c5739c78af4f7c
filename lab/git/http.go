// SPDX-License-Identifier: Apache-2.0
// Copyright the talos-proxmox authors.

package git

import (
	"bytes"
	"crypto/subtle"
	"io"
	"net"
	"net/http"
	"net/http/cgi"
	"os/exec"
	"path/filepath"
	"strings"
)

const (
	readService  = "git-upload-pack"
	writeService = "git-receive-pack"
)

// Serves reports whether a path on any host's HTTPS port is for the git host.
func Serves(urlPath string) bool {
	_, _, ok := splitRepository(urlPath)

	return ok || isAPI(urlPath)
}

// splitRepository tells a repository from what is asked of it.
func splitRepository(urlPath string) (name, what string, ok bool) {
	for _, what := range []string{"/info/refs", "/" + readService, "/" + writeService} {
		if name, found := strings.CutSuffix(urlPath, what); found && strings.Count(name, "/") > 1 {
			return name, what, true
		}
	}

	return "", "", false
}

// ServeHTTP serves repositories by git's own smart HTTP, and the API.
func (h *Host) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	host := r.Host
	if name, _, err := net.SplitHostPort(host); err == nil {
		host = name
	}
	if isAPI(r.URL.Path) {
		h.serveAPI(w, r, host)

		return
	}
	name, what, ok := splitRepository(r.URL.Path)
	if !ok {
		http.NotFound(w, r)

		return
	}
	h.serveRepository(w, r, host, name, what)
}

func (h *Host) serveRepository(w http.ResponseWriter, r *http.Request, host, name, what string) {
	writes := what == "/"+writeService || r.URL.Query().Get("service") == writeService
	known, shown := h.authenticated(r)
	if shown && !known {
		unauthorized(w, "invalid credentials")

		return
	}

	dir, err := h.find(host, name)
	if err != nil && known && writes {
		dir, err = h.ensure(r.Context(), host, name)
	}
	switch {
	case err != nil && known:
		http.Error(w, ErrNoRepository.Error(), http.StatusNotFound)

		return
	case err != nil, !known && (writes || private(dir)):
		// A host does not tell strangers what it has.
		unauthorized(w, "authentication required")

		return
	}
	h.backend(w, r, dir, what, known)
}

func unauthorized(w http.ResponseWriter, why string) {
	w.Header().Set("WWW-Authenticate", `Basic realm="lab"`)
	http.Error(w, why, http.StatusUnauthorized)
}

// authenticated reports whether a request shows the token, and whether it shows anything.
func (h *Host) authenticated(r *http.Request) (known, shown bool) {
	header := r.Header.Get("Authorization")
	secret := r.Header.Get("PRIVATE-TOKEN") // GitLab's
	if _, password, ok := r.BasicAuth(); ok {
		secret = password
	} else if _, token, ok := strings.Cut(header, " "); ok {
		secret = token // "token …" and "Bearer …"
	}

	return subtle.ConstantTimeCompare([]byte(secret), []byte(h.token)) == 1, header != "" || secret != ""
}

// backend hands a request to git.
func (h *Host) backend(w http.ResponseWriter, r *http.Request, dir, what string, known bool) {
	program, err := exec.LookPath("git")
	if err != nil {
		http.Error(w, "the lab's git host needs git on the PATH", http.StatusInternalServerError)

		return
	}
	if r.ContentLength < 0 { // CGI knows no body without a length
		body, err := io.ReadAll(r.Body)
		if err != nil {
			http.Error(w, err.Error(), http.StatusBadRequest)

			return
		}
		r.Body, r.ContentLength, r.TransferEncoding = io.NopCloser(bytes.NewReader(body)), int64(len(body)), nil
	}
	env := append(environment(h.dir), "GIT_PROJECT_ROOT="+filepath.Dir(dir), "GIT_HTTP_EXPORT_ALL=1",
		"GIT_PROTOCOL="+r.Header.Get("Git-Protocol"))
	if known {
		env = append(env, "REMOTE_USER=lab") // git lets a known user write
	}
	r.URL.Path = "/" + filepath.Base(dir) + what
	handler := &cgi.Handler{
		Path: program, Args: []string{"http-backend"}, Dir: h.dir, Env: env, Logger: nil, Stderr: io.Discard,
	}
	handler.ServeHTTP(w, r)
}
