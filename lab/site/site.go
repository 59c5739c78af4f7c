// SPDX-License-Identifier: Apache-2.0
// Copyright the talos-proxmox authors.

package site

import (
	"context"
	"fmt"
	"log/slog"
	"net"
	"net/http"
	"os"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/talos-proxmox/talos-proxmox/lab/fault"
	"github.com/talos-proxmox/talos-proxmox/lab/site/guest"
	"github.com/talos-proxmox/talos-proxmox/lab/site/pve"
)

// Options say how to open a site.
type Options struct {
	// Dir holds the site; it is made when missing.
	Dir string
	// Definition is what a new site consists of; nil means [DefaultDefinition].
	Definition *Definition
	// Clock scales the site's waits.
	Clock guest.Clock
	// Trace keeps the operations; nil keeps none.
	Trace *guest.Trace
	// Guest makes what boots from a bootable medium; nil boots nothing.
	Guest func(*guest.Machine) guest.Guest
	// HTTP fetches what a host downloads; nil uses one that dials the site's network and trusts nobody.
	HTTP *http.Client
	// PullImage resolves container images for guests; nil knows none.
	PullImage func(ctx context.Context, ref string) (*guest.Image, error)
	// DiskDeleted hears what was on a disk that is gone for good; nil when nobody cares.
	DiskDeleted func(content []byte)
	// Faults are what goes wrong; nil when nothing does.
	Faults *fault.Set
	// Log gets what happens to hosts and VMs; nil keeps nothing.
	Log *slog.Logger
}

// Site holds an open site. Its methods may be called at the same time.
type Site struct {
	opts Options
	net  *guest.Net
	ctx  context.Context // the life of the site: tasks and guests end with it
	stop context.CancelFunc
	work sync.WaitGroup

	logs sync.Mutex // guards the tasks' logs; taken last, so that steps under mu can write to them

	mu      sync.Mutex
	state   *state
	running map[vmKey]*process
	tasks   map[string]*Task
	order   []string // of tasks
	locks   map[vmKey]*sync.Mutex
	pid     int64
	gone    [][]byte // contents of deleted disks that DiskDeleted has not heard of
}

type vmKey struct {
	cluster string
	id      int
}

// Open opens the site of a directory and starts the VMs that were running.
func Open(opts Options) (*Site, error) {
	if opts.Definition == nil {
		d := DefaultDefinition()
		opts.Definition = &d
	}
	if opts.Log == nil {
		opts.Log = slog.New(slog.DiscardHandler)
	}
	if opts.Trace == nil {
		opts.Trace = guest.NewTrace(nil)
	}
	if err := os.MkdirAll(opts.Dir, 0o700); err != nil {
		return nil, fmt.Errorf("making the site's directory: %w", err)
	}

	st, err := load(opts.Dir, *opts.Definition)
	if err != nil {
		return nil, err
	}

	s := &Site{
		opts: opts, net: guest.NewNet(), state: st,
		running: map[vmKey]*process{}, tasks: map[string]*Task{}, locks: map[vmKey]*sync.Mutex{},
		pid: time.Now().Unix() & 0xffff,
	}
	s.ctx, s.stop = context.WithCancel(context.Background())
	if s.opts.HTTP == nil {
		s.opts.HTTP = &http.Client{Transport: &http.Transport{DialContext: s.net.DialContext}}
	}
	if err := s.loadTasks(); err != nil {
		return nil, err
	}
	if err := s.save(); err != nil {
		return nil, err
	}

	s.net.Block(func(name string) bool { return s.unpowered(name) || s.cutOff(name) })
	if opts.Faults != nil {
		s.work.Go(s.watchFaults)
	}

	return s, nil
}

// Resume powers on every VM that was on when the site was last open. Call it once the site's network
// is served, so that guests find what they look for.
func (s *Site) Resume() {
	s.mu.Lock()
	defer s.mu.Unlock()

	for _, c := range s.state.Clusters {
		for _, v := range c.sortedVMs() {
			v.Lock = ""
			if !v.On {
				continue
			}
			v.applyPending()
			if err := s.powerOn(c, v); err != nil {
				s.opts.Log.Error("starting a VM again", "vm", v.ID, "error", err)
				v.On = false
			}
		}
	}
}

// Close cuts the power of the whole site: guests and tasks end at once. VMs that ran will run again
// when the site is next opened.
func (s *Site) Close() error {
	s.stop()
	s.work.Wait()

	s.mu.Lock()
	defer s.mu.Unlock()

	return s.save()
}

// tellGone passes on which disks are gone. The caller does not hold the lock.
func (s *Site) tellGone() {
	s.mu.Lock()
	gone := s.gone
	s.gone = nil
	s.mu.Unlock()

	if s.opts.DiskDeleted == nil {
		return
	}
	for _, content := range gone {
		s.opts.DiskDeleted(content)
	}
}

// Net returns the site's network.
func (s *Site) Net() *guest.Net { return s.net }

// Clock scales the site's waits.
func (s *Site) Clock() guest.Clock { return s.opts.Clock }

// Trace keeps the site's operations.
func (s *Site) Trace() *guest.Trace { return s.opts.Trace }

// Faults returns what goes wrong with the site; nil when nothing does.
func (s *Site) Faults() *fault.Set { return s.opts.Faults }

// Dir returns the site's directory.
func (s *Site) Dir() string { return s.opts.Dir }

// Cluster returns the Proxmox VE cluster that answers at an API endpoint: the one of the host whose
// name or address endpoint is (a domain after the name does not matter), else the default one.
func (s *Site) Cluster(endpoint string) *Cluster {
	s.mu.Lock()
	defer s.mu.Unlock()

	host := endpoint
	if h, _, err := net.SplitHostPort(endpoint); err == nil {
		host = h
	}
	short, _, _ := strings.Cut(host, ".")

	for _, c := range s.state.Clusters {
		for _, h := range c.Hosts {
			if strings.EqualFold(h.Name, host) || strings.EqualFold(h.Name, short) || (h.Address != "" && h.Address == host) {
				return &Cluster{s: s, c: c}
			}
		}
	}

	return &Cluster{s: s, c: s.state.Clusters[0]}
}

// Clusters returns all clusters of the site, the default one first.
func (s *Site) Clusters() []*Cluster {
	s.mu.Lock()
	defer s.mu.Unlock()

	var cs []*Cluster
	for _, c := range s.state.Clusters {
		cs = append(cs, &Cluster{s: s, c: c})
	}

	return cs
}

// Cluster plays one Proxmox VE cluster of a site.
type Cluster struct {
	s *Site
	c *cluster
}

// Name returns the cluster's name.
func (c *Cluster) Name() string { return c.c.Name }

// PVE returns the major version of Proxmox VE that the cluster runs.
func (c *Cluster) PVE() int { return max(c.c.PVE, 8) }

// Hosts returns the cluster's hosts by name.
func (c *Cluster) Hosts() []HostDef {
	c.s.mu.Lock()
	defer c.s.mu.Unlock()

	return slices.SortedFunc(slices.Values(c.c.Hosts), func(a, b HostDef) int { return strings.Compare(a.Name, b.Name) })
}

// CheckHost fails as Proxmox VE does when the cluster has no such host. On a site with open hosts the
// host comes into being.
func (c *Cluster) CheckHost(name string) error {
	c.s.mu.Lock()
	defer c.s.mu.Unlock()

	_, err := c.host(name)

	return err
}

// host returns what [Cluster.CheckHost] does, for callers that hold the lock.
func (c *Cluster) host(name string) (HostDef, error) {
	if h, ok := c.c.host(name); ok {
		return h, nil
	}
	if !c.s.state.OpenHosts || !pve.HostName.MatchString(name) {
		return HostDef{}, pve.Errorf("hostname lookup '%s' failed - failed to get address info for: %s: Name or service not known", name, name)
	}

	h := openHost(name)
	c.c.Hosts = append(c.c.Hosts, h)
	c.s.opts.Log.Info("a host that was first named now exists", "host", name, "cluster", c.c.Name)

	return h, c.s.save()
}
