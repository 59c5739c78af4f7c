// SPDX-License-Identifier: Apache-2.0
// Copyright the talos-proxmox authors.

package talos

import (
	"context"
	"fmt"
	"net/netip"
	"slices"
	"sync"
	"time"

	"github.com/siderolabs/talos/pkg/machinery/api/machine"
	"github.com/siderolabs/talos/pkg/machinery/config"
	"github.com/siderolabs/talos/pkg/machinery/resources/runtime"

	"github.com/talos-proxmox/talos-proxmox/lab/site/guest"
)

const (
	// servicesTime is from the configuration to a running container runtime.
	servicesTime = 5 * time.Second
	trustdRetry  = 5 * time.Second

	// stageTick is how often, in real time, a node looks at its own health; every publishEvery-th
	// time it also looks for other members of its cluster.
	stageTick    = 100 * time.Millisecond
	publishEvery = 10
)

// runConfigured is a node with a configuration, until something ends its power cycle.
func (n *node) runConfigured(ctx context.Context, cfg config.Provider) (guest.Exit, error) {
	ctx, cancel := context.WithCancel(ctx)
	var running sync.WaitGroup
	defer func() {
		cancel()
		running.Wait()
		n.setKubelet(false)
	}()

	n.setConfig(cfg)
	n.applyNetwork()
	n.events.sequence("boot", machine.SequenceEvent_START, "", nil)
	n.startServices()

	running.Go(func() { n.runAPI(ctx) })
	if err := n.m.Clock.Sleep(ctx, servicesTime); err != nil {
		return guest.ExitPowerOff, err
	}
	n.setCRI()
	n.mountVolumes()

	if isControlPlane(cfg) {
		running.Go(func() { n.runEtcd(ctx) })
	}
	running.Go(func() { n.runKubernetes(ctx) })
	running.Go(func() { n.runStages(ctx) })
	n.startAgent()

	return n.serve(ctx)
}

// applyNetwork brings up what platform and configuration ask for.
func (n *node) applyNetwork() {
	addrs, vips := configAddresses(n.config(), n.links)
	n.mu.Lock()
	n.vips = vips
	var held []netip.Prefix
	for ip := range n.heldVIPs {
		if slices.Contains(vips, ip) {
			held = append(held, singlePrefix(ip))
		}
	}
	n.mu.Unlock()

	all := append(slices.Clone(addrs), platformAddresses(n.m, n.image.Platform)...)
	n.book.set(append(all, held...))
	if err := n.book.problem(); err != nil {
		n.console("network", "error", err)
	}
}

func (n *node) startServices() {
	for _, id := range []string{"auditd", "containerd", "cri", "machined", "syslogd", "udevd"} {
		n.services.set(id, stateRunning, "Health check successful", true)
	}
	n.services.set("apid", statePreparing, "Running pre state", false)
	n.services.set("kubelet", stateWaiting, "Waiting for service \"cri\" to be \"up\"", false)
	if isControlPlane(n.config()) {
		n.services.set("trustd", stateRunning, "Health check successful", true)
		n.services.set(serviceEtcd, stateWaiting, "Waiting for service \"cri\" to be \"up\"", false)
	}
}

func (n *node) setCRI() {
	n.mu.Lock()
	defer n.mu.Unlock()
	n.criReady = true
}

// bootstrapAllowed tells whether the container runtime is up.
func (n *node) bootstrapAllowed() bool {
	n.mu.Lock()
	defer n.mu.Unlock()

	return n.criReady
}

// runStages moves the node from booting to running and keeps its resources fresh.
func (n *node) runStages(ctx context.Context) {
	tick := time.NewTicker(stageTick)
	defer tick.Stop()
	booted, opened := false, false

	for i := 0; ; i++ {
		if stage, _ := n.stageNow(); !booted && (stage == stageBooting || stage == stageMaintenance) && n.booted() {
			booted = true
			n.setStage(stageRunning, nil)
			n.events.sequence("boot", machine.SequenceEvent_STOP, "", nil)
		}
		if booted && !opened && i%publishEvery == 0 {
			opened = n.uncordon(ctx) // the API server may start after its node
		}
		n.electVIP()
		n.updateServing()
		if i%publishEvery == 0 {
			n.publishState()
		}

		select {
		case <-ctx.Done():
			return
		case <-tick.C:
		case <-n.pokes():
			n.mountVolumes()
			n.publishState()
		}
	}
}

// booted tells whether the boot sequence is over: the kubelet runs, and etcd on a control plane.
func (n *node) booted() bool {
	for _, id := range n.essential() {
		if s := n.services.get(id); s == nil || s.GetState() != stateRunning || !s.GetHealth().GetHealthy() {
			return false
		}
	}

	return true
}

func (n *node) essential() []string {
	if isControlPlane(n.config()) {
		return []string{"apid", "kubelet", serviceEtcd, "trustd"}
	}

	return []string{"apid", "kubelet"}
}

func (n *node) unmetConditions() []runtime.UnmetCondition {
	stage, _ := n.stageNow()
	if stage == stageMaintenance || n.config() == nil {
		return nil
	}

	var unmet []runtime.UnmetCondition
	for _, id := range n.essential() {
		s := n.services.get(id)
		switch {
		case s == nil || s.GetState() != stateRunning:
			unmet = append(unmet, runtime.UnmetCondition{
				Name: "services", Reason: fmt.Sprintf("service %q not in expected state", id),
			})
		case !s.GetHealth().GetHealthy():
			unmet = append(unmet, runtime.UnmetCondition{Name: "services", Reason: fmt.Sprintf("service %q is not healthy", id)})
		}
	}

	return unmet
}
