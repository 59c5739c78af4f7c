// SPDX-License-Identifier: Apache-2.0
// Copyright the talos-proxmox authors.

// Package onask publishes resources once somebody asks for them.
package onask

import (
	"context"

	"github.com/cosi-project/runtime/pkg/resource"
	"github.com/cosi-project/runtime/pkg/state"
)

// State calls Publish before each answer about resources of a kind.
type State struct {
	state.CoreState

	// Type of the resources.
	Type resource.Type
	// Publish has them published. It may be called often.
	Publish func()
}

func (a State) about(kind resource.Type) {
	if kind == a.Type {
		a.Publish()
	}
}

// Get implements [state.CoreState].
func (a State) Get(ctx context.Context, p resource.Pointer, opts ...state.GetOption) (resource.Resource, error) {
	a.about(p.Type())

	return a.CoreState.Get(ctx, p, opts...)
}

// List implements [state.CoreState].
func (a State) List(ctx context.Context, k resource.Kind, opts ...state.ListOption) (resource.List, error) {
	a.about(k.Type())

	return a.CoreState.List(ctx, k, opts...)
}

// Watch implements [state.CoreState].
func (a State) Watch(ctx context.Context, p resource.Pointer, to chan<- state.Event, opts ...state.WatchOption) error {
	a.about(p.Type())

	return a.CoreState.Watch(ctx, p, to, opts...)
}

// WatchKind implements [state.CoreState].
func (a State) WatchKind(ctx context.Context, k resource.Kind, to chan<- state.Event, opts ...state.WatchKindOption) error {
	a.about(k.Type())

	return a.CoreState.WatchKind(ctx, k, to, opts...)
}

// WatchKindAggregated implements [state.CoreState].
func (a State) WatchKindAggregated(
	ctx context.Context, k resource.Kind, to chan<- []state.Event, opts ...state.WatchKindOption,
) error {
	a.about(k.Type())

	return a.CoreState.WatchKindAggregated(ctx, k, to, opts...)
}
