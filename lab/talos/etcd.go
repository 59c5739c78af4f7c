// SPDX-License-Identifier: Apache-2.0
// Copyright the talos-proxmox authors.

package talos

import (
	"errors"
	"net/netip"
	"slices"
	"sync"

	"github.com/talos-proxmox/talos-proxmox/lab/site/guest"
)

// Errors of etcd, in its own words.
var (
	errMemberNotFound  = errors.New("etcdserver: member not found")
	errPeerURLExists   = errors.New("etcdserver: Peer URLs already exists")
	errUnhealthy       = errors.New("etcdserver: unhealthy cluster")
	errNoLeader        = errors.New("etcdserver: no leader")
	errTooManyLearners = errors.New("etcdserver: too many learner members in cluster")
	errNotEnough       = errors.New("etcdserver: re-configuration failed due to not enough started members")
)

// etcdMember is a member as every replica knows it.
type etcdMember struct {
	ID      uint64     `json:"id"`
	Name    string     `json:"name"`
	Addr    netip.Addr `json:"addr"`
	Learner bool       `json:"learner,omitempty"`
}

// etcdReplica is what a member keeps on its disk.
type etcdReplica struct {
	// Cluster identifies the etcd cluster, Talos the cluster of the machine configuration.
	Cluster  string       `json:"cluster"`
	Talos    string       `json:"talos"`
	Member   uint64       `json:"member"`
	Revision int64        `json:"revision"`
	Members  []etcdMember `json:"members"`
}

// etcdGroup is one etcd cluster: its members, those of them that run, and the Kubernetes whose data
// it holds.
type etcdGroup struct {
	uid     string
	talosID string
	net     *guest.Net
	kube    *kubeRunner

	mu       sync.Mutex
	revision int64
	members  []etcdMember
	alive    map[uint64]*node
	leader   uint64
	term     uint64
	changed  chan struct{}
}

func (g *etcdGroup) notifyLocked() {
	close(g.changed)
	g.changed = make(chan struct{})
}

// watch returns a channel that closes at the next change.
func (g *etcdGroup) watch() <-chan struct{} {
	g.mu.Lock()
	defer g.mu.Unlock()

	return g.changed
}

func (g *etcdGroup) memberLocked(id uint64) *etcdMember {
	for i := range g.members {
		if g.members[i].ID == id {
			return &g.members[i]
		}
	}

	return nil
}

// votersLocked counts the voting members, and those of them that run.
func (g *etcdGroup) votersLocked() (all, running int) {
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

func (g *etcdGroup) quorumLocked() bool {
	all, running := g.votersLocked()

	return all > 0 && running > all/2
}

func (g *etcdGroup) quorum() bool {
	g.mu.Lock()
	defer g.mu.Unlock()

	return g.quorumLocked()
}

// electLocked keeps a leader among the running voters.
func (g *etcdGroup) electLocked() {
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
func (g *etcdGroup) commitLocked() {
	g.revision++
	g.electLocked()
	for id, n := range g.alive {
		n.storeReplica(g.replicaLocked(id))
	}
	g.notifyLocked()
}

func (g *etcdGroup) replicaLocked(id uint64) *etcdReplica {
	return &etcdReplica{
		Cluster: g.uid, Talos: g.talosID, Member: id,
		Revision: g.revision, Members: slices.Clone(g.members),
	}
}

// attach starts a member. It fails when the member was removed from the cluster.
func (g *etcdGroup) attach(r *etcdReplica, n *node) error {
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
	n.storeReplica(g.replicaLocked(r.Member))
	g.notifyLocked()

	return nil
}

// detach stops a member.
func (g *etcdGroup) detach(id uint64, n *node) {
	g.mu.Lock()
	defer g.mu.Unlock()

	if g.alive[id] == n {
		delete(g.alive, id)
		g.electLocked()
		g.notifyLocked()
	}
}

// etcdView is a moment of the group.
type etcdView struct {
	members  []etcdMember
	alive    map[uint64]bool
	leader   uint64
	term     uint64
	revision int64
	quorum   bool
}

func (g *etcdGroup) view() etcdView {
	g.mu.Lock()
	defer g.mu.Unlock()

	alive := map[uint64]bool{}
	for id := range g.alive {
		alive[id] = true
	}

	return etcdView{
		members: slices.Clone(g.members), alive: alive,
		leader: g.leader, term: g.term, revision: g.revision, quorum: g.quorumLocked(),
	}
}

// running are the nodes whose member runs, in the members' order.
func (g *etcdGroup) running() []*node {
	g.mu.Lock()
	defer g.mu.Unlock()

	var out []*node
	for _, m := range g.members {
		if n := g.alive[m.ID]; n != nil && !m.Learner {
			out = append(out, n)
		}
	}

	return out
}

// memberNames are the names and addresses of all members.
func (g *etcdGroup) memberNames() []string {
	g.mu.Lock()
	defer g.mu.Unlock()

	var out []string
	for _, m := range g.members {
		out = append(out, m.Name, m.Addr.String())
	}

	return out
}
