// SPDX-License-Identifier: Apache-2.0
// Copyright the talos-proxmox authors.

package components_test

import (
	"maps"
	"reflect"
	"slices"
	"testing"

	"github.com/pulumi/pulumi/sdk/v3/go/common/resource"
	"github.com/pulumi/pulumi/sdk/v3/go/pulumi"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/talos-proxmox/talos-proxmox/components"
	"github.com/talos-proxmox/talos-proxmox/components/internal/node"
	"github.com/talos-proxmox/talos-proxmox/components/internal/stash"
	"github.com/talos-proxmox/talos-proxmox/components/internal/vmargs"
	"github.com/talos-proxmox/talos-proxmox/internal/pulumitest"
	"github.com/talos-proxmox/talos-proxmox/spec"
)

// settings returns the names of all settings of t, as package spec names them in its table of effects.
func settings(prefix string, t reflect.Type) []string {
	for t.Kind() == reflect.Pointer {
		t = t.Elem()
	}
	var names []string
	switch {
	case t == reflect.TypeFor[spec.Secret]():
	case t.Kind() == reflect.Struct:
		for _, f := range spec.Fields(t) {
			name := prefix + "." + f.Name
			names = append(append(names, name), settings(name, f.Type)...)
		}
	case t.Kind() == reflect.Map:
		names = settings(prefix+".*", t.Elem())
	case t.Kind() == reflect.Slice:
		names = settings(prefix+"[]", t.Elem())
	}

	return names
}

func TestEverySettingHasAnEffect(t *testing.T) {
	t.Parallel()

	want := slices.Concat(
		settings("nodes.*", reflect.TypeFor[spec.Node]()), settings("images.*", reflect.TypeFor[spec.Image]()))
	slices.Sort(want)
	assert.Equal(t, want, slices.Sorted(maps.Keys(spec.EditEffects())))
}

// TestEffectOfEveryEdit edits every setting, one at a time, and holds what the guard, the provider and
// the engine make of it against the table of effects.
func TestEffectOfEveryEdit(t *testing.T) {
	t.Parallel()

	for name, edit := range spec.EditEffects() {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			before, after := editable(name), editable(name)
			editSetting(t, name, &after)
			assert.Equal(t, plainEffect(edit.Effect), effectOf(t, before, after))
		})
	}
}

// plainEffect leaves out what happens beside the VM: a roll-out, or something that is made later.
func plainEffect(effect spec.Effect) spec.Effect {
	if effect == spec.EffectUpgrade || effect == spec.EffectNone {
		return spec.EffectInPlace
	}

	return effect
}

func effectOf(t *testing.T, before, after components.ProxmoxNodeArgs) spec.Effect {
	t.Helper()
	was := register(t, false, before)
	now := &pulumitest.Recorder{}
	if err := now.Run(false, func(ctx *pulumi.Context) error {
		_, err := components.NewProxmoxNode(ctx, after.Node.Name, &after)

		return err
	}); err != nil {
		require.ErrorContains(t, err, "is for data disks")

		return spec.EffectRefused
	}
	inputs := func(r *pulumitest.Recorder, what string) pulumi.MockResourceArgs {
		args, ok := r.Get("work-01-" + what)
		require.True(t, ok)

		return args
	}
	machines := func(r *pulumitest.Recorder) node.Machines {
		remembered, known, err := stash.Value[node.Machines](inputs(r, "machine").Inputs)
		require.NoError(t, err)
		require.True(t, known)

		return remembered
	}
	if node.Refuse(machines(was), machines(now), nil) != nil {
		if node.Refuse(machines(was), machines(now), map[string][]string{"work-01": {"*"}}) != nil {
			return spec.EffectRefused
		}

		return spec.EffectReplace
	}
	vmWas, vmNow := inputs(was, "vm").Inputs, inputs(now, "vm").Inputs
	require.False(t, replaces(vmWas, vmNow), "the provider would replace the VM and nobody refused")
	if vmargs.EditReboots(vmWas, vmNow) {
		return spec.EffectReboot
	}

	return spec.EffectInPlace
}

// replaces reports whether the provider replaces a VM to bring its inputs from was to now.
func replaces(was, now resource.PropertyMap) bool {
	same := func(key resource.PropertyKey) bool { return was[key].DeepEquals(now[key]) }
	migrates := now["migrate"].IsBool() && now["migrate"].BoolValue()
	part := func(inputs resource.PropertyMap, block resource.PropertyKey, names ...resource.PropertyKey) []resource.PropertyValue {
		if !inputs[block].IsObject() {
			return nil
		}
		var found []resource.PropertyValue
		for _, name := range names {
			found = append(found, inputs[block].ObjectValue()[name])
		}

		return found
	}
	equal := func(block resource.PropertyKey, names ...resource.PropertyKey) bool {
		return slices.EqualFunc(part(was, block, names...), part(now, block, names...), resource.PropertyValue.DeepEquals)
	}

	return !same("vmId") || !same("clone") || !same("template") || !same("nodeName") && !migrates ||
		!equal("efiDisk", "type", "fileFormat", "preEnrolledKeys") || !equal("tpmState", "version")
}
