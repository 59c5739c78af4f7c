// SPDX-License-Identifier: Apache-2.0
// Copyright the talos-proxmox authors.

package etcd

import (
	"errors"
	"net/netip"
	"slices"
)

// Join adds a learner as Talos does it: a member of the same name is an earlier life of this node
// and is removed first.
func (g *Group) Join(id uint64, name string, addr netip.Addr, n Host) error {
	g.mu.Lock()
	defer g.mu.Unlock()

	if !g.quorumLocked() {
		return ErrNoLeader
	}
	for _, m := range g.members {
		if m.Name == name {
			if err := g.removeLocked(m.ID); err != nil {
				return err
			}
		}
	}
	for _, m := range g.members {
		switch {
		case m.Addr == addr:
			return errPeerURLExists
		case m.Learner:
			return errTooManyLearners
		}
	}
	if all, running := g.votersLocked(); running < all {
		return ErrUnhealthy
	}

	g.members = append(g.members, Member{ID: id, Name: name, Addr: addr, Learner: true})
	g.alive[id] = n
	g.commitLocked()

	return nil
}

// Promote makes a learner a voting member.
func (g *Group) Promote(id uint64) error {
	g.mu.Lock()
	defer g.mu.Unlock()

	if !g.quorumLocked() {
		return ErrNoLeader
	}
	m := g.memberLocked(id)
	if m == nil {
		return ErrMemberNotFound
	}
	m.Learner = false
	g.commitLocked()

	return nil
}

// Remove takes a member out of the cluster.
func (g *Group) Remove(id uint64) error {
	g.mu.Lock()
	defer g.mu.Unlock()

	if !g.quorumLocked() {
		return ErrNoLeader
	}

	return g.removeLocked(id)
}

func (g *Group) removeLocked(id uint64) error {
	m := g.memberLocked(id)
	if m == nil {
		return ErrMemberNotFound
	}
	if all, running := g.votersLocked(); !m.Learner {
		if all == 1 {
			return errNotEnough
		}
		if g.alive[id] != nil && running-1 < 1+(all-1)/2 {
			return ErrUnhealthy
		}
	}

	gone := g.alive[id]
	g.members = slices.DeleteFunc(g.members, func(m Member) bool { return m.ID == id })
	delete(g.alive, id)
	g.commitLocked()
	if gone != nil {
		gone.Poke()
	}

	return nil
}

// Forfeit moves leadership away from a member and names the new leader, "" when it did not lead.
func (g *Group) Forfeit(id uint64) (string, error) {
	g.mu.Lock()
	defer g.mu.Unlock()

	if len(g.members) == 1 {
		return "", errors.New("cannot forfeit leadership, only one member")
	}
	if g.leader != id {
		return "", nil
	}
	for _, m := range g.members {
		if m.ID != id && !m.Learner && g.alive[m.ID] != nil {
			g.leader = m.ID
			g.term++
			g.notifyLocked()

			return m.Name, nil
		}
	}

	return "", ErrNoLeader
}
