// SPDX-License-Identifier: Apache-2.0
// Copyright the talos-proxmox authors.

package versions

const (
	// FluxChart is the version of Flux's community chart (Flux v2.8) when the stack names none.
	FluxChart = "2.18.2"
	// FluxOperator is the version of the Flux operator's chart when the stack names none.
	FluxOperator = "0.58.1"
	// Flux is the Flux that the operator installs when the stack names none.
	Flux = "2.x"
	// ArgoChart is the version of Argo CD's chart (Argo CD v3.4) when the stack names none.
	ArgoChart = "10.1.1"
)
