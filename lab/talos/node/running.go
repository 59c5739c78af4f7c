// SPDX-License-Identifier: Apache-2.0
// Copyright the talos-proxmox authors.

package node

import (
	"context"
	"net/netip"
	"slices"
	"strconv"
	"sync"
	"time"

	"github.com/siderolabs/talos/pkg/machinery/config"

	"github.com/talos-proxmox/talos-proxmox/lab/site/guest"
	"github.com/talos-proxmox/talos-proxmox/lab/talos/events"
	"github.com/talos-proxmox/talos-proxmox/lab/talos/machineconfig"
	"github.com/talos-proxmox/talos-proxmox/lab/talos/nodenet"
)

const (
	// servicesTime is from the configuration to a running container runtime.
	servicesTime = 5 * time.Second
	TrustdRetry  = 5 * time.Second

	// stageTick is how often, in real time, a node looks at its own health; every publishEvery-th
	// time it also looks for other members of its cluster.
	stageTick    = 100 * time.Millisecond
	publishEvery = 10
	// crowd is how many nodes look as often as that. More share the time that a machine has for them.
	crowd = 100
)

// runConfigured returns a node with a configuration, until something ends its power cycle.
func (n *Node) runConfigured(ctx context.Context, cfg config.Provider) (guest.Exit, error) {
	ctx, cancel := context.WithCancel(ctx)
	var running sync.WaitGroup
	defer func() {
		cancel()
		running.Wait()
		n.setKubelet(false)
	}()

	n.setConfig(cfg)
	n.applyNetwork()
	n.Events.Start("install", "")
	n.Events.Stop("install", "")
	n.Events.Start("boot", "")
	n.startServices()

	running.Go(func() { n.Nodes.api.ServeConfigured(ctx, n) })
	if err := n.VM.Clock.Take(ctx, guest.StepServices, strconv.Itoa(n.VM.VMID), servicesTime); err != nil {
		return guest.ExitPowerOff, err
	}
	n.setCRI()
	n.mountVolumes()

	if machineconfig.IsControlPlane(cfg) {
		running.Go(func() { n.runEtcd(ctx) })
	}
	running.Go(func() { n.runKubernetes(ctx) })
	running.Go(func() { n.runStages(ctx) })
	n.startAgent()

	return n.serve(ctx)
}

// applyNetwork brings up what platform and configuration ask for.
func (n *Node) applyNetwork() {
	addrs, vips := nodenet.ConfigAddresses(n.Config(), n.links)
	n.mu.Lock()
	n.vips = vips
	var held []netip.Prefix
	for ip := range n.heldVIPs {
		if slices.Contains(vips, ip) {
			held = append(held, nodenet.SinglePrefix(ip))
		}
	}
	n.mu.Unlock()

	all := append(slices.Clone(addrs), nodenet.PlatformAddresses(n.VM, n.Image.Platform)...)
	// The kernel has one default route of a metric: that of the platform is there first, and Talos fails to add another.
	gateways := nodenet.PlatformGateways(n.VM, n.Image.Platform)
	if len(gateways) == 0 {
		gateways = nodenet.ConfigGateways(n.Config(), n.links)
	}
	n.Book.Route(all, gateways)
	n.Book.Filter(nodenet.LetsIn(n.Config()))
	n.Book.Set(append(all, held...))
	var up []string
	for _, p := range n.Book.Addresses() {
		up = append(up, p.Addr().String())
	}
	n.Events.Addresses(n.Hostname(), up)
	if err := n.Book.Problem(); err != nil {
		n.Console("network", "error", err)
	}
}

func (n *Node) startServices() {
	for _, id := range []string{"auditd", "containerd", "cri", "machined", "syslogd", "udevd"} {
		n.Services.Set(id, events.StateRunning, "Health check successful", true)
	}
	n.Services.Set("apid", events.StatePreparing, "Running pre state", false)
	n.Services.Set("kubelet", events.StateWaiting, "Waiting for service \"cri\" to be \"up\"", false)
	if machineconfig.IsControlPlane(n.Config()) {
		n.Services.Set("trustd", events.StateRunning, "Health check successful", true)
		n.Services.Set(ServiceEtcd, events.StateWaiting, "Waiting for service \"cri\" to be \"up\"", false)
	}
}

func (n *Node) setCRI() {
	n.mu.Lock()
	defer n.mu.Unlock()
	n.criReady = true
}

// runStages moves the node from booting to running and keeps its resources fresh.
func (n *Node) runStages(ctx context.Context) {
	pace := stageTick
	tick := time.NewTicker(pace)
	defer tick.Stop()
	booted, opened := false, false

	for i := 0; ; i++ {
		if stage, _ := n.stageNow(); !booted && (stage == stageBooting || stage == stageMaintenance) && n.booted() {
			booted = true
			n.setStage(stageRunning, nil)
			n.Events.Stop("boot", "")
		}
		if booted && !opened && i%publishEvery == 0 {
			opened = n.uncordon(ctx) // the API server may start after its node
		}
		n.electVIP()
		n.updateServing()
		if i%publishEvery == 0 {
			n.readNodeStatus(ctx)
			n.PublishState()
			if wanted := stageTick * time.Duration(max(1, n.Nodes.count()/crowd)); wanted != pace {
				pace = wanted
				tick.Reset(pace)
			}
		}

		select {
		case <-ctx.Done():
			return
		case <-tick.C:
		case <-n.pokes():
			n.mountVolumes()
			n.PublishState()
		}
	}
}

// booted reports whether the boot sequence is over: the kubelet runs, and etcd on a control plane.
func (n *Node) booted() bool {
	for _, id := range n.essential() {
		if s := n.Services.Get(id); s == nil || s.GetState() != events.StateRunning || !s.GetHealth().GetHealthy() {
			return false
		}
	}

	return true
}

func (n *Node) essential() []string {
	if machineconfig.IsControlPlane(n.Config()) {
		return []string{"apid", "kubelet", ServiceEtcd, "trustd"}
	}

	return []string{"apid", "kubelet"}
}
