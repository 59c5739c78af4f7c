// SPDX-License-Identifier: Apache-2.0
// Copyright the talos-proxmox authors.

package main

// keyCases are the keys whose effect their type does not say how to show. Keys of a node stand under
// "*.", for all the places where they can be written.
var keyCases = map[string]keyCase{}
