// SPDX-License-Identifier: Apache-2.0
// Copyright the talos-proxmox authors.

package kubernetes

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/pulumi/pulumi/sdk/v3/go/common/resource"
	"github.com/pulumi/pulumi/sdk/v3/go/common/resource/plugin"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/talos-proxmox/talos-proxmox/lab/standin/bridge"
	"github.com/talos-proxmox/talos-proxmox/lab/standin/wire"
)

const adviceDelete = "\nIf the cluster was deleted, you can remove this resource from Pulumi state by rerunning the " +
	"operation with the PULUMI_K8S_DELETE_UNREACHABLE environment variable set to \"true\""

// defaultAwait bounds a wait where neither the program nor the object says otherwise.
const defaultAwait = 10 * time.Minute

// Delete removes the object and waits until it is gone, finalizers included.
func (p *provider) Delete(ctx context.Context, req plugin.DeleteRequest) (plugin.DeleteResponse, error) {
	c, err := p.configured()
	if err != nil {
		return plugin.DeleteResponse{}, err
	}

	if c.unreachable != "" {
		if c.deleteUnreachable {
			p.conn.Log(wire.Warning, req.URN, "configured Kubernetes cluster is unreachable: "+c.unreachable)
			return plugin.DeleteResponse{}, nil
		}
		return plugin.DeleteResponse{}, fmt.Errorf("%w%s", c.errUnreachable(), adviceDelete)
	}
	if string(req.Type) == releaseToken {
		return p.deleteRelease(ctx, c, req)
	}

	u := objectOf(req.Outputs)
	apiVersion, kind, err := kindOf(string(req.Type))
	if err != nil {
		return plugin.DeleteResponse{}, err
	}
	u.SetAPIVersion(apiVersion)
	u.SetKind(kind)

	ctx, cancel := bridge.Bounded(ctx, p.conn, 0)
	defer cancel()

	return plugin.DeleteResponse{}, c.remove(ctx, u, req.ID, req.Timeout, p.logger(req.URN))
}

func (c *cluster) remove(
	ctx context.Context, u *unstructured.Unstructured, id resource.ID, seconds float64, log func(string),
) error {
	namespace, name := nameOf(id)

	client, err := c.client(u.GroupVersionKind(), namespace)
	if meta.IsNoMatchError(err) {
		return nil // its kind is gone, and it with it
	}
	if err != nil {
		return fmt.Errorf("deleting %s: %w", id, err)
	}

	policy := metav1.DeletePropagationForeground
	switch strings.ToLower(u.GetAnnotations()[annotationPropagation]) {
	case "background":
		policy = metav1.DeletePropagationBackground
	case "orphan":
		policy = metav1.DeletePropagationOrphan
	}

	err = client.Delete(ctx, name, metav1.DeleteOptions{PropagationPolicy: &policy})
	if apierrors.IsNotFound(err) {
		return nil
	}
	if err != nil {
		return fmt.Errorf("deleting %s: %w", id, err)
	}
	if u.GetAnnotations()[annotationSkipAwait] == "true" {
		return nil
	}

	return gone(ctx, client, u, name, id, timeoutFor(u, seconds), log)
}

// getter names the part of a client that waits need.
type getter interface {
	Get(context.Context, string, metav1.GetOptions, ...string) (*unstructured.Unstructured, error)
}

func gone(
	ctx context.Context, client getter, was *unstructured.Unstructured, name string, id resource.ID, limit time.Duration,
	log func(string),
) error {
	limited, cancel := context.WithTimeout(ctx, limit)
	defer cancel()

	err := poll(limited, func() (bool, error) {
		// Not limited: a client refuses to wait for its turn beyond a deadline, and that would be the error.
		live, err := client.Get(ctx, name, metav1.GetOptions{})
		if apierrors.IsNotFound(err) {
			return true, nil
		}
		if err != nil {
			return false, err
		}
		if f := live.GetFinalizers(); len(f) > 0 {
			log("finalizers might be preventing deletion (" + strings.Join(f, ", ") + ")")
		}
		// Somebody made another object of the same name.
		return was.GetUID() != "" && live.GetUID() != was.GetUID(), nil
	})

	if errors.Is(err, context.DeadlineExceeded) {
		return errTimedOut
	}
	if err != nil {
		return fmt.Errorf("deleting %s: %w", id, err)
	}

	return nil
}
