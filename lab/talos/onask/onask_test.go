// SPDX-License-Identifier: Apache-2.0
// Copyright the talos-proxmox authors.

package onask_test

import (
	"testing"

	"github.com/cosi-project/runtime/pkg/resource"
	"github.com/cosi-project/runtime/pkg/state"
	"github.com/cosi-project/runtime/pkg/state/impl/inmem"
	"github.com/cosi-project/runtime/pkg/state/impl/namespaced"
	"github.com/siderolabs/talos/pkg/machinery/resources/cluster"
	"github.com/siderolabs/talos/pkg/machinery/resources/runtime"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/talos-proxmox/talos-proxmox/lab/talos/onask"
)

// TestMembersAreThereForWhoAsks asks for resources in each way that the state knows: the members of the cluster are
// published before the answer, and by no question for anything else.
func TestMembersAreThereForWhoAsks(t *testing.T) {
	t.Parallel()

	members := *cluster.NewMember(cluster.NamespaceName, "a").Metadata()
	others := *runtime.NewVersion().Metadata()
	for name, ask := range map[string]func(state.State, resource.Metadata) error{
		"get": func(st state.State, md resource.Metadata) error {
			_, err := st.Get(t.Context(), md)

			return err
		},
		"list": func(st state.State, md resource.Metadata) error {
			_, err := st.List(t.Context(), md)

			return err
		},
		"watch": func(st state.State, md resource.Metadata) error {
			return st.Watch(t.Context(), md, make(chan state.Event, 1))
		},
		"watch of a kind": func(st state.State, md resource.Metadata) error {
			return st.WatchKind(t.Context(), md, make(chan state.Event, 1))
		},
		"aggregated watch of a kind": func(st state.State, md resource.Metadata) error {
			return st.WatchKindAggregated(t.Context(), md, make(chan []state.Event, 1))
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()

			core, published := namespaced.NewState(inmem.Build), 0
			st := state.WrapCore(onask.State{CoreState: core, Type: cluster.MemberType, Publish: func() { published++ }})
			if err := ask(st, others); err != nil {
				require.True(t, state.IsNotFoundError(err), err)
			}
			assert.Zero(t, published)
			if err := ask(st, members); err != nil {
				require.True(t, state.IsNotFoundError(err), err)
			}
			assert.Equal(t, 1, published)
		})
	}
}
