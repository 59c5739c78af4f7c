// SPDX-License-Identifier: Apache-2.0
// Copyright the talos-proxmox authors.

package etcd

import (
	"crypto/rand"
	"encoding/binary"
	"encoding/hex"
	"errors"
	"fmt"
	"net/netip"
	"slices"
	"sync"
)

// Errors of etcd, in its own words.
var (
	ErrMemberNotFound  = errors.New("etcdserver: member not found")
	errPeerURLExists   = errors.New("etcdserver: Peer URLs already exists")
	ErrUnhealthy       = errors.New("etcdserver: unhealthy cluster")
	ErrNoLeader        = errors.New("etcdserver: no leader")
	errTooManyLearners = errors.New("etcdserver: too many learner members in cluster")
	errNotEnough       = errors.New("etcdserver: re-configuration failed due to not enough started members")
)

// Member describes a member as every replica knows it.
type Member struct {
	ID      uint64     `json:"id"`
	Name    string     `json:"name"`
	Addr    netip.Addr `json:"addr"`
	Learner bool       `json:"learner,omitempty"`
}

// Replica holds what a member keeps on its disk.
type Replica struct {
	// Cluster identifies the etcd cluster, Talos the cluster of the machine configuration.
	Cluster  string   `json:"cluster"`
	Talos    string   `json:"talos"`
	Member   uint64   `json:"member"`
	Revision int64    `json:"revision"`
	Members  []Member `json:"members"`
}

// Host runs a member: it keeps the member's data, and looks again when the members change.
type Host interface {
	StoreReplica(r *Replica)
	Poke()
}

// Group plays one etcd cluster: its members, and those of them that run.
type Group struct {
	UID   string
	talos string

	mu       sync.Mutex
	revision int64
	members  []Member
	alive    map[uint64]Host
	leader   uint64
	term     uint64
	changed  chan struct{}
}

func (g *Group) notifyLocked() {
	close(g.changed)
	g.changed = make(chan struct{})
}

// watch returns a channel that closes at the next change.
func (g *Group) Watch() <-chan struct{} {
	g.mu.Lock()
	defer g.mu.Unlock()

	return g.changed
}

func (g *Group) memberLocked(id uint64) *Member {
	for i := range g.members {
		if g.members[i].ID == id {
			return &g.members[i]
		}
	}

	return nil
}

// votersLocked counts the voting members, and those of them that run.
func (g *Group) votersLocked() (all, running int) {
	for _, m := range g.members {
		if m.Learner {
			continue
		}
		all++
		if g.alive[m.ID] != nil {
			running++
		}
	}

	return all, running
}

func (g *Group) quorumLocked() bool {
	all, running := g.votersLocked()

	return all > 0 && running > all/2
}

func (g *Group) Quorum() bool {
	g.mu.Lock()
	defer g.mu.Unlock()

	return g.quorumLocked()
}

// electLocked keeps a leader among the running voters.
func (g *Group) electLocked() {
	if !g.quorumLocked() {
		g.leader = 0

		return
	}
	if m := g.memberLocked(g.leader); m != nil && !m.Learner && g.alive[g.leader] != nil {
		return
	}
	for _, m := range g.members {
		if !m.Learner && g.alive[m.ID] != nil {
			g.leader = m.ID
			g.term++

			return
		}
	}
}

// commitLocked writes the member list to every running member's disk.
func (g *Group) commitLocked() {
	g.revision++
	g.electLocked()
	for id, n := range g.alive {
		n.StoreReplica(g.replicaLocked(id))
	}
	g.notifyLocked()
}

func (g *Group) replicaLocked(id uint64) *Replica {
	return &Replica{
		Cluster: g.UID, Talos: g.talos, Member: id,
		Revision: g.revision, Members: slices.Clone(g.members),
	}
}

// Attach starts a member. It fails when the member was removed from the cluster.
func (g *Group) Attach(r *Replica, n Host) error {
	g.mu.Lock()
	defer g.mu.Unlock()

	if r.Revision > g.revision {
		g.revision, g.members = r.Revision, slices.Clone(r.Members)
	}
	if g.memberLocked(r.Member) == nil {
		return errors.New("the member has been permanently removed from the cluster")
	}

	g.alive[r.Member] = n
	g.electLocked()
	n.StoreReplica(g.replicaLocked(r.Member))
	g.notifyLocked()

	return nil
}

// Detach stops a member.
func (g *Group) Detach(id uint64, n Host) {
	g.mu.Lock()
	defer g.mu.Unlock()

	if g.alive[id] == n {
		delete(g.alive, id)
		g.electLocked()
		g.notifyLocked()
	}
}

// View describes the group at one moment.
type View struct {
	Members  []Member
	Alive    map[uint64]bool
	Leader   uint64
	Term     uint64
	Revision int64
	Quorum   bool
}

func (g *Group) View() View {
	g.mu.Lock()
	defer g.mu.Unlock()

	alive := map[uint64]bool{}
	for id := range g.alive {
		alive[id] = true
	}

	return View{
		Members: slices.Clone(g.members), Alive: alive,
		Leader: g.leader, Term: g.term, Revision: g.revision, Quorum: g.quorumLocked(),
	}
}

// MemberNames returns the names and addresses of all members.
func (g *Group) MemberNames() []string {
	g.mu.Lock()
	defer g.mu.Unlock()

	var out []string
	for _, m := range g.members {
		out = append(out, m.Name, m.Addr.String())
	}

	return out
}

func FormatID(id uint64) string { return fmt.Sprintf("%016x", id) }

func NewMemberID() uint64 {
	var b [8]byte
	_, _ = rand.Read(b[:]) // never fails

	return binary.BigEndian.Uint64(b[:])
}

func NewID() string {
	var b [16]byte
	_, _ = rand.Read(b[:]) // never fails

	return hex.EncodeToString(b[:])
}

func (g *Group) Member(id uint64) *Member {
	g.mu.Lock()
	defer g.mu.Unlock()

	if m := g.memberLocked(id); m != nil {
		c := *m

		return &c
	}

	return nil
}

// NewGroup returns the etcd cluster of a replica; none of its members runs yet.
func NewGroup(r *Replica) *Group {
	return &Group{
		UID: r.Cluster, talos: r.Talos, revision: r.Revision, members: slices.Clone(r.Members),
		alive: map[uint64]Host{}, changed: make(chan struct{}),
	}
}

// RunningHosts returns the hosts whose member runs and votes, in the members' order.
func (g *Group) RunningHosts() []Host {
	g.mu.Lock()
	defer g.mu.Unlock()

	var out []Host
	for _, m := range g.members {
		if h := g.alive[m.ID]; h != nil && !m.Learner {
			out = append(out, h)
		}
	}

	return out
}

// TalosID returns the id of the Talos cluster whose etcd this is.
func (g *Group) TalosID() string { return g.talos }
