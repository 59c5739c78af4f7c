// SPDX-License-Identifier: Apache-2.0
// Copyright the talos-proxmox authors.

package image

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"strings"
	"time"

	"github.com/talos-proxmox/talos-proxmox/spec"
)

// answerLimit is how much of an answer is read.
const answerLimit = 1 << 20

// CheckReachable returns nil when the image's factory answers the registration of a schematic within limit, whatever it
// answers. The Talos provider waits for that answer for ever; what else may go wrong it tells itself. A schematic
// may be registered any number of times. The request goes through HTTPS_PROXY where that is set.
func CheckReachable(ctx context.Context, img spec.Image, schematicYAML string, limit time.Duration) error {
	factory := strings.TrimSuffix(spec.Value(img.FactoryURL), "/")
	calling, cancel := context.WithTimeout(ctx, limit)
	defer cancel()
	req, err := http.NewRequestWithContext(calling, http.MethodPost, factory+"/schematics", strings.NewReader(schematicYAML))
	if err != nil {
		return fmt.Errorf("asking the Image Factory %s: %w", factory, err)
	}
	res, err := http.DefaultClient.Do(req)
	if err == nil {
		_, err = io.Copy(io.Discard, io.LimitReader(res.Body, answerLimit))
		_ = res.Body.Close() // only read
	}
	var network net.Error
	silent := errors.Is(err, context.DeadlineExceeded) || errors.As(err, &network) && network.Timeout()
	if silent && ctx.Err() == nil {
		return fmt.Errorf("the Image Factory %s did not answer within %s\n"+
			"  look at: curl -v %s/version; when it answers, run `pulumi up` again", factory, limit, factory)
	}

	return nil
}
