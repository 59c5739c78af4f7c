// SPDX-License-Identifier: Apache-2.0
// Copyright the talos-proxmox authors.

package components

import (
	"testing"

	"github.com/pulumi/pulumi/sdk/v3/go/common/resource"
	"github.com/pulumi/pulumi/sdk/v3/go/pulumi"
	"github.com/stretchr/testify/assert"
)

func TestAnotherNameIsRefused(t *testing.T) {
	t.Parallel()
	named := func(name string) resource.PropertyMap {
		return resource.PropertyMap{"input": resource.NewPropertyValue(map[string]any{"cluster": name})}
	}
	assert.NoError(t, refuseRename(&pulumi.ResourceHookArgs{OldInputs: named("one"), NewInputs: named("one")}))
	assert.EqualError(t, refuseRename(&pulumi.ResourceHookArgs{OldInputs: named("one"), NewInputs: named("two")}),
		"cluster.name: was one, is now two: every machine would be made anew under the new name; "+
			"write one again, or make a stack of its own for the new cluster")
}
