// SPDX-License-Identifier: Apache-2.0
// Copyright the talos-proxmox authors.

package talos

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"net/netip"
	"slices"
	"sync"
	"time"

	"github.com/siderolabs/talos/pkg/machinery/api/machine"
	"github.com/siderolabs/talos/pkg/machinery/api/storage"
	"github.com/siderolabs/talos/pkg/machinery/config"
	"github.com/siderolabs/talos/pkg/machinery/resources/runtime"

	"github.com/talos-proxmox/talos-proxmox/lab/site"
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
func (n *node) runConfigured(ctx context.Context, cfg config.Provider) (site.Exit, error) {
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
		return site.ExitPowerOff, err
	}
	n.setCRI()

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

// pkiNow is the PKI that the API uses, nil while it has none.
func (n *node) pkiNow() *apiPKI {
	n.mu.Lock()
	defer n.mu.Unlock()

	return n.pki
}

// renewPKI issues the API's certificates for the addresses that the node has.
func (n *node) renewPKI() error {
	cfg := n.config()
	sec := cfg.Machine().Security()
	addrs := n.book.wanted()
	n.mu.Lock()
	for _, v := range n.vips {
		addrs = append(addrs, singlePrefix(v))
	}
	n.mu.Unlock()

	ca, accepted := sec.IssuingCA(), sec.AcceptedCAs()
	if !isControlPlane(cfg) {
		peer := n.nodes.trustd(n)
		if peer == nil {
			return errors.New("no control plane's trustd answers")
		}
		ca = peer.config().Machine().Security().IssuingCA()
	}

	pki, err := newAPIPKI(ca, accepted, isControlPlane(cfg), n.hostname(), addrs, sec.CertSANs())
	if err != nil {
		return err
	}
	n.mu.Lock()
	n.pki = pki
	n.mu.Unlock()

	return nil
}

// trustd finds a control plane that signs a worker's certificate: the worker must trust its
// authority and know its token.
func (ns *Nodes) trustd(worker *node) *node {
	sec := worker.config().Machine().Security()
	for _, n := range ns.all() {
		cfg := n.config()
		if n.m.Net != worker.m.Net || !isControlPlane(cfg) || len(n.book.addresses()) == 0 {
			continue
		}
		theirs := cfg.Machine().Security()
		if sec.IssuingCA() == nil || theirs.IssuingCA() == nil || theirs.Token() != sec.Token() {
			continue
		}
		if sameCertificate(theirs.IssuingCA().Crt, sec.IssuingCA().Crt) {
			return n
		}
	}

	return nil
}

// runAPI serves the Talos API with mutual TLS.
func (n *node) runAPI(ctx context.Context) {
	for {
		err := n.renewPKI()
		if err == nil {
			break
		}
		n.console("apid is waiting for its certificate", "error", err)
		if n.m.Clock.Sleep(ctx, trustdRetry) != nil {
			return
		}
	}

	api := n.newServer(&tls.Config{
		MinVersion: tls.VersionTLS13,
		GetConfigForClient: func(*tls.ClientHelloInfo) (*tls.Config, error) {
			pki := n.pkiNow()

			return &tls.Config{
				MinVersion: tls.VersionTLS13, NextProtos: []string{"h2"},
				Certificates: []tls.Certificate{pki.server},
				ClientAuth:   tls.RequireAndVerifyClientCert, ClientCAs: pki.roots,
			}, nil
		},
	}, false)
	s := &machineServer{node: n}
	machine.RegisterMachineServiceServer(api, s)
	storage.RegisterStorageServiceServer(api, &storageServer{node: n})
	registerTime(api)
	n.registerState(api)

	stop := n.listenAPI(api)
	defer stop()
	n.services.set("apid", stateRunning, "Health check successful", true)
	n.publishState()
	<-ctx.Done()
}

// runStages moves the node from booting to running and keeps its resources fresh.
func (n *node) runStages(ctx context.Context) {
	tick := time.NewTicker(stageTick)
	defer tick.Stop()
	booted := false

	for i := 0; ; i++ {
		if stage, _ := n.stageNow(); !booted && (stage == stageBooting || stage == stageMaintenance) && n.booted() {
			booted = true
			n.setStage(stageRunning, nil)
			n.events.sequence("boot", machine.SequenceEvent_STOP, "", nil)
			n.uncordon(ctx)
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

// startAgent runs the guest agent where the image has it and the VM offers its port.
func (n *node) startAgent() {
	if !slices.ContainsFunc(n.image.Extensions, func(e string) bool {
		return e == "qemu-guest-agent" || e == "siderolabs/qemu-guest-agent"
	}) {
		return
	}
	if !n.m.AgentEnabled {
		n.services.set("ext-qemu-guest-agent", stateWaiting,
			"Waiting for file \"/dev/virtio-ports/org.qemu.guest_agent.0\" to exist", false)

		return
	}

	n.services.set("ext-qemu-guest-agent", stateRunning, "Started task ext-qemu-guest-agent", true)
	if n.m.SetAgent != nil {
		n.m.SetAgent(n.interfaces)
	}
}

func (n *node) interfaces() []site.Interface {
	out := []site.Interface{{Name: "lo", MAC: "00:00:00:00:00:00", Addresses: parsePrefixes([]string{"127.0.0.1/8"})}}
	for i, l := range n.links {
		iface := site.Interface{Name: l.name, MAC: l.mac}
		if i == 0 {
			iface.Addresses = n.book.addresses()
		}
		out = append(out, iface)
	}

	return out
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
			unmet = append(unmet, runtime.UnmetCondition{Name: "services", Reason: fmt.Sprintf("service %q not in expected state", id)})
		case !s.GetHealth().GetHealthy():
			unmet = append(unmet, runtime.UnmetCondition{Name: "services", Reason: fmt.Sprintf("service %q is not healthy", id)})
		}
	}

	return unmet
}
