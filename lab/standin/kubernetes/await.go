// SPDX-License-Identifier: Apache-2.0
// Copyright the talos-proxmox authors.

package kubernetes

import (
	"context"
	"errors"
	"fmt"
	"strconv"
	"time"

	"github.com/pulumi/pulumi/sdk/v3/go/common/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/talos-proxmox/talos-proxmox/lab/standin/wire"
)

// awaitPause is the pause between two looks at an object.
const awaitPause = 500 * time.Millisecond

// errTimedOut is all that the plugin says at the end of its patience.
var errTimedOut = errors.New("timed out waiting for the condition")

// poll looks until it is done, an error comes, or ctx ends.
func poll(ctx context.Context, look func() (done bool, err error)) error {
	tick := time.NewTicker(awaitPause)
	defer tick.Stop()

	for {
		done, err := look()
		if ctx.Err() != nil {
			return ctx.Err()
		}
		if done || err != nil {
			return err
		}

		select {
		case <-ctx.Done():
			return ctx.Err()
		case <-tick.C:
		}
	}
}

// timeoutFor returns the resource's own timeout, else the object's annotation, else ten minutes.
func timeoutFor(u *unstructured.Unstructured, seconds float64) time.Duration {
	if seconds > 0 {
		return time.Duration(seconds * float64(time.Second))
	}
	if n, err := strconv.Atoi(u.GetAnnotations()[annotationTimeout]); err == nil && n > 0 {
		return time.Duration(n) * time.Second
	}

	return defaultAwait
}

// logger shows progress at a resource, each line once.
func (p *provider) logger(urn resource.URN) func(string) {
	last := ""

	return func(line string) {
		if line != last && line != "" {
			last = line
			p.conn.Log(wire.Info, urn, line)
		}
	}
}

// readiness reports whether an object is ready; why not, where it is not.
type readiness func(u *unstructured.Unstructured) (ready bool, why string)

// conditionOf returns what an object is waited for, nil where it is not.
func conditionOf(u *unstructured.Unstructured) (readiness, error) {
	if text := u.GetAnnotations()[annotationWaitFor]; text != "" {
		return waitFor(text)
	}

	return readyByKind(u), nil
}

// await waits until the object is ready by the rules of its kind, or by pulumi.com/waitFor. It returns
// the object as it was last seen, with an error too.
func (c *cluster) await(
	ctx context.Context, log func(string), u *unstructured.Unstructured, seconds float64,
) (*unstructured.Unstructured, error) {
	if u.GetAnnotations()[annotationSkipAwait] == "true" {
		return u, nil
	}

	ready, err := conditionOf(u)
	if err != nil || ready == nil {
		return u, err
	}

	client, err := c.client(u.GroupVersionKind(), u.GetNamespace())
	if err != nil {
		return u, err
	}

	limited, cancel := context.WithTimeout(ctx, timeoutFor(u, seconds))
	defer cancel()

	live, why := u, ""
	err = poll(limited, func() (bool, error) {
		// Not limited: a client refuses to wait for its turn beyond a deadline, and that would be the reason.
		fresh, err := client.Get(ctx, u.GetName(), metav1.GetOptions{})
		if err != nil {
			if asked(err) {
				return false, err
			}
			why = err.Error() // the API may come back
			return false, nil
		}
		live = fresh

		var done bool
		done, why = ready(live)
		if !done {
			log(why)
		}
		return done, nil
	})

	if errors.Is(err, context.DeadlineExceeded) {
		if u.GetAnnotations()[annotationWaitFor] != "" {
			return live, errTimedOut // what is missing was logged
		}
		return live, fmt.Errorf("%s timed out waiting to be Ready: %s", describe(u), why)
	}

	return live, err
}
