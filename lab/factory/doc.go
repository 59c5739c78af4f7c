// SPDX-License-Identifier: Apache-2.0
// Copyright the talos-proxmox authors.

// Package factory is the lab's Image Factory: schematics are registered by POST, images of a
// registered schematic can be downloaded, and installer images of it can be pulled.
//
// It answers under any prefix, so that it also plays every mirror of itself, such as
// https://proxy.example.com/factory.talos.dev/image/…
package factory
