// SPDX-License-Identifier: Apache-2.0
// Copyright the talos-proxmox authors.

// Package env makes a running lab the world of a command: its proxy, certificates, Pulumi backend and
// providers, all by environment variables.
package env
