// SPDX-License-Identifier: Apache-2.0
// Copyright the talos-proxmox authors.

package talosapi

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"time"
)

// patientTransport repeats requests that meet nobody. When the control plane that holds the cluster's
// address goes down, as each does in turn, the address is away for some seconds until another has it; and
// an API server whose etcd elects a leader says so with an error. Requests that change something are
// repeated, and those whose context asks for it; a look at the cluster's health shows what it meets.
type retryTransport struct {
	next  http.RoundTripper
	pause time.Duration
}

type retryKey struct{}

// patiently has requests repeated that only read.
func WithRetry(ctx context.Context) context.Context {
	return context.WithValue(ctx, retryKey{}, true)
}

// RoundTrip sends the request until somebody answers it, or the request's time is up.
func (t retryTransport) RoundTrip(req *http.Request) (*http.Response, error) {
	patient := req.Context().Value(retryKey{}) != nil
	again := (req.Method != http.MethodGet || patient) && (req.Body == nil || req.GetBody != nil)
	for {
		res, err := t.next.RoundTrip(req)
		if !again || !unavailable(res, err) {
			return res, err //nolint:wrapcheck // the caller's own
		}
		timer := time.NewTimer(t.pause)
		select {
		case <-req.Context().Done():
			timer.Stop()

			return res, err //nolint:wrapcheck // what was met last says more than that the time is up
		case <-timer.C:
		}
		if res != nil {
			_ = res.Body.Close() // nobody reads it
		}
		if req.Body != nil {
			body, err := req.GetBody()
			if err != nil {
				return nil, fmt.Errorf("sending it again: %w", err)
			}
			req = req.Clone(req.Context())
			req.Body = body
		}
	}
}

// nobodyThere says whether an answer means that the API is away for a moment.
func unavailable(res *http.Response, err error) bool {
	if err != nil {
		return !errors.Is(err, context.Canceled) && !errors.Is(err, context.DeadlineExceeded)
	}
	switch res.StatusCode {
	case http.StatusBadGateway, http.StatusServiceUnavailable, http.StatusGatewayTimeout, http.StatusInternalServerError:
		return true
	default:
		return false
	}
}
