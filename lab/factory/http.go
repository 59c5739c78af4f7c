// SPDX-License-Identifier: Apache-2.0
// Copyright the talos-proxmox authors.

package factory

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"regexp"
	"strconv"
)

const maxSchematic = 1 << 20

// The paths of the API, under any prefix.
var (
	imagePath     = regexp.MustCompile(`/image/([^/]+)/([^/]+)/([^/]+)$`)
	schematicPath = regexp.MustCompile(`/schematics$`)
	versionsPath  = regexp.MustCompile(`/versions$`)
	extensionPath = regexp.MustCompile(`/version/([^/]+)/extensions/official$`)
	overlayPath   = regexp.MustCompile(`/version/([^/]+)/overlays/official$`)
	manifestPath  = regexp.MustCompile(`^/v2/((?:.+/)?(?:[a-z0-9]+-)?installer(?:-secureboot)?(?:/[0-9a-f]{64})?)/manifests/([^/]+)$`)
)

// Serves reports whether a path belongs to the factory's API, so that a host which is nobody else's can
// be taken for a mirror of it.
func Serves(path string) bool {
	for _, r := range []*regexp.Regexp{imagePath, schematicPath, versionsPath, extensionPath, overlayPath, manifestPath} {
		if r.MatchString(path) {
			return true
		}
	}

	return false
}

// ServeHTTP serves the factory's API.
func (f *Factory) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	if err := f.serve(w, r); err != nil {
		var p *problem
		if errors.As(err, &p) {
			http.Error(w, p.message, p.status)

			return
		}
		http.Error(w, "internal server error", http.StatusInternalServerError)
	}
}

func (f *Factory) serve(w http.ResponseWriter, r *http.Request) error {
	reads := r.Method == http.MethodGet || r.Method == http.MethodHead

	switch path := r.URL.Path; {
	case r.Method == http.MethodPost && schematicPath.MatchString(path):
		return f.post(w, r)
	case !reads:
		return &problem{http.StatusMethodNotAllowed, "Method Not Allowed"}
	case imagePath.MatchString(path):
		m := imagePath.FindStringSubmatch(path)

		return f.sendImage(w, r, m[1], m[2], m[3])
	case versionsPath.MatchString(path):
		return send(w, http.StatusOK, versions())
	case extensionPath.MatchString(path):
		v, err := version(extensionPath.FindStringSubmatch(path)[1])
		if err != nil {
			return err
		}

		return send(w, http.StatusOK, extensionInfos(v))
	case overlayPath.MatchString(path):
		v, err := version(overlayPath.FindStringSubmatch(path)[1])
		if err != nil {
			return err
		}

		return send(w, http.StatusOK, overlayInfos(v))
	case manifestPath.MatchString(path):
		m := manifestPath.FindStringSubmatch(path)

		return f.manifest(w, r, m[1]+":"+m[2])
	case path == "/healthz" || path == "/v2" || path == "/v2/":
		return nil
	}

	return &problem{http.StatusNotFound, "404 page not found"}
}

func (f *Factory) post(w http.ResponseWriter, r *http.Request) error {
	data, err := io.ReadAll(io.LimitReader(r.Body, maxSchematic))
	if err != nil {
		return fmt.Errorf("reading the schematic: %w", err)
	}
	id, err := f.Register(data)
	if err != nil {
		return err
	}

	normalized, err := f.text(id)
	if err != nil {
		return err
	}

	return send(w, http.StatusCreated, map[string]string{"id": id, "schematic": normalized})
}

func (f *Factory) sendImage(w http.ResponseWriter, r *http.Request, id, v, name string) error {
	data, err := f.Image(id, v, name)
	if err != nil {
		return err
	}

	w.Header().Set("Content-Type", "application/octet-stream")
	w.Header().Set("Content-Length", strconv.Itoa(len(data)))
	w.Header().Set("Content-Disposition", fmt.Sprintf("attachment; filename=%q", name))
	if r.Method == http.MethodGet {
		_, _ = w.Write(data) // the client is gone when this fails
	}

	return nil
}

// manifest lets clients ask a registry whether an installer exists.
func (f *Factory) manifest(w http.ResponseWriter, r *http.Request, ref string) error {
	i, err := f.PullImage(r.Context(), ref)
	if err != nil {
		return send(w, http.StatusNotFound, map[string]any{
			"errors": []map[string]string{{"code": "MANIFEST_UNKNOWN", "message": err.Error()}},
		})
	}

	w.Header().Set("Docker-Content-Digest", digest(ref+i.Talos))

	return send(w, http.StatusOK, map[string]any{
		"schemaVersion": 2, "mediaType": "application/vnd.oci.image.index.v1+json", "manifests": []any{},
		"annotations": map[string]string{"org.opencontainers.image.version": i.Talos},
	})
}

func send(w http.ResponseWriter, status int, body any) error {
	data, err := json.Marshal(body)
	if err != nil {
		return fmt.Errorf("writing the answer: %w", err)
	}
	w.Header().Set("Content-Type", "application/json")
	w.WriteHeader(status)
	_, _ = w.Write(append(data, '\n')) // the client is gone when this fails

	return nil
}
