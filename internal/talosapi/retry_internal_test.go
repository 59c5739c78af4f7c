// SPDX-License-Identifier: Apache-2.0
// Copyright the talos-proxmox authors.

package talosapi

import (
	"context"
	"errors"
	"io"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// answers hold what a transport meets, one after the other, and the bodies that it was sent.
type answers struct {
	left   []any
	bodies []string
}

func (a *answers) RoundTrip(req *http.Request) (*http.Response, error) {
	body := ""
	if req.Body != nil {
		text, err := io.ReadAll(req.Body)
		if err != nil {
			return nil, err
		}
		body = string(text)
	}
	a.bodies = append(a.bodies, body)
	next := a.left[0]
	if len(a.left) > 1 {
		a.left = a.left[1:]
	}
	if err, ok := next.(error); ok {
		return nil, err
	}

	return &http.Response{StatusCode: next.(int), Body: http.NoBody}, nil
}

func TestAChangeIsRepeatedUntilSomebodyAnswers(t *testing.T) {
	t.Parallel()

	away := errors.New("dial tcp 10.0.0.10:6443: connect: no route to host")
	for name, c := range map[string]struct {
		method  string
		patient bool
		met     []any
		asked   int
		status  int
	}{
		"a change":         {method: http.MethodPatch, met: []any{away, 503, 200}, asked: 3, status: 200},
		"a refused change": {method: http.MethodPatch, met: []any{429, 200}, asked: 1, status: 429},
		"a look":           {method: http.MethodGet, met: []any{away, 200}, asked: 1},
		"a patient look":   {method: http.MethodGet, patient: true, met: []any{away, 200}, asked: 2, status: 200},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()

			ctx := t.Context()
			if c.patient {
				ctx = WithRetry(ctx)
			}
			req, err := http.NewRequestWithContext(ctx, c.method, "https://10.0.0.10:6443/", strings.NewReader("body"))
			require.NoError(t, err)
			met := &answers{left: c.met}
			res, err := retryTransport{next: met, pause: time.Millisecond}.RoundTrip(req)
			if c.status == 0 {
				require.ErrorIs(t, err, away)
			} else {
				require.NoError(t, err)
				defer res.Body.Close() //nolint:errcheck // empty
				assert.Equal(t, c.status, res.StatusCode)
			}
			assert.Len(t, met.bodies, c.asked)
			for _, body := range met.bodies {
				assert.Equal(t, "body", body, "it is sent whole each time")
			}
		})
	}
}

func TestAChangeIsNotRepeatedForEver(t *testing.T) {
	t.Parallel()

	away := errors.New("no route to host")
	ctx, cancel := context.WithTimeout(t.Context(), 20*time.Millisecond)
	defer cancel()
	req, err := http.NewRequestWithContext(ctx, http.MethodDelete, "https://10.0.0.10:6443/", nil)
	require.NoError(t, err)
	_, err = retryTransport{next: &answers{left: []any{away}}, pause: time.Millisecond}.RoundTrip(req)
	require.ErrorIs(t, err, away)
}
