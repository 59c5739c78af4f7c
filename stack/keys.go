// SPDX-License-Identifier: Apache-2.0
// Copyright the talos-proxmox authors.

package stack

import (
	"reflect"

	"github.com/talos-proxmox/talos-proxmox/spec"
)

// Keys returns all settings of a stack file.
func Keys() []spec.Key { return spec.KeysOf(reflect.TypeFor[File](), "") }
