// SPDX-License-Identifier: Apache-2.0
// Copyright the talos-proxmox authors.

package cluster

import (
	"context"
	"errors"
	"testing"

	"github.com/stretchr/testify/assert"
)

func TestTheEndOfAWaitDoesNotHideItsReason(t *testing.T) {
	t.Parallel()

	ctx, cancel := context.WithCancel(t.Context())
	refused := errors.New("connection refused")

	var last error
	Remember(ctx, &last, refused)
	cancel()
	Remember(ctx, &last, context.DeadlineExceeded)
	assert.Equal(t, refused, last)

	last = nil
	Remember(ctx, &last, context.DeadlineExceeded)
	assert.Equal(t, context.DeadlineExceeded, last, "better than nothing")
}
