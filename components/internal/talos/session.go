// SPDX-License-Identifier: Apache-2.0
// Copyright the talos-proxmox authors.

// Package talos registers what a Talos cluster consists of: secrets, each node's configuration, etcd's
// bootstrap, versions, members, day-0 objects, and the gate that opens when all is healthy.
package talos

import (
	"context"
	"fmt"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/pulumi/pulumi/sdk/v3/go/pulumi"

	"github.com/talos-proxmox/talos-proxmox/components/internal/hook"
	"github.com/talos-proxmox/talos-proxmox/components/internal/node"
	"github.com/talos-proxmox/talos-proxmox/internal/cluster"
	"github.com/talos-proxmox/talos-proxmox/internal/rollout"
	"github.com/talos-proxmox/talos-proxmox/spec"
)

// Session holds what the steps of one run share that reach into a cluster.
type Session struct {
	Ctx *pulumi.Context
	// Name begins the names of hooks; unique in the program.
	Name string
	// Config is complete: defaults are filled in.
	Config  spec.Config
	Cluster cluster.Cluster
	APIs    *APIs
	// Gate is passed by everything that can take a node down.
	Gate *rollout.Gate

	// Proxmox reaches the hosts of the nodes' VMs.
	Proxmox node.API
	// bootstrapped remembers whether the cluster was bootstrapped.
	bootstrapped bootstrapMemory
	// isNew reports whether the cluster is created in this run.
	isNew atomic.Bool
	// configs are the nodes' configurations by name, as they become known.
	configs   sync.Map
	snapshots runSnapshots
	work      hook.Work
}

// NewSession returns the session of a run.
func NewSession(ctx *pulumi.Context, name string, cfg spec.Config) *Session {
	wanted := clusterOf(cfg)

	s := &Session{
		Ctx: ctx, Name: name, Config: cfg, Cluster: wanted, APIs: newAPIs(wanted),
		Gate: rollout.NewGate(*cfg.Lifecycle.MaxUnavailable), Proxmox: node.API{Settings: cfg.Proxmox},
	}
	s.APIs.force = cfg.Lifecycle.Force
	s.Gate.WithLock(rollout.NewLock(fmt.Sprintf("stack %s/%s", ctx.Project(), ctx.Stack()),
		func(ctx context.Context) (cluster.Access, error) { return s.APIs.open(ctx) }))

	return s
}

// hook registers a hook that runs at up.
func (s *Session) hook(what string, run func(step hook.Step, args *pulumi.ResourceHookArgs) error) (*pulumi.ResourceHook, error) {
	return hook.Register(s.Ctx, hook.ID("talos", s.Name, what), run)
}

// nodeHook registers a hook that runs at up and works on one node.
func (s *Session) nodeHook(
	what string, m cluster.Member, run func(step hook.Step, args *pulumi.ResourceHookArgs) error,
) (*pulumi.ResourceHook, error) {
	return s.hook(what+"/"+m.Name, func(step hook.Step, args *pulumi.ResourceHookArgs) error {
		s.locate(step, m.Name)

		return run(step, args)
	})
}

// Serves reports whether a node of this cluster answers at an address: one that trusts the cluster's credentials.
func (s *Session) Serves(ctx context.Context, address string) bool {
	access, err := s.APIs.open(ctx)
	if err != nil {
		return false
	}
	api, err := access.Talos(ctx)
	if err != nil {
		return false
	}
	_, err = api.Version(ctx, address)

	return err == nil
}

// adopted reports whether the cluster was made elsewhere.
func (s *Session) adopted() bool { return *s.Config.Cluster.Adopted }

// pollOptions returns how long a step waits, and how often and how long at a time it asks.
func pollOptions(l spec.Lifecycle, limit *spec.Duration) cluster.PollOptions {
	opts := cluster.DefaultPollOptions(time.Duration(*limit))
	opts.Call = time.Duration(*l.CallTimeout)

	return opts
}

// clusterOf returns what operations need to know about the cluster.
func clusterOf(cfg spec.Config) cluster.Cluster {
	c := cluster.Cluster{
		Name:           spec.Value(cfg.Cluster.Name),
		SkipKubernetes: skipKubernetesChecks(cfg),
		KubeProxy:      cfg.KubeProxyEnabled(),
		CoreDNS:        cfg.Manifests.CoreDNS == nil || !spec.Value(cfg.Manifests.CoreDNS.Disabled),
	}
	for _, n := range cfg.Nodes {
		c.Members = append(c.Members, memberOf(n))
	}

	return c
}

// skipKubernetesChecks reports whether health is judged without Kubernetes: as told, else where the stack brings no pod network,
// without which nodes never become Ready.
func skipKubernetesChecks(cfg spec.Config) bool {
	if told := cfg.Lifecycle.SkipKubernetesChecks; told != nil {
		return *told
	}

	return spec.Value(cfg.CNI.Name) == "none"
}

// memberOf returns what operations need to know about a node.
func memberOf(n spec.NamedNode) cluster.Member {
	return cluster.Member{
		Name: n.Name, Hostname: spec.Value(n.Hostname),
		Address: n.Address().String(), ControlPlane: n.IsControlPlane(),
	}
}

// drainOf returns how nodes are drained.
func drainOf(l spec.Lifecycle) rollout.Drain {
	return rollout.Drain{
		Timeout: time.Duration(*l.DrainTimeout), Force: *l.DrainPolicy == "force", Interval: 5 * time.Second,
	}
}

// runSnapshots takes the snapshots of one run as soon as the cluster can be reached.
type runSnapshots struct {
	once sync.Once
	of   *rollout.Snapshots
}

// snapshotsOf returns the snapshots that are taken before an upgrade, the same for the whole run; nil when
// the stack asks for none.
func snapshotsOf(s *Session, access cluster.Access) *rollout.Snapshots {
	l := s.Config.Lifecycle
	if l.SnapshotDirectory == nil {
		return nil
	}
	s.snapshots.once.Do(func() {
		s.snapshots.of = &rollout.Snapshots{
			Access: access, Cluster: s.Cluster, Directory: *l.SnapshotDirectory,
			Keep: *l.SnapshotsKept, Poll: pollOptions(l, l.UpgradeTimeout),
		}
	})

	return s.snapshots.of
}

// locate tells a step which of the cluster's nodes it works on, and counts the warnings that it says.
func (s *Session) locate(step hook.Step, node string) {
	for i, m := range s.Cluster.Members {
		if m.Name == node {
			step.At(i+1, len(s.Cluster.Members))
		}
	}
}

// reporting returns how a step's lines are reported, with warnings counted.
func (s *Session) reporting(step hook.Step) func(line string) {
	return func(line string) {
		if strings.HasPrefix(line, "warning") {
			s.work.Warned()
		}
		step.Report(line)
	}
}

// disruption returns what it takes to lead a node of the cluster through the gate.
func (s *Session) disruption(step hook.Step) (rollout.Disruption, error) {
	checker, err := s.checker(step)

	return rollout.Disruption{
		Gate: s.Gate, Checker: checker, Drain: drainOf(s.Config.Lifecycle),
		ApplyTimeout: time.Duration(*s.Config.Lifecycle.ApplyTimeout),
	}, err
}

// checker returns the checks that are made before a node goes down and when it is back.
func (s *Session) checker(step hook.Step) (rollout.HealthChecker, error) {
	remote, err := s.APIs.openLiving(s.Ctx.Context(), s.reporting(step))
	if err != nil {
		return rollout.HealthChecker{}, err
	}

	// VMs come before the members that leave, and beside those that join.
	cluster := s.Cluster
	cluster.Leaving, cluster.Joining = true, true

	return rollout.HealthChecker{
		Access: remote, Cluster: cluster, Report: s.reporting(step), Poll: pollOptions(s.Config.Lifecycle, s.Config.Lifecycle.ReadyTimeout),
		Bootstrapped: s.wasBootstrapped, Force: s.Config.Lifecycle.Force,
	}, nil
}

// bootstrapMemory remembers whether a cluster was bootstrapped, by this run or an earlier one.
type bootstrapMemory struct {
	mu    sync.Mutex
	known bool
	was   bool
}

// set records that the cluster is bootstrapped by now.
func (b *bootstrapMemory) set() {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.known, b.was = true, true
}

// wasBootstrapped reports whether the cluster was ever bootstrapped. Hooks that run before the bootstrap is
// registered cannot ask its Stash, so the engine is asked for the stack's last state. A cluster that was adopted
// was bootstrapped elsewhere.
func (s *Session) wasBootstrapped(context.Context) (bool, error) {
	if s.adopted() {
		return true, nil
	}
	s.bootstrapped.mu.Lock()
	defer s.bootstrapped.mu.Unlock()
	if s.bootstrapped.known {
		return s.bootstrapped.was, nil
	}
	was, err := inState(s.Ctx, stashToken, s.Name+bootstrapSuffix)
	if err == nil {
		s.bootstrapped.known, s.bootstrapped.was = true, was
	}

	return was, err
}
