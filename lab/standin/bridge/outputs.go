// SPDX-License-Identifier: Apache-2.0
// Copyright the talos-proxmox authors.

package bridge

import (
	"context"
	"errors"
	"fmt"
	"maps"

	"github.com/pulumi/pulumi/sdk/v3/go/common/resource"
	"github.com/pulumi/pulumi/sdk/v3/go/common/resource/plugin"
	"github.com/pulumi/pulumi/sdk/v3/go/common/util/rpcutil/rpcerror"
	pulumirpc "github.com/pulumi/pulumi/sdk/v3/proto/go"
	"google.golang.org/grpc/codes"

	"github.com/talos-proxmox/talos-proxmox/lab/standin/wire"
)

// outputs lays what a behaviour returned over its inputs and keeps secrets secret.
func (r *Resource) outputs(base resource.PropertyMap, out Tree) resource.PropertyMap {
	props := stripInternal(resource.NewProperty(base)).ObjectValue().Copy()
	maps.Copy(props, out.Properties())
	for k, v := range out {
		if v == nil {
			delete(props, resource.PropertyKey(k))
		}
	}

	props = KeepSecrets(resource.NewProperty(props), resource.NewProperty(base)).ObjectValue()

	return MarkSecrets(props, r.Secrets)
}

// checked returns outputs, compared with the SDK's type: a stand-in must not make outputs up.
func (r *Resource) checked(t types, base resource.PropertyMap, out Tree) (resource.PropertyMap, error) {
	props := r.outputs(base, out)
	for k := range props {
		if _, ok := t.state.Field(string(k)); !ok && (k != idKey || !r.Framework) {
			delete(props, k) // an input that is no output
			if _, made := out[string(k)]; made {
				return nil, fmt.Errorf("the stand-in returned %q, which the SDK does not have", k)
			}
		}
	}

	problems := NewProblems("state")
	for k, v := range props {
		f, ok := t.state.Field(string(k))
		if !ok {
			continue // the id
		}
		problems.Typecheck(optional(f.Type), v, Path{string(k)})
	}
	if found := problems.Failures(); len(found) > 0 {
		return nil, fmt.Errorf("the stand-in returned a wrong state: %s", found[0].Reason)
	}

	return props, nil
}

// optional returns the type with nothing required: a state may lack what inputs must have.
func optional(t *Type) *Type {
	c := *t
	if t.Elem != nil {
		c.Elem = optional(t.Elem)
	}

	c.Fields = make([]Field, len(t.Fields))
	for i, f := range t.Fields {
		c.Fields[i] = Field{Name: f.Name, Type: optional(f.Type)}
	}

	return &c
}

// planned returns what a preview knows of the outputs.
func (r *Resource) planned(in, old resource.PropertyMap, known Tree, unknown []string) resource.PropertyMap {
	props := r.outputs(r.carry(in, old), known)
	for _, name := range unknown {
		key := resource.PropertyKey(name)
		if _, given := in[key]; given {
			continue
		}
		props[key] = resource.MakeComputed(resource.NewProperty(""))
	}

	return MarkSecrets(props, r.Secrets)
}

// carry adds to inputs the old outputs that the provider itself filled in.
func (r *Resource) carry(in, old resource.PropertyMap) resource.PropertyMap {
	props := resource.PropertyMap{}
	for _, name := range r.Computed {
		if v, ok := old[resource.PropertyKey(name)]; ok {
			props[resource.PropertyKey(name)] = v
		}
	}
	if in == nil { // a refresh starts from the whole state
		maps.Copy(props, old)
	}
	maps.Copy(props, in)

	return props
}

func stripInternal(v resource.PropertyValue) resource.PropertyValue {
	switch {
	case v.IsSecret():
		return resource.MakeSecret(stripInternal(v.SecretValue().Element))
	case v.IsObject():
		m := resource.PropertyMap{}
		for k, e := range v.ObjectValue() {
			if !internal(k) {
				m[k] = stripInternal(e)
			}
		}
		return resource.NewProperty(m)
	case v.IsArray():
		l := make([]resource.PropertyValue, len(v.ArrayValue()))
		for i, e := range v.ArrayValue() {
			l[i] = stripInternal(e)
		}
		return resource.NewProperty(l)
	}

	return v
}

// inputsFrom brings old inputs up to date with what a refresh found; an import takes all there is.
func inputsFrom(t *Type, in, props resource.PropertyMap, imported bool) resource.PropertyMap {
	if imported {
		out := resource.PropertyMap{}
		for k, v := range props {
			if _, ok := t.Field(string(k)); ok {
				out[k] = v
			}
		}
		return out
	}

	return Refresh(resource.NewProperty(in), resource.NewProperty(props)).ObjectValue()
}

// Refresh brings an input up to date with what is there now; it keeps what is secret secret.
func Refresh(in, now resource.PropertyValue) resource.PropertyValue {
	if in.IsSecret() {
		return resource.MakeSecret(Refresh(in.SecretValue().Element, open(now)))
	}
	now = open(now)

	switch {
	case in.IsObject() && now.IsObject():
		out := resource.PropertyMap{}
		for k, v := range in.ObjectValue() {
			if e, ok := now.ObjectValue()[k]; ok && !internal(k) {
				v = Refresh(v, e)
			}
			out[k] = v
		}
		return resource.NewProperty(out)
	case in.IsArray() && now.IsArray():
		l := make([]resource.PropertyValue, len(now.ArrayValue()))
		for i, e := range now.ArrayValue() {
			if i < len(in.ArrayValue()) {
				e = Refresh(in.ArrayValue()[i], e)
			}
			l[i] = e
		}
		return resource.NewProperty(l)
	case now.IsNull():
		return in
	}

	return now
}

// Partial tells the engine that something was made although the operation failed.
func Partial(id string, in, out resource.PropertyMap, cause error) error {
	opts := plugin.MarshalOptions{KeepUnknowns: true, KeepSecrets: true}
	detail := &pulumirpc.ErrorResourceInitFailed{Id: id, Reasons: []string{cause.Error()}}

	var err error
	if detail.Properties, err = plugin.MarshalProperties(out, opts); err != nil {
		return errors.Join(cause, err)
	}
	if detail.Inputs, err = plugin.MarshalProperties(in, opts); err != nil {
		return errors.Join(cause, err)
	}

	return rpcerror.WithDetails(rpcerror.New(codes.Unknown, cause.Error()), detail)
}

// explain puts cancellation and timeouts into words.
func explain(ctx context.Context, err error, doing string) error {
	switch {
	case errors.Is(context.Cause(ctx), wire.ErrCancelled):
		return fmt.Errorf("%s: %w: %w", doing, wire.ErrCancelled, err)
	case errors.Is(ctx.Err(), context.DeadlineExceeded):
		return fmt.Errorf("%s: the time given to it is over: %w", doing, err)
	}

	return fmt.Errorf("%s: %w", doing, err)
}
