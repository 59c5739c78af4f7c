// SPDX-License-Identifier: Apache-2.0
// Copyright the talos-proxmox authors.

// Package bridge is what the stand-ins of bridged providers share: schemas read from the SDKs' Go
// types, checks with the bridge's texts, defaults, diffs, secrets, previews.
package bridge
