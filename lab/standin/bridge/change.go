// SPDX-License-Identifier: Apache-2.0
// Copyright the talos-proxmox authors.

package bridge

import (
	"context"
	"fmt"

	"github.com/pulumi/pulumi/sdk/v3/go/common/resource"
	"github.com/pulumi/pulumi/sdk/v3/go/common/resource/plugin"
)

// Update changes the resource; in a preview it tells what is known of the result.
func (p *provider) Update(ctx context.Context, req plugin.UpdateRequest) (plugin.UpdateResponse, error) {
	r, t, err := p.resource(string(req.Type))
	if err != nil {
		return plugin.UpdateResponse{}, err
	}

	if req.Preview {
		op := &Op{Conn: p.conn, URN: req.URN, Name: req.URN.Name(), ID: string(req.ID)}
		r.compare(op, req.OldInputs, req.NewInputs, req.OldOutputs, req.IgnoreChanges)

		unknown := op.stale()
		if r.Recompute != nil {
			unknown = append(unknown, r.Recompute(op.Changes)...)
		}
		props, err := p.plan(ctx, r, t, op, req.NewInputs, req.OldOutputs, unknown)
		return plugin.UpdateResponse{Properties: props}, err
	}

	op, err := p.op(req.URN, req.ID)
	if err != nil {
		return plugin.UpdateResponse{}, err
	}
	r.compare(op, req.OldInputs, req.NewInputs, req.OldOutputs, req.IgnoreChanges)

	ctx, cancel := Bounded(ctx, p.conn, req.Timeout)
	defer cancel()

	out, err := r.Update(ctx, op)
	base := r.carry(req.NewInputs, req.OldOutputs)
	if err != nil {
		err = explain(ctx, err, "updating "+op.Name)
		if !r.KeepsFailedUpdate {
			return plugin.UpdateResponse{}, err
		}
		return plugin.UpdateResponse{}, Partial(op.ID, req.NewInputs, r.outputs(base, out), err)
	}

	props, err := r.checked(t, base, out)

	return plugin.UpdateResponse{Properties: r.identified(props, resource.NewProperty(op.ID))}, err
}

// Read tells what the resource is now.
func (p *provider) Read(ctx context.Context, req plugin.ReadRequest) (plugin.ReadResponse, error) {
	r, t, err := p.resource(string(req.Type))
	if err != nil {
		return plugin.ReadResponse{}, err
	}

	if _, have := req.State[idKey]; have && !r.Framework {
		// The engine adds it to the state of what was made in part.
		req.State = req.State.Copy()
		delete(req.State, idKey)
	}
	same := plugin.ReadResponse{ReadResult: plugin.ReadResult{ID: req.ID, Inputs: req.Inputs, Outputs: req.State}}
	if r.Read == nil {
		if len(req.State) == 0 {
			return plugin.ReadResponse{}, fmt.Errorf("importing %s: the provider cannot import %s", req.ID, req.Type)
		}
		return same, nil
	}

	op, err := p.op(req.URN, req.ID)
	if err != nil {
		return plugin.ReadResponse{}, err
	}
	op.In, op.Was, op.State = TreeOf(req.Inputs), TreeOf(req.Inputs), TreeOf(req.State)

	ctx, cancel := Bounded(ctx, p.conn, req.Timeout)
	defer cancel()

	out, err := r.Read(ctx, op)
	if err != nil {
		return plugin.ReadResponse{}, explain(ctx, err, "reading "+op.Name)
	}
	if out == nil {
		return plugin.ReadResponse{}, nil
	}

	props, err := r.checked(t, r.carry(nil, req.State), out)
	if err != nil {
		return plugin.ReadResponse{}, err
	}

	props = r.identified(props, resource.NewProperty(op.ID))
	props = KeepSecrets(resource.NewProperty(props), resource.NewProperty(req.State)).ObjectValue()
	inputs := inputsFrom(t.args, req.Inputs, props, len(req.State) == 0)

	return plugin.ReadResponse{ReadResult: plugin.ReadResult{ID: resource.ID(op.ID), Inputs: inputs, Outputs: props}}, nil
}

// Delete removes the resource.
func (p *provider) Delete(ctx context.Context, req plugin.DeleteRequest) (plugin.DeleteResponse, error) {
	r, _, err := p.resource(string(req.Type))
	if err != nil || r.Delete == nil {
		return plugin.DeleteResponse{}, err
	}

	op, err := p.op(req.URN, req.ID)
	if err != nil {
		return plugin.DeleteResponse{}, err
	}
	op.Was, op.State = TreeOf(req.Inputs), TreeOf(req.Outputs)

	ctx, cancel := Bounded(ctx, p.conn, req.Timeout)
	defer cancel()

	if err := r.Delete(ctx, op); err != nil {
		return plugin.DeleteResponse{}, explain(ctx, err, "deleting "+op.Name)
	}

	return plugin.DeleteResponse{}, nil
}
