// SPDX-License-Identifier: Apache-2.0
// Copyright the talos-proxmox authors.

package operations

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
	remember(ctx, &last, refused)
	cancel()
	remember(ctx, &last, context.DeadlineExceeded)
	assert.Equal(t, refused, last)

	last = nil
	remember(ctx, &last, context.DeadlineExceeded)
	assert.Equal(t, context.DeadlineExceeded, last, "better than nothing")
}
