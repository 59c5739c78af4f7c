// SPDX-License-Identifier: Apache-2.0
// Copyright the talos-proxmox authors.

package main

import (
	"fmt"

	"golang.org/x/sys/unix"
)

// dropCapabilities takes from a node what would reach past its namespaces: the clock, kernel modules, and bare hardware.
func dropCapabilities() error {
	for _, c := range []uintptr{unix.CAP_SYS_TIME, unix.CAP_SYS_MODULE, unix.CAP_SYS_RAWIO} {
		if err := unix.Prctl(unix.PR_CAPBSET_DROP, c, 0, 0, 0); err != nil {
			return fmt.Errorf("dropping a capability: %w", err)
		}
	}

	return nil
}

// mayLowerOOMScores reports whether processes may be made less likely to be killed for memory, which not every virtual
// machine and container allows.
func mayLowerOOMScores() bool {
	has, err := unix.PrctlRetInt(unix.PR_CAPBSET_READ, unix.CAP_SYS_RESOURCE, 0, 0, 0)

	return err == nil && has == 1
}
