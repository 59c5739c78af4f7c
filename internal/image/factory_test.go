// SPDX-License-Identifier: Apache-2.0
// Copyright the talos-proxmox authors.

package image_test

import (
	"io"
	"net/http"
	"net/http/httptest"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/talos-proxmox/talos-proxmox/internal/image"
	"github.com/talos-proxmox/talos-proxmox/spec"
)

// silence answers nobody until the caller gives up.
func silence(_ http.ResponseWriter, r *http.Request) {
	_, _ = io.Copy(io.Discard, r.Body) // a server notices that the caller has gone once the body is read
	<-r.Context().Done()
}

func TestAwake(t *testing.T) {
	t.Parallel()
	for name, test := range map[string]struct {
		answer http.HandlerFunc
		silent bool
	}{
		"it answers": {answer: func(w http.ResponseWriter, r *http.Request) {
			body, _ := io.ReadAll(r.Body)
			assert.Equal(t, "POST /schematics customization: {}", r.Method+" "+r.URL.Path+" "+string(body))
			w.WriteHeader(http.StatusCreated)
		}},
		"it is broken, which the provider says": {answer: func(w http.ResponseWriter, _ *http.Request) {
			w.WriteHeader(http.StatusServiceUnavailable)
		}},
		"it takes the call and says nothing": {silent: true, answer: silence},
		"it stops in the middle": {silent: true, answer: func(w http.ResponseWriter, r *http.Request) {
			w.WriteHeader(http.StatusCreated)
			_ = http.NewResponseController(w).Flush()
			silence(w, r)
		}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s := httptest.NewServer(test.answer)
			t.Cleanup(s.Close)
			limit := time.Minute
			if test.silent {
				limit = 50 * time.Millisecond
			}
			err := image.CheckReachable(t.Context(), spec.Image{FactoryURL: &s.URL}, "customization: {}", limit)
			if !test.silent {
				require.NoError(t, err)

				return
			}
			require.EqualError(t, err, "the Image Factory "+s.URL+" did not answer within 50ms\n"+
				"  look at: curl -v "+s.URL+"/version; when it answers, run `pulumi up` again")
		})
	}
}
