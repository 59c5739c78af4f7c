// SPDX-License-Identifier: Apache-2.0
// Copyright the talos-proxmox authors.

package fault

import (
	"bytes"
	"cmp"
	"context"
	"io"
	"net/http"
	"strings"
	"time"
)

// Answer describes an error that an API gives.
type Answer struct {
	Status  int
	Message string
}

// Call describes a call of an API that may go wrong.
type Call struct {
	API, Name, Method string
	// Node are the names of the node that is called, nil when it is none.
	Node []string
}

// Befall waits as slow and silent APIs make callers wait, and returns the error that the API answers
// with, nil for none. It fails with the context's error when the caller gave up, and with [ErrSilent]
// when the fault was removed before it answered.
func (s *Set) Befall(ctx context.Context, c Call) (*Answer, error) {
	if s == nil {
		return nil, nil // nothing goes wrong
	}
	about := About{"api": {c.API}, "call": {c.Name}, "method": {c.Method}, "node": c.Node}
	object := c.API + "/" + strings.TrimPrefix(c.Name, "/")

	if f, yes := s.Strike(APISlow, object, about); yes {
		t := time.NewTimer(f.Duration("by"))
		defer t.Stop()
		select {
		case <-t.C:
		case <-f.Over:
		case <-ctx.Done():
			return nil, ctx.Err()
		}
	}
	if f, yes := s.Strike(APITimeout, object, about); yes {
		select {
		case <-f.Over:
			return nil, ErrSilent
		case <-ctx.Done():
			return nil, ctx.Err()
		}
	}
	if f, yes := s.Strike(APIError, object, about); yes {
		status := f.number("status")

		return &Answer{Status: status, Message: cmp.Or(f.With["message"], http.StatusText(status), "Internal Server Error")}, nil
	}

	return nil, nil // nothing goes wrong
}

// ErrSilent: the call is never answered.
var ErrSilent = errSilent{}

type errSilent struct{}

func (errSilent) Error() string { return "the call is never answered" }

// HTTP lets calls of an HTTP API go wrong. Refuse answers with an error as that API does; below is cut
// off the paths that faults name.
func (s *Set) HTTP(
	api, below string, refuse func(http.ResponseWriter, Answer), next http.Handler,
) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if s == nil || len(s.List()) == 0 {
			next.ServeHTTP(w, r)

			return
		}
		// A server notices that the caller has gone once the body is read.
		body, err := io.ReadAll(r.Body)
		if err != nil {
			return // the caller has gone
		}
		r.Body = io.NopCloser(bytes.NewReader(body))

		a, err := s.Befall(r.Context(), Call{API: api, Name: strings.TrimPrefix(r.URL.Path, below), Method: r.Method})
		switch {
		case err != nil:
			hangUp(w)
		case a != nil:
			refuse(w, *a)
		default:
			next.ServeHTTP(w, r)
		}
	})
}

// hangUp closes a connection without an answer.
func hangUp(w http.ResponseWriter) {
	if conn, _, err := http.NewResponseController(w).Hijack(); err == nil {
		_ = conn.Close() // nobody is answered
	}
}
