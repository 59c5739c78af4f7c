// SPDX-License-Identifier: Apache-2.0
// Copyright the talos-proxmox authors.

package spec

import (
	"crypto/sha256"
	"encoding/binary"
)

// PlaceNode returns the host of a node: its own, else the default host, else one of the host pool as
// [PlaceIn] chooses.
func PlaceNode(proxmox Proxmox, n NamedNode) (string, bool) {
	switch {
	case n.Host != nil:
		return *n.Host, true
	case proxmox.DefaultHost != nil:
		return *proxmox.DefaultHost, true
	default:
		return PlaceIn(sortedKeys(proxmox.Hosts), n.Name)
	}
}

// PlaceIn chooses one of the hosts by the node's name alone, so that no other node has a say in it:
// nodes with a number take turns, number 1 on the first host; others go where their name's hash
// points (highest random weight, so that a host more moves few nodes).
func PlaceIn(hosts []string, name string) (string, bool) {
	if len(hosts) == 0 {
		return "", false
	}
	if number, ok := NumberOf(name); ok {
		return hosts[(number-1+len(hosts))%len(hosts)], true
	}

	best, weight := "", uint64(0)
	for _, host := range hosts {
		sum := sha256.Sum256([]byte(host + "\x00" + name))
		if w := binary.BigEndian.Uint64(sum[:8]); best == "" || w > weight {
			best, weight = host, w
		}
	}

	return best, true
}
