// SPDX-License-Identifier: Apache-2.0
// Copyright the talos-proxmox authors.

// Package site is the model that the whole lab stands on: Proxmox VE clusters with hosts, storages,
// files, virtual machines, pools and mappings, and the network between them.
//
// A VM's configuration is kept as Proxmox VE keeps it, in configuration strings such as
// "local-lvm:vm-800-disk-0,size=10G", so that what a client wrote is what it reads. A VM that is
// started boots by its boot order: a disk that holds something bootable, else the next device. What
// boots is up to the guest that [Options] names.
//
// Everything is durable in the site's directory. A change is on disk before the call that made it
// returns; VMs that were running when the lab was killed boot again when the site is opened.
package site
