// SPDX-License-Identifier: Apache-2.0
// Copyright the talos-proxmox authors.

package proxmoxve

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"net/url"

	"github.com/talos-proxmox/talos-proxmox/lab/standin/bridge"
)

// object describes something that the API stores under a path and a name, made, read, changed and deleted
// without a task.
type object struct {
	what string
	// path is of the collection: "cluster/ha/groups". key is the input with the name, param its name
	// in the API.
	path, key, param string
	encode           func(in bridge.Tree, form url.Values)
	// added is what only creating sends too; failed how it says that it failed.
	added  func(in bridge.Tree, form url.Values)
	failed string
	// decode reads the API's form back; base is the state.
	decode func(raw map[string]any, base bridge.Tree) bridge.Tree
	// outputs are those that the provider fills in.
	outputs func(in bridge.Tree) bridge.Tree
}

func (o object) at(id string) string { return o.path + "/" + url.PathEscape(id) }

// equip gives a resource the object's operations.
func (o object) equip(r *bridge.Resource) *bridge.Resource {
	r.Create, r.Read, r.Update, r.Delete = o.create, o.read, o.update, o.remove
	if o.outputs != nil {
		r.Plan = func(_ context.Context, op *bridge.Op) (bridge.Tree, error) { return o.outputs(op.In), nil }
	}

	return r
}

func (o object) out(in bridge.Tree) bridge.Tree {
	if o.outputs == nil {
		return bridge.Tree{}
	}

	return o.outputs(in)
}

func (o object) create(ctx context.Context, op *bridge.Op) (string, bridge.Tree, error) {
	a, err := apiOf(op)
	if err != nil {
		return "", nil, err
	}

	id := op.In.Str(o.key)
	form := url.Values{o.param: {id}}
	o.encode(op.In, form)
	if o.added != nil {
		o.added(op.In, form)
	}

	err = a.do(ctx, http.MethodPost, o.path, form, nil)
	if err != nil && o.failed != "" {
		return "", nil, fmt.Errorf(o.failed, id, err)
	}
	if err != nil {
		return "", nil, fmt.Errorf("could not create %s '%s': %w", o.what, id, err)
	}

	return id, o.out(op.In), nil
}

func (o object) read(ctx context.Context, op *bridge.Op) (bridge.Tree, error) {
	a, err := apiOf(op)
	if err != nil {
		return nil, err
	}

	var raw map[string]any
	err = a.get(ctx, o.at(op.ID), &raw)
	if errors.Is(err, errNotFound) {
		return nil, nil // gone
	}
	if err != nil {
		return nil, fmt.Errorf("could not read %s '%s': %w", o.what, op.ID, err)
	}

	out := merge(op.State, bridge.Tree{o.key: op.ID})
	if c, ok := raw["comment"].(string); ok && c != "" {
		out["comment"] = c
	} else {
		delete(out, "comment")
		if op.State.Has("comment") {
			out["comment"] = ""
		}
	}
	if o.decode != nil {
		out = merge(out, o.decode(raw, op.State))
	}

	return merge(out, o.out(out)), nil
}

func (o object) update(ctx context.Context, op *bridge.Op) (bridge.Tree, error) {
	a, err := apiOf(op)
	if err != nil {
		return nil, err
	}

	form := url.Values{}
	o.encode(op.In, form)
	if !op.In.Has("comment") && op.Was.Has("comment") {
		form.Set("delete", "comment")
	}

	if err := a.do(ctx, http.MethodPut, o.at(op.In.Str(o.key)), form, nil); err != nil {
		return nil, fmt.Errorf("could not update %s '%s': %w", o.what, op.In.Str(o.key), err)
	}

	return o.out(op.In), nil
}

func (o object) remove(ctx context.Context, op *bridge.Op) error {
	a, err := apiOf(op)
	if err != nil {
		return err
	}

	err = a.do(ctx, http.MethodDelete, o.at(op.ID), nil, nil)
	if err != nil && !errors.Is(err, errNotFound) {
		return fmt.Errorf("could not delete %s '%s': %w", o.what, op.ID, err)
	}

	return nil
}
