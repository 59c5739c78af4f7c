// SPDX-License-Identifier: Apache-2.0
// Copyright the talos-proxmox authors.

package proxmox

import (
	"context"
	"errors"
	"net/http"
)

// Get asks for a path of the API and decodes the answer's data.
func (c *Client) Get(ctx context.Context, path string, into any) error {
	return c.call(ctx, http.MethodGet, path, nil, into)
}

// Status returns the HTTP status of an answer that is an error, and 0 for any other error.
func Status(err error) int {
	var r *refused
	if errors.As(err, &r) {
		return r.code
	}

	return 0
}
