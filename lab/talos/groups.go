// SPDX-License-Identifier: Apache-2.0
// Copyright the talos-proxmox authors.

package talos

import (
	"crypto/rand"
	"encoding/binary"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"

	"github.com/talos-proxmox/talos-proxmox/lab/site/guest"
)

func newMemberID() uint64 {
	var b [8]byte
	_, _ = rand.Read(b[:]) // never fails

	return binary.BigEndian.Uint64(b[:])
}

func newID() string {
	var b [16]byte
	_, _ = rand.Read(b[:]) // never fails

	return hex.EncodeToString(b[:])
}

// openGroup returns the etcd cluster of a replica, and starts to look after it.
func (ns *Nodes) openGroup(r *etcdReplica, net *guest.Net, clock guest.Clock, trace *guest.Trace) *etcdGroup {
	ns.mu.Lock()
	defer ns.mu.Unlock()

	if g := ns.groups[r.Cluster]; g != nil {
		return g
	}

	g := &etcdGroup{
		uid: r.Cluster, talosID: r.Talos, net: net,
		revision: r.Revision, members: slices.Clone(r.Members),
		alive: map[uint64]*node{}, changed: make(chan struct{}),
	}
	g.kube = newKubeRunner(g, ns.opts, ns.log, ns.groupDir(r.Cluster), clock, trace)
	ns.groups[r.Cluster] = g

	return g
}

// groupsOf are the etcd clusters of one Talos cluster that the node's network reaches.
func (ns *Nodes) groupsOf(talosID string, net *guest.Net) []*etcdGroup {
	ns.mu.Lock()
	defer ns.mu.Unlock()

	var out []*etcdGroup
	for _, g := range ns.groups {
		if g.talosID == talosID && g.net == net {
			out = append(out, g)
		}
	}
	slices.SortFunc(out, func(a, b *etcdGroup) int {
		switch {
		case a.uid < b.uid:
			return -1
		case a.uid > b.uid:
			return 1
		}

		return 0
	})

	return out
}

func (ns *Nodes) groupDir(uid string) string { return filepath.Join(ns.opts.Dir, uid) }

func (ns *Nodes) holdersFile(uid string) string {
	return filepath.Join(ns.groupDir(uid), "replicas.json")
}

func (ns *Nodes) readHolders(uid string) ([]uint64, error) {
	content, err := os.ReadFile(ns.holdersFile(uid))
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	if err != nil {
		return nil, fmt.Errorf("reading the replicas of etcd cluster %s: %w", uid, err)
	}

	var ids []uint64
	if err := json.Unmarshal(content, &ids); err != nil {
		return nil, fmt.Errorf("reading the replicas of etcd cluster %s: %w", uid, err)
	}

	return ids, nil
}

// addReplica remembers that a disk holds the cluster's data.
func (ns *Nodes) addReplica(uid string, member uint64) error {
	ns.mu.Lock()
	defer ns.mu.Unlock()

	ids, err := ns.readHolders(uid)
	if err != nil || slices.Contains(ids, member) {
		return err
	}

	return ns.writeHolders(uid, append(ids, member))
}

// dropReplica remembers that a disk no longer holds the cluster's data; with the last one the data
// are gone.
func (ns *Nodes) dropReplica(uid string, member uint64) error {
	ns.mu.Lock()
	ids, err := ns.readHolders(uid)
	if err != nil {
		ns.mu.Unlock()

		return err
	}

	ids = slices.DeleteFunc(ids, func(id uint64) bool { return id == member })
	if len(ids) > 0 {
		defer ns.mu.Unlock()

		return ns.writeHolders(uid, ids)
	}
	g := ns.groups[uid]
	delete(ns.groups, uid)
	ns.mu.Unlock()

	if g != nil {
		if err := g.kube.destroy(); err != nil {
			return err
		}
	}
	if err := os.RemoveAll(ns.groupDir(uid)); err != nil {
		return fmt.Errorf("removing the data of etcd cluster %s: %w", uid, err)
	}

	return nil
}

func (ns *Nodes) writeHolders(uid string, ids []uint64) error {
	content, err := json.Marshal(ids)
	if err == nil {
		err = os.MkdirAll(ns.groupDir(uid), 0o700)
	}
	if err == nil {
		err = os.WriteFile(ns.holdersFile(uid), content, 0o600)
	}
	if err != nil {
		return fmt.Errorf("writing the replicas of etcd cluster %s: %w", uid, err)
	}

	return nil
}

func (g *etcdGroup) close() error { return g.kube.close() }
