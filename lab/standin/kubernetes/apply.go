// SPDX-License-Identifier: Apache-2.0
// Copyright the talos-proxmox authors.

package kubernetes

import (
	"context"
	"encoding/json"
	"fmt"
	"time"

	"github.com/pulumi/pulumi/sdk/v3/go/common/resource"
	"github.com/pulumi/pulumi/sdk/v3/go/common/resource/plugin"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"

	"github.com/talos-proxmox/talos-proxmox/lab/standin/bridge"
)

// How often an object is tried whose kind or namespace is not there yet, and the first pause, which
// doubles.
const (
	applyTries = 5
	applyPause = 500 * time.Millisecond
)

// newManager makes a field manager of an object's own, so that two objects of one name never share.
func newManager(seed []byte) (string, error) {
	return resource.NewUniqueName(seed, "pulumi-kubernetes-", 8, 0, nil)
}

func managerOf(state resource.PropertyMap) (string, error) {
	if m := opened(state[keyManager]); m.IsString() && m.StringValue() != "" {
		return m.StringValue(), nil
	}

	return newManager(nil)
}

// apply writes the object as manager; with dry it is only checked.
func (c *cluster) apply(
	ctx context.Context, u *unstructured.Unstructured, manager string, dry bool,
) (*unstructured.Unstructured, error) {
	client, err := c.client(u.GroupVersionKind(), u.GetNamespace())
	if err != nil {
		return nil, err
	}

	text, err := json.Marshal(u.Object)
	if err != nil {
		return nil, fmt.Errorf("encoding %s: %w", describe(u), err)
	}

	// A plan asks nobody to give a field up.
	force := dry || u.GetAnnotations()[annotationPatchForce] == "true"
	options := metav1.PatchOptions{FieldManager: manager, Force: &force, FieldValidation: metav1.FieldValidationWarn}
	if dry {
		options.DryRun = []string{metav1.DryRunAll}
	}

	if u.GetName() == "" { // generateName: there is nothing to patch yet
		create := metav1.CreateOptions{FieldManager: manager, DryRun: options.DryRun}
		return client.Create(ctx, u, create)
	}

	return client.Patch(ctx, u.GetName(), types.ApplyPatchType, text, options)
}

// applyWithPatience repeats while the kind or the namespace is not there.
func (c *cluster) applyWithPatience(
	ctx context.Context, u *unstructured.Unstructured, manager string,
) (*unstructured.Unstructured, error) {
	pause := applyPause

	for i := 1; ; i++ {
		live, err := c.apply(ctx, u, manager, false)
		if (!meta.IsNoMatchError(err) && !apierrors.IsNotFound(err)) || i == applyTries {
			return live, explained(manager, err)
		}

		timer := time.NewTimer(pause)
		select {
		case <-ctx.Done():
			timer.Stop()
			return nil, explained(manager, err)
		case <-timer.C:
		}
		pause *= 2
	}
}

// explained puts what a user can do about it into an error.
func explained(manager string, err error) error {
	if !apierrors.IsConflict(err) {
		return err
	}

	return fmt.Errorf("Server-Side Apply field conflict detected. See "+
		"https://www.pulumi.com/registry/packages/kubernetes/how-to-guides/managing-resources-with-server-side-apply/"+
		"#handle-field-conflicts-on-existing-resources for troubleshooting help.\nThe resource managed by field "+
		"manager %q had an apply conflict: %w", manager, err) // the plugin's text
}

// notCreated says that the API refused an object; urn is what the program calls it.
func notCreated(urn resource.URN, err error) error {
	if meta.IsNoMatchError(err) {
		apiVersion, kind := string(urn.Type().Module().Name()), urn.Type().Name()

		return fmt.Errorf("creation of resource %q with kind %s/%s failed because the Kubernetes API server reported that "+
			"the apiVersion for this resource does not exist. Verify that any required CRDs have been created: %w",
			urn, apiVersion, kind, err)
	}

	return fmt.Errorf("resource %q was not successfully created by the Kubernetes API server: %w", urn, err)
}

// Create applies the object and waits until it is ready. A preview lets the API check it, if it can.
func (p *provider) Create(ctx context.Context, req plugin.CreateRequest) (plugin.CreateResponse, error) {
	c, err := p.configured()
	if err != nil {
		return plugin.CreateResponse{}, err
	}
	if string(req.Type) == releaseToken {
		return p.createRelease(ctx, c, req)
	}

	u := objectOf(req.Properties)
	if req.Preview {
		props, err := c.preview(ctx, u, req.Properties, nil)
		if err != nil {
			return plugin.CreateResponse{}, notCreated(req.URN, err)
		}
		return plugin.CreateResponse{Properties: props}, nil
	}
	if c.unreachable != "" {
		return plugin.CreateResponse{}, c.errUnreachable()
	}

	ctx, cancel := bridge.Bounded(ctx, p.conn, 0)
	defer cancel()

	manager, err := newManager(nil)
	if err != nil {
		return plugin.CreateResponse{}, err
	}

	live, err := c.applyWithPatience(ctx, u, manager)
	if err != nil {
		return plugin.CreateResponse{}, notCreated(req.URN, err)
	}
	if _, err := conditionOf(live); err != nil {
		return plugin.CreateResponse{}, notCreated(req.URN, err)
	}

	ready, err := c.await(ctx, p.logger(req.URN), live, req.Timeout)
	out := outputsOf(ready, req.Properties, manager)
	if err != nil {
		return plugin.CreateResponse{}, bridge.Partial(string(idOf(live)), req.Properties, out,
			fmt.Errorf("resource %q was successfully created, but the Kubernetes API server reported that it failed to "+
				"fully initialize or become live: %w", req.URN, err))
	}

	return plugin.CreateResponse{ID: idOf(live), Properties: out}, nil
}

// preview returns the object as the API would make it, or what is known of it.
func (c *cluster) preview(
	ctx context.Context, u *unstructured.Unstructured, in, old resource.PropertyMap,
) (resource.PropertyMap, error) {
	if c.unreachable != "" || in.ContainsUnknowns() || !c.serverSideApply {
		return in, nil
	}

	manager, err := managerOf(old)
	if err != nil {
		return nil, err
	}

	live, err := c.apply(ctx, u, manager, true)
	switch {
	case err == nil:
	case meta.IsNoMatchError(err), apierrors.IsNotFound(err), apierrors.IsForbidden(err), !asked(err):
		return in, nil // its kind or namespace may come in the same run
	default:
		return nil, err
	}
	if len(old) == 0 {
		unstructured.RemoveNestedField(live.Object, "status")
	}

	return outputsOf(live, in, manager), nil
}

// asked tells an answer of the API from a failure to ask.
func asked(err error) bool {
	_, ok := err.(apierrors.APIStatus) // the client returns it bare
	return ok
}
