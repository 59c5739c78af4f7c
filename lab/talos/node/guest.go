// SPDX-License-Identifier: Apache-2.0
// Copyright the talos-proxmox authors.

package node

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/google/uuid"

	"github.com/talos-proxmox/talos-proxmox/lab/site/guest"
	"github.com/talos-proxmox/talos-proxmox/lab/talos/disks"
	"github.com/talos-proxmox/talos-proxmox/lab/talos/events"
	"github.com/talos-proxmox/talos-proxmox/lab/talos/machineconfig"
	"github.com/talos-proxmox/talos-proxmox/lab/talos/nodenet"
)

const (
	// bootTime is from power-on until the API answers.
	bootTime = 15 * time.Second
	// minimumMemoryMiB is what the kernel needs to unpack its initramfs.
	minimumMemoryMiB = 512
)

// Stages of a node, as MachineStatus names them; the last two are ours.
const (
	stageBooting     = "booting"
	stageInstalling  = "installing"
	stageMaintenance = "maintenance"
	stageRunning     = "running"
	stageRebooting   = "rebooting"
	stageShutdown    = "shutting down"
	stageResetting   = "resetting"
	stageUpgrading   = "upgrading"
	stageHalted      = "halted"
)

type talosGuest struct{ nodes *Nodes }

// Run implements [site.Guest].
func (g talosGuest) Run(ctx context.Context, m *guest.Machine) guest.Exit {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()

	n := newNode(g.nodes, m)
	loadErr := n.load() // before anybody else sees the node: it sets what never changes afterwards
	g.nodes.add(n)
	defer g.nodes.forget(n)
	defer close(n.off)

	go func() {
		select {
		case <-ctx.Done():
		case <-m.ShutdownRequested:
			n.Ask(Request{Sequence: SequenceShutdown, Takeover: true, Run: n.Shutdown(true)}) // ACPI: forced
		}
	}()

	booksDone := make(chan struct{})
	go func() {
		defer close(booksDone)
		n.Book.Run(ctx)
	}()
	defer func() {
		cancel()
		<-booksDone
	}()

	exit, err := n.boot(ctx, loadErr)
	if err != nil && ctx.Err() == nil {
		n.Console("stopped", "error", err)
	}

	return exit
}

func newNode(ns *Nodes, m *guest.Machine) *Node {
	log := events.NewLog()

	return &Node{
		Nodes: ns, VM: m,
		Book:     nodenet.NewAddressBook(m.Net, fmt.Sprintf("VM %d (%s) on %s", m.VMID, m.Name, m.Host)),
		Events:   log,
		Services: events.NewServices(log),
		BootID:   uuid.NewString(),
		Started:  time.Now(),
		requests: make(chan Request),
		off:      make(chan struct{}),
		poked:    make(chan struct{}),
		stage:    stageBooting,
	}
}

func (ns *Nodes) add(n *Node) {
	ns.mu.Lock()
	defer ns.mu.Unlock()
	ns.nodes[n.key()] = n
}

func (ns *Nodes) forget(n *Node) {
	ns.mu.Lock()
	defer ns.mu.Unlock()
	if ns.nodes[n.key()] == n {
		delete(ns.nodes, n.key())
	}
}

// boot returns a power cycle: from power-on to the exit.
func (n *Node) boot(ctx context.Context, err error) (guest.Exit, error) {
	end := n.VM.Trace.Begin("talos.boot", fmt.Sprintf("vm/%d", n.VM.VMID), nil)
	if err == nil {
		platform := nodenet.PlatformAddresses(n.VM, n.Image.Platform)
		n.Book.Route(platform, nodenet.PlatformGateways(n.VM, n.Image.Platform))
		n.Book.Set(platform)
		err = n.VM.Clock.Take(ctx, guest.StepBoot, strconv.Itoa(n.VM.VMID), bootTime)
	}
	end(err)
	if err != nil {
		return n.halt(ctx, err)
	}

	if n.halted() {
		return n.halt(ctx, errors.New("Talos is already installed to disk but booted from another media and "+
			"talos.halt_if_installed kernel parameter is set. Please reboot from the disk."))
	}
	if upgraded, err := n.finishStagedUpgrade(ctx); err != nil {
		n.Console("staged upgrade", "error", err)
	} else if upgraded {
		return n.rebootNow(ctx)
	}
	n.Events.Start("initialize", "")
	n.setUpState()
	n.Events.Stop("initialize", "")

	if n.Disk != nil && len(n.Disk.Read().Config) > 0 {
		cfg, err := machineconfig.Load(n.Disk.Read().Config, n.Image.Talos)
		if err == nil {
			return n.runConfigured(ctx, cfg)
		}
		n.Console("loading the configuration", "error", err)
	}

	return n.runMaintenance(ctx)
}

// load chooses the medium as the firmware and the boot loader do.
func (n *Node) load() error {
	n.Disk = disks.InstalledDisk(n.VM)

	switch {
	case !n.VM.BootedFromCD && n.VM.BootDisk != nil && n.Disk != nil && n.Disk.Disk.Device == n.VM.BootDisk.Device:
		n.Image = n.Disk.Read().Active
	case n.VM.CD != nil:
		n.Image = *n.VM.CD
	case n.Disk != nil:
		n.Image = n.Disk.Read().Active
	default:
		return errors.New("no bootable device")
	}
	n.links = nodenet.LinksOf(n.VM, n.Image.Platform)

	switch cpu := n.VM.CPUType; {
	case cpu == "qemu64", cpu == "kvm64", cpu == "qemu32", cpu == "kvm32":
		return fmt.Errorf("this program can only be run on AMD64 processors with v2 microarchitecture support "+
			"(CPU type %s)", cpu)
	case n.VM.MemoryMiB > 0 && n.VM.MemoryMiB < minimumMemoryMiB:
		return fmt.Errorf("kernel panic - not syncing: System is deadlocked on memory (%d MiB)", n.VM.MemoryMiB)
	}

	return nil
}

// fromCD reports whether this power cycle runs from the CD.
func (n *Node) fromCD() bool { return n.Image.Kind == "iso" }

// halted reports whether the ISO refuses to run beside an installed disk.
func (n *Node) halted() bool { return n.fromCD() && n.Disk != nil }

// halt stops the CPU: the VM runs and answers nobody until the power is cut.
func (n *Node) halt(ctx context.Context, reason error) (guest.Exit, error) {
	if ctx.Err() != nil {
		return guest.ExitPowerOff, ctx.Err()
	}
	n.Book.Set(nil)
	n.setStage(stageHalted, reason)
	n.VM.Trace.Begin("talos.halt", fmt.Sprintf("vm/%d", n.VM.VMID), nil)(reason)

	return guest.ExitHalt, reason
}

func (n *Node) setStage(stage string, problem error) {
	n.mu.Lock()
	n.stage, n.problem = stage, problem
	n.mu.Unlock()
	n.PublishState()
}

func (n *Node) stageNow() (string, error) {
	n.mu.Lock()
	defer n.mu.Unlock()

	return n.stage, n.problem
}

// waitPoke waits d of the site's time, or until the node changes.
func (n *Node) waitPoke(ctx context.Context, d time.Duration) {
	t := time.NewTimer(n.VM.Clock.Scale(d))
	defer t.Stop()

	select {
	case <-ctx.Done():
	case <-t.C:
	case <-n.pokes():
	}
}

func ShortHash(s string) string {
	sum := sha256.Sum256([]byte(strings.ToLower(s)))

	return hex.EncodeToString(sum[:])[:7]
}

// startAgent runs the guest agent where the image has it and the VM offers its port.
func (n *Node) startAgent() {
	if !slices.ContainsFunc(n.Image.Extensions, func(e string) bool {
		return e == "qemu-guest-agent" || e == "siderolabs/qemu-guest-agent"
	}) {
		return
	}
	if !n.VM.AgentEnabled {
		n.Services.Set("ext-qemu-guest-agent", events.StateWaiting,
			"Waiting for file \"/dev/virtio-ports/org.qemu.guest_agent.0\" to exist", false)

		return
	}

	n.Services.Set("ext-qemu-guest-agent", events.StateRunning, "Started task ext-qemu-guest-agent", true)
	if n.VM.SetAgent != nil {
		n.VM.SetAgent(n.interfaces)
	}
}

func (n *Node) interfaces() []guest.Interface {
	out := []guest.Interface{{Name: "lo", MAC: "00:00:00:00:00:00", Addresses: nodenet.ParsePrefixes([]string{"127.0.0.1/8"})}}
	for i, l := range n.links {
		iface := guest.Interface{Name: l.Name, MAC: l.MAC}
		if i == 0 {
			iface.Addresses = n.Book.Addresses()
		}
		out = append(out, iface)
	}

	return out
}
