// SPDX-License-Identifier: Apache-2.0
// Copyright the talos-proxmox authors.

// Package ciliumcli does in a container what the Cilium CLI does there: it installs and upgrades the
// chart of Cilium with Helm. It is a stand-in for the CLI and not for what it installs: chart, Helm and
// API server are genuine. What the CLI finds out about other kinds of clusters than Talos's is left out.
package ciliumcli
