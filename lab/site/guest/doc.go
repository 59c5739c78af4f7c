// SPDX-License-Identifier: Apache-2.0
// Copyright the talos-proxmox authors.

// Package guest is what an operating system sees of its virtual machine: hardware, network, time and power.
package guest
