// SPDX-License-Identifier: Apache-2.0
// Copyright the talos-proxmox authors.

package git

import (
	"encoding/json"
	"errors"
	"net/http"
	"net/url"
	"regexp"
	"strconv"
)

// dialect describes how a git host's API speaks of deploy keys.
type dialect struct {
	// path has the repository and, at its end, a key's id.
	path *regexp.Regexp
	// refused is the status of a key that is.
	refused int
	// titled: no two keys of a repository have the same title.
	titled bool
	shape  func(Key) any
}

// A GitLab project is one segment, escaped; the others have owner and name.
var dialects = []dialect{
	{
		regexp.MustCompile(`^/api/v1/repos/([^/]+/[^/]+)/keys(?:/(\d+))?$`), http.StatusUnprocessableEntity, true,
		func(k Key) any { return k },
	},
	{
		regexp.MustCompile(`^(?:/api/v3)?/repos/([^/]+/[^/]+)/keys(?:/(\d+))?$`), http.StatusUnprocessableEntity, false,
		func(k Key) any { return k },
	},
	{
		regexp.MustCompile(`^/api/v4/projects/([^/]+)/deploy_keys(?:/(\d+))?$`), http.StatusBadRequest, false,
		func(k Key) any {
			return map[string]any{"id": k.ID, "title": k.Title, "key": k.Key, "can_push": !k.ReadOnly}
		},
	},
}

// spoken finds the dialect of a path, escaped as it came.
func spoken(escaped string) (d dialect, repository, id string, ok bool) {
	for _, d := range dialects {
		if m := d.path.FindStringSubmatch(escaped); m != nil {
			repository, err := url.PathUnescape(m[1])

			return d, repository, m[2], err == nil
		}
	}

	return dialect{}, "", "", false
}

var apiForm = regexp.MustCompile(`^(/api/v[134])?/(repos/[^/]+/[^/]+/keys|projects/.+/deploy_keys)(/\d+)?$`)

func isAPI(urlPath string) bool { return apiForm.MatchString(urlPath) }

// request decodes a key that is to be registered, in any dialect.
type request struct {
	Title    string `json:"title"`
	Key      string `json:"key"`
	ReadOnly *bool  `json:"read_only"`
	CanPush  *bool  `json:"can_push"`
}

// readOnly returns what the request says; GitHub and Gitea let a key write unless told otherwise.
func (q request) readOnly(gitlab bool) bool {
	if gitlab {
		return q.CanPush == nil || !*q.CanPush
	}

	return q.ReadOnly != nil && *q.ReadOnly
}

func (h *Host) serveAPI(w http.ResponseWriter, r *http.Request, host string) {
	d, repository, id, ok := spoken(r.URL.EscapedPath())
	if !ok {
		http.NotFound(w, r)

		return
	}
	if known, _ := h.authenticated(r); !known {
		answer(w, http.StatusUnauthorized, message("Bad credentials"))

		return
	}
	dir, err := h.find(host, repository)
	if err != nil {
		answer(w, http.StatusNotFound, message("Not Found"))

		return
	}
	switch {
	case id == "" && r.Method == http.MethodGet:
		h.listKeys(w, d, dir)
	case id == "" && r.Method == http.MethodPost:
		h.createKey(w, r, d, dir)
	case id != "":
		h.oneKey(w, r, d, dir, id)
	default:
		answer(w, http.StatusMethodNotAllowed, message("Method Not Allowed"))
	}
}

func (h *Host) listKeys(w http.ResponseWriter, d dialect, dir string) {
	keys, err := keysOf(dir)
	if err != nil {
		answer(w, http.StatusInternalServerError, message(err.Error()))

		return
	}
	list := []any{}
	for _, k := range keys {
		list = append(list, d.shape(k))
	}
	answer(w, http.StatusOK, list)
}

func (h *Host) createKey(w http.ResponseWriter, r *http.Request, d dialect, dir string) {
	var q request
	if err := json.NewDecoder(r.Body).Decode(&q); err != nil {
		answer(w, http.StatusBadRequest, message("Problems parsing JSON"))

		return
	}
	gitlab := d.refused == http.StatusBadRequest
	key, err := h.addKey(dir, Key{Title: q.Title, Key: q.Key, ReadOnly: q.readOnly(gitlab)}, d.titled)
	switch {
	case errors.Is(err, errNoKey), errors.Is(err, errKeyInUse), errors.Is(err, errTitleUsed):
		answer(w, d.refused, message(err.Error()))
	case err != nil:
		answer(w, http.StatusInternalServerError, message(err.Error()))
	default:
		answer(w, http.StatusCreated, d.shape(key))
	}
}

func (h *Host) oneKey(w http.ResponseWriter, r *http.Request, d dialect, dir, text string) {
	id, err := strconv.Atoi(text)
	if err != nil {
		answer(w, http.StatusNotFound, message("Not Found"))

		return
	}
	if r.Method == http.MethodDelete {
		if found, err := h.removeKey(dir, id); err != nil || !found {
			answer(w, http.StatusNotFound, message("Not Found"))

			return
		}
		w.WriteHeader(http.StatusNoContent)

		return
	}
	keys, err := keysOf(dir)
	if err == nil && r.Method == http.MethodGet {
		for _, k := range keys {
			if k.ID == id {
				answer(w, http.StatusOK, d.shape(k))

				return
			}
		}
	}
	answer(w, http.StatusNotFound, message("Not Found"))
}

func message(text string) map[string]string { return map[string]string{"message": text} }

func answer(w http.ResponseWriter, status int, body any) {
	w.Header().Set("Content-Type", "application/json")
	w.WriteHeader(status)
	_ = json.NewEncoder(w).Encode(body) // the client is gone when this fails
}
