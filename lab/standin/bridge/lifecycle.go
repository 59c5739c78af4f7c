// SPDX-License-Identifier: Apache-2.0
// Copyright the talos-proxmox authors.

package bridge

import (
	"context"
	"fmt"
	"slices"
	"strings"

	"github.com/pulumi/pulumi/sdk/v3/go/common/resource"
	"github.com/pulumi/pulumi/sdk/v3/go/common/resource/plugin"
)

// autoDigits end a name that was made.
const autoDigits = 7

// Check completes and checks a resource's inputs.
func (p *provider) Check(_ context.Context, req plugin.CheckRequest) (plugin.CheckResponse, error) {
	r, t, err := p.resource(string(req.Type))
	if err != nil {
		return plugin.CheckResponse{}, err
	}

	problems := NewProblems(req.URN.Name())
	problems.framework, problems.said = r.Framework, TreeOf(req.News)
	problems.Typecheck(t.args, resource.NewProperty(req.News), nil)
	if problems.refused != nil {
		return plugin.CheckResponse{}, problems.refused
	}
	if len(problems.found) > 0 {
		return plugin.CheckResponse{Properties: r.guarded(req.News), Failures: problems.Failures()}, nil
	}

	in := r.Defaults.apply(t.args, resource.NewProperty(req.News), nil).ObjectValue()
	if err := r.autoname(in, req); err != nil {
		return plugin.CheckResponse{}, err
	}

	if r.Validate != nil {
		r.Validate(problems, TreeOf(in))
	}
	if problems.refused != nil {
		return plugin.CheckResponse{}, problems.refused
	}

	return plugin.CheckResponse{Properties: r.guarded(in), Failures: problems.Failures()}, nil
}

// guarded returns checked inputs, secret where the provider makes them so.
func (r *Resource) guarded(in resource.PropertyMap) resource.PropertyMap {
	if !r.Framework {
		return in
	}

	return MarkSecrets(in, r.Secrets)
}

// autoname gives a name to a resource without one, and keeps the one it got before.
func (r *Resource) autoname(in resource.PropertyMap, req plugin.CheckRequest) error {
	key := resource.PropertyKey(r.AutoName)
	if _, have := in[key]; have || r.AutoName == "" {
		return nil
	}

	if a := req.Autonaming; a != nil && a.Mode != plugin.AutonamingModePropose && a.ProposedName != "" {
		in[key] = resource.NewProperty(a.ProposedName)
		return nil
	}

	if old, have := req.Olds[key]; have && open(old).IsString() {
		in[key] = old
		return nil
	}

	name, err := resource.NewUniqueName(req.RandomSeed, req.URN.Name()+"-", autoDigits, 80, nil)
	if err != nil {
		return fmt.Errorf("naming %s: %w", req.URN.Name(), err)
	}
	in[key] = resource.NewProperty(name)

	return nil
}

// compare fills in the operation's inputs, state and changes.
func (r *Resource) compare(op *Op, was, now, state resource.PropertyMap, ignore []string) {
	op.Was, op.In, op.State, op.Unknown = TreeOf(was), TreeOf(now), TreeOf(state), unknowns(now)

	op.Changes = slices.DeleteFunc(Compare(resource.NewProperty(was), resource.NewProperty(now), nil),
		func(c Change) bool {
			// What the program leaves to the provider keeps the value it has.
			if c.New == nil && !c.Unknown && slices.Contains(r.Computed, c.Path.Pattern()) {
				return true
			}
			return r.Ignore != nil && r.Ignore(c, op)
		})

	if r.Unsettled != nil {
		for _, c := range r.Unsettled(op) {
			if !c.Path.ignored(ignore) {
				op.Changes = append(op.Changes, c)
			}
		}
	}
	if r.Stale != nil {
		for _, name := range r.Stale(op) {
			op.Changes = append(op.Changes, Change{Path: Path{name}, Old: true, Unknown: true, Output: true})
		}
	}
}

func unknowns(props resource.PropertyMap) map[string]bool {
	found := map[string]bool{}
	for k, v := range props {
		if v.ContainsUnknowns() {
			found[string(k)] = true
		}
	}

	return found
}

func (r *Resource) replaces(c Change, op *Op) bool {
	for _, pattern := range r.Replace {
		if c.Path.Covers(pattern) {
			return true
		}
	}

	return r.ReplaceIf != nil && r.ReplaceIf(c, op)
}

// Diff tells what changed and whether it needs a new resource.
func (p *provider) Diff(_ context.Context, req plugin.DiffRequest) (plugin.DiffResponse, error) {
	r, _, err := p.resource(string(req.Type))
	if err != nil {
		return plugin.DiffResult{}, err
	}

	op := &Op{Conn: p.conn, URN: req.URN, Name: req.URN.Name(), ID: string(req.ID)}
	r.compare(op, req.OldInputs, req.NewInputs, req.OldOutputs, req.IgnoreChanges)
	replaces := func(c Change) bool { return r.replaces(c, op) }

	if r.Refuse != nil && !slices.ContainsFunc(op.Changes, replaces) {
		if err := r.Refuse(op); err != nil {
			return plugin.DiffResult{}, err
		}
	}

	result := Result(op.Changes, replaces)
	result.DeleteBeforeReplace = slices.ContainsFunc(op.Changes, replaces) && r.namedByHand(op)

	return result, nil
}

// namedByHand reports whether a new resource would take the name of the old one, which has to go first.
func (r *Resource) namedByHand(op *Op) bool {
	name := op.In.Str(r.AutoName)

	return r.AutoName != "" && name == op.Was.Str(r.AutoName) &&
		!(strings.HasPrefix(name, op.Name+"-") && len(name) == len(op.Name)+1+autoDigits)
}

// plan returns the outputs as a preview knows them.
func (p *provider) plan(
	ctx context.Context, r *Resource, t types, op *Op, in, old resource.PropertyMap, unknown []string,
) (resource.PropertyMap, error) {
	var known Tree
	if r.Plan != nil {
		p.mu.Lock()
		op.Client = p.client
		p.mu.Unlock()

		ctx, cancel := Bounded(ctx, p.conn, 0)
		defer cancel()

		var err error
		if known, err = r.Plan(ctx, op); err != nil {
			return nil, explain(ctx, err, "planning "+op.Name)
		}
	}

	unknown = slices.DeleteFunc(unknown, func(name string) bool { return known[name] != nil })

	props := r.planned(in, old, known, unknown)
	for k := range props {
		if _, ok := t.state.Field(string(k)); !ok && (k != idKey || !r.Framework) {
			delete(props, k) // an input that is no output
		}
	}

	if op.ID == "" {
		return r.identified(props, resource.MakeComputed(resource.NewProperty(""))), nil
	}

	return r.identified(props, resource.NewProperty(op.ID)), nil
}

const idKey = resource.PropertyKey("id")

// identified returns outputs with the id that the newer SDK keeps among them.
func (r *Resource) identified(props resource.PropertyMap, id resource.PropertyValue) resource.PropertyMap {
	if _, have := props[idKey]; r.Framework && props != nil && !have {
		props[idKey] = id
	}

	return props
}

// Create makes the resource; in a preview it tells what is known of it.
func (p *provider) Create(ctx context.Context, req plugin.CreateRequest) (plugin.CreateResponse, error) {
	r, t, err := p.resource(string(req.Type))
	if err != nil {
		return plugin.CreateResponse{}, err
	}

	if req.Preview {
		op := &Op{
			Conn: p.conn, URN: req.URN, Name: req.URN.Name(),
			In: TreeOf(req.Properties), Unknown: unknowns(req.Properties),
		}
		props, err := p.plan(ctx, r, t, op, req.Properties, nil, slices.Clone(r.Computed))
		return plugin.CreateResponse{Properties: props}, err
	}

	op, err := p.op(req.URN, "")
	if err != nil {
		return plugin.CreateResponse{}, err
	}
	op.In = TreeOf(req.Properties)

	ctx, cancel := Bounded(ctx, p.conn, req.Timeout)
	defer cancel()

	id, out, err := r.Create(ctx, op)
	if err != nil {
		err = explain(ctx, err, "creating "+op.Name)
		if id == "" {
			return plugin.CreateResponse{}, err
		}
		return plugin.CreateResponse{}, Partial(id, req.Properties, r.outputs(req.Properties, out), err)
	}

	props, err := r.checked(t, req.Properties, out)

	return plugin.CreateResponse{ID: resource.ID(id), Properties: r.identified(props, resource.NewProperty(id))}, err
}
