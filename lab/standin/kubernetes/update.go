// SPDX-License-Identifier: Apache-2.0
// Copyright the talos-proxmox authors.

package kubernetes

import (
	"context"
	"fmt"

	"github.com/pulumi/pulumi/sdk/v3/go/common/resource"
	"github.com/pulumi/pulumi/sdk/v3/go/common/resource/plugin"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/talos-proxmox/talos-proxmox/lab/standin/bridge"
	"github.com/talos-proxmox/talos-proxmox/lab/standin/wire"
)

// Update applies the new inputs as the same field manager, which gives up what they no longer have.
func (p *provider) Update(ctx context.Context, req plugin.UpdateRequest) (plugin.UpdateResponse, error) {
	c, err := p.configured()
	if err != nil {
		return plugin.UpdateResponse{}, err
	}
	if string(req.Type) == releaseToken {
		return p.updateRelease(ctx, c, req)
	}

	u := objectOf(req.NewInputs)
	if req.Preview {
		props, err := c.preview(ctx, u, req.NewInputs, req.OldOutputs)
		if err != nil {
			return plugin.UpdateResponse{}, notLive(req.ID, err)
		}
		return plugin.UpdateResponse{Properties: props}, nil
	}
	if c.unreachable != "" {
		return plugin.UpdateResponse{}, c.errUnreachable()
	}

	ctx, cancel := bridge.Bounded(ctx, p.conn, 0)
	defer cancel()

	manager, err := managerOf(req.OldOutputs)
	if err != nil {
		return plugin.UpdateResponse{}, err
	}

	live, err := c.applyWithPatience(ctx, u, manager)
	if err != nil {
		return plugin.UpdateResponse{}, notLive(req.ID, err)
	}

	ready, err := c.await(ctx, p.logger(req.URN), live, req.Timeout)
	out := outputsOf(ready, req.NewInputs, manager)
	if err != nil {
		return plugin.UpdateResponse{}, bridge.Partial(string(req.ID), req.NewInputs, out,
			notLive(req.ID, err))
	}

	return plugin.UpdateResponse{Properties: out}, nil
}

// notLive says that an update did not come about.
func notLive(id resource.ID, err error) error {
	return fmt.Errorf("the Kubernetes API server reported that %q failed to fully initialize or become live: %w", id, err)
}

// Read tells what the object is now. An object that is gone leaves the state.
func (p *provider) Read(ctx context.Context, req plugin.ReadRequest) (plugin.ReadResponse, error) {
	c, err := p.configured()
	if err != nil {
		return plugin.ReadResponse{}, err
	}

	if c.unreachable != "" {
		if c.deleteUnreachable {
			p.conn.Log(wire.Warning, req.URN, "configured Kubernetes cluster is unreachable: "+c.unreachable)
			return plugin.ReadResponse{}, nil
		}
		return plugin.ReadResponse{}, fmt.Errorf("failed to read resource %s: %w%s", req.ID, c.errUnreachable(), adviceDelete)
	}
	if string(req.Type) == releaseToken {
		return p.readRelease(ctx, c, req)
	}

	apiVersion, kind, err := kindOf(string(req.Type))
	if err != nil {
		return plugin.ReadResponse{}, err
	}

	ctx, cancel := bridge.Bounded(ctx, p.conn, req.Timeout)
	defer cancel()

	live, err := c.lookUp(ctx, apiVersion, kind, req.ID)
	if apierrors.IsNotFound(err) || meta.IsNoMatchError(err) {
		return plugin.ReadResponse{}, nil
	}
	if err != nil {
		return plugin.ReadResponse{}, fmt.Errorf("reading %s: %w", req.ID, err)
	}

	manager, err := managerOf(req.State)
	if err != nil {
		return plugin.ReadResponse{}, err
	}

	inputs := imported(live)
	if len(req.Inputs) > 0 {
		inputs = bridge.Refresh(resource.NewProperty(req.Inputs), resource.NewProperty(propertiesOf(live))).ObjectValue()
	}

	return plugin.ReadResponse{ReadResult: plugin.ReadResult{
		ID: idOf(live), Inputs: inputs, Outputs: outputsOf(live, inputs, manager),
	}}, nil
}

func (c *cluster) lookUp(
	ctx context.Context, apiVersion, kind string, id resource.ID,
) (*unstructured.Unstructured, error) {
	namespace, name := nameOf(id)
	u := &unstructured.Unstructured{}
	u.SetAPIVersion(apiVersion)
	u.SetKind(kind)

	client, err := c.client(u.GroupVersionKind(), namespace)
	if err != nil {
		return nil, err
	}

	return client.Get(ctx, name, metav1.GetOptions{})
}

// imported returns what a program would write to get the object.
func imported(live *unstructured.Unstructured) resource.PropertyMap {
	u := live.DeepCopy()
	delete(u.Object, "status")
	for _, f := range []string{"creationTimestamp", "generation", "managedFields", "resourceVersion", "uid", "selfLink"} {
		unstructured.RemoveNestedField(u.Object, "metadata", f)
	}

	props := propertiesOf(u)
	if u.GetKind() == "Secret" {
		props = bridge.MarkSecrets(props, []string{"data"})
	}

	return props
}
