// SPDX-License-Identifier: Apache-2.0
// Copyright the talos-proxmox authors.

package bridge

import (
	"context"
	"errors"
	"fmt"
	"reflect"
	"strings"

	"github.com/pulumi/pulumi/sdk/v3/go/common/resource"
	"github.com/pulumi/pulumi/sdk/v3/go/pulumi"

	"github.com/talos-proxmox/talos-proxmox/lab/standin/wire"
)

// Package describes a provider: its configuration, what it manages and what can be asked of it.
type Package struct {
	// Name and Version are those of the genuine plugin: "proxmoxve", "6.18.1".
	Name, Version string
	// Config is the SDK's provider Args.
	Config pulumi.Input
	// ConfigSecrets are the patterns of configuration that is always secret.
	ConfigSecrets []string
	// CheckConfig adds problems to those of the types.
	CheckConfig func(p *Problems, config Tree)
	// Configure makes what [Op.Client] is; it makes no calls.
	Configure func(c *wire.Conn, config Tree) (any, error)

	Resources map[string]*Resource
	Functions map[string]*Function
}

// Resource describes one kind of resource.
type Resource struct {
	// Args and State are zero values of the SDK's Args and resource structs.
	Args  pulumi.Input
	State any
	// Required names required lists and maps; other required inputs show in Args.
	Required []string
	Defaults Defaults
	// Secrets are the patterns that are secret whatever the program says.
	Secrets []string
	// Computed are the properties that the provider fills in when the program does not.
	Computed []string
	// Replace are the patterns whose change needs a new resource.
	Replace []string
	// AutoName is the property that gets "<logical name>-<7 hex>" when it is left out.
	AutoName string
	// Framework: it is made with the newer of Terraform's two SDKs, whose bridge checks otherwise: it
	// takes keys that it does not know, says nothing of where something is missing, refuses wrong types
	// without ado, and makes inputs secret itself.
	Framework bool
	// KeepsFailedUpdate: a failed update leaves the new values in the state, as the older of
	// Terraform's two SDKs does. The next run sees no difference; a refresh does.
	KeepsFailedUpdate bool

	// Validate adds problems to those of the types. Unknown values are left out of in.
	Validate func(p *Problems, in Tree)
	// ReplaceIf widens Replace; Ignore drops changes that mean nothing. Both see the operation's
	// In, Was and State.
	ReplaceIf func(c Change, op *Op) bool
	Ignore    func(c Change, op *Op) bool
	// Refuse fails a preview because of the operation's Changes, when nothing is replaced.
	Refuse func(op *Op) error
	// Stale names outputs that have to be made anew although no input changed.
	Stale func(op *Op) []string
	// Unsettled are differences that the provider finds although nothing changed, unless the program
	// ignores them.
	Unsettled func(op *Op) []Change
	// Plan tells what a preview can know of the outputs, or why the operation cannot succeed.
	// Unknown values are left out of In.
	Plan func(ctx context.Context, op *Op) (Tree, error)
	// Recompute names outputs that an update may change.
	Recompute func(found []Change) []string

	// Create returns the id, also with an error if something was made, and outputs that differ from
	// or add to the inputs.
	Create func(ctx context.Context, op *Op) (id string, out Tree, err error)
	// Read returns the outputs as they are now, nil when the resource is gone. An import may set the
	// operation's ID to what the state has. Without Read the state is taken to be true.
	Read func(ctx context.Context, op *Op) (Tree, error)
	// Update returns outputs as Create does.
	Update func(ctx context.Context, op *Op) (Tree, error)
	// Delete succeeds when the resource is gone already. Without it there is nothing to do.
	Delete func(ctx context.Context, op *Op) error
}

// Function describes a function of the provider.
type Function struct {
	// Args and Result are zero values of the SDK's structs.
	Args, Result any
	Required     []string
	Defaults     Defaults
	Call         func(ctx context.Context, op *Op) (Tree, error)
}

// Op holds an operation under way.
type Op struct {
	Conn   *wire.Conn
	Client any
	URN    resource.URN
	// Name is the logical name, ID the resource's id ("" before it has one).
	Name, ID string
	// In are the new inputs, or a function's arguments; Was the old inputs; State the old outputs.
	In, Was, State Tree
	// Changes are the differences between Was and In, ignored ones left out.
	Changes []Change
	// Unknown are the inputs (top-level names) that are not known yet.
	Unknown map[string]bool
}

// Changed reports whether anything at or under one of the patterns changed.
func (o *Op) Changed(patterns ...string) bool {
	for _, c := range o.Changes {
		for _, p := range patterns {
			if c.Path.Covers(p) {
				return true
			}
		}
	}

	return false
}

// Warn shows a warning at the resource.
func (o *Op) Warn(format string, args ...any) {
	o.Conn.Log(wire.Warning, o.URN, fmt.Sprintf(format, args...))
}

// types holds a resource's types, read once.
type types struct{ args, state *Type }

func (r *Resource) types() (types, error) {
	args, err := InputsOf(r.Args)
	if err != nil {
		return types{}, err
	}

	state, err := TypeOf(reflect.TypeOf(r.State))
	if err != nil {
		return types{}, err
	}

	return types{args: require(args, r.Required), state: state}, nil
}

func require(t *Type, names []string) *Type {
	for i, f := range t.Fields {
		for _, n := range names {
			if f.Name == n {
				t.Fields[i].Required = true
			}
		}
	}

	return t
}

// Verify finds mistakes in the package's own tables: names that the SDK does not have.
func (p *Package) Verify() error {
	var errs []error

	for token, r := range p.Resources {
		t, err := r.types()
		if err != nil {
			errs = append(errs, fmt.Errorf("%s: %w", token, err))
			continue
		}

		for _, n := range r.Required {
			errs = append(errs, t.args.lookup(token, n))
		}
		for n := range r.Defaults {
			errs = append(errs, t.args.lookup(token, n))
		}
		for _, n := range r.Replace {
			errs = append(errs, t.args.lookup(token, n))
		}
		for _, list := range [][]string{r.Secrets, r.Computed} {
			for _, n := range list {
				errs = append(errs, t.state.lookup(token, n))
			}
		}
	}

	return errors.Join(errs...)
}

func (t *Type) lookup(token, pattern string) error {
	for step := range strings.SplitSeq(strings.ReplaceAll(pattern, "[*]", ".*"), ".") {
		switch {
		case step == "*" && t.Elem != nil:
			t = t.Elem
		case t.Kind == Object:
			f, ok := t.Field(step)
			if !ok {
				return fmt.Errorf("%s: the SDK has no %q (in %q)", token, step, pattern)
			}
			t = f.Type
		default:
			return fmt.Errorf("%s: %q leads into a %s", token, pattern, t)
		}
	}

	return nil
}
