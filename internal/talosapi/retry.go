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

// retryTransport retries requests while the VIP moves or etcd elects a leader: when the control plane that
// holds the VIP goes down, the address is away for some seconds. It retries requests that change something,
// and reads whose context asks for it; a health check must see what it meets.
type retryTransport struct {
	next  http.RoundTripper
	pause time.Duration
}

type retryKey struct{}

// WithRetry returns a context whose reads are retried too.
func WithRetry(ctx context.Context) context.Context {
	return context.WithValue(ctx, retryKey{}, true)
}

// RoundTrip sends the request until the API answers it, or the request's time is up.
func (t retryTransport) RoundTrip(req *http.Request) (*http.Response, error) {
	patient := req.Context().Value(retryKey{}) != nil
	again := (req.Method != http.MethodGet || patient) && (req.Body == nil || req.GetBody != nil)
	for {
		res, err := t.next.RoundTrip(req)
		if !again || !unavailable(res, err) {
			return res, err
		}
		timer := time.NewTimer(t.pause)
		select {
		case <-req.Context().Done():
			timer.Stop()

			return res, err
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

// WrappedRoundTripper implements k8s.io/apimachinery/pkg/util/net.RoundTripperWrapper.
func (t retryTransport) WrappedRoundTripper() http.RoundTripper { return t.next }

// unavailable reports whether an answer means that the API is away for a moment.
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
