// SPDX-License-Identifier: Apache-2.0
// Copyright the talos-proxmox authors.

package proxmox_test

import (
	"net/http"
	"net/url"
	"testing"

	"github.com/stretchr/testify/assert"
)

func TestParametersThatProxmoxDoesNotTake(t *testing.T) {
	c := serve(t)
	c.ok(http.MethodPost, "/pools", url.Values{"poolid": {"k8s"}})
	for name, call := range map[string]struct {
		method, path string
		params       url.Values
		want         string
	}{
		"unknown":       {http.MethodPost, "/pools", url.Values{"poolid": {"other"}, "colour": {"red"}}, "400 Parameter verification failed."},
		"unknown query": {http.MethodGet, "/version?colour=red", nil, "400 Parameter verification failed."},
		"missing":       {http.MethodPost, "/pools", url.Values{"comment": {"x"}}, "400 Parameter verification failed."},
		"conflicting":   {http.MethodPut, "/pools/k8s", url.Values{"poolid": {"other"}}, "400 Parameter verification failed."},
		"twice alike":   {http.MethodPut, "/pools/k8s", url.Values{"poolid": {"k8s"}, "comment": {"x"}}, "200 OK"},
	} {
		t.Run(name, func(t *testing.T) {
			status, _ := c.do(call.method, call.path, call.params)
			assert.Equal(t, call.want, status)
		})
	}
}
