// SPDX-License-Identifier: Apache-2.0
// Copyright the talos-proxmox authors.

package talos

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/google/uuid"

	"github.com/talos-proxmox/talos-proxmox/lab/site/guest"
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

	go func() {
		select {
		case <-ctx.Done():
		case <-m.ShutdownRequested:
			n.ask(request{run: n.shutdown})
		}
	}()

	booksDone := make(chan struct{})
	go func() {
		defer close(booksDone)
		n.book.run(ctx)
	}()
	defer func() {
		cancel()
		<-booksDone
	}()

	exit, err := n.boot(ctx, loadErr)
	if err != nil && ctx.Err() == nil {
		n.console("stopped", "error", err)
	}

	return exit
}

func newNode(ns *Nodes, m *guest.Machine) *node {
	events := newEventLog()

	return &node{
		nodes: ns, m: m,
		book:     newAddressBook(m.Net, fmt.Sprintf("VM %d (%s) on %s", m.VMID, m.Name, m.Host)),
		events:   events,
		services: newServiceTable(events),
		bootID:   uuid.NewString(),
		started:  time.Now(),
		requests: make(chan request, 1),
		poked:    make(chan struct{}),
		stage:    stageBooting,
	}
}

func (ns *Nodes) add(n *node) {
	ns.mu.Lock()
	defer ns.mu.Unlock()
	ns.nodes[n.key()] = n
}

func (ns *Nodes) forget(n *node) {
	ns.mu.Lock()
	defer ns.mu.Unlock()
	if ns.nodes[n.key()] == n {
		delete(ns.nodes, n.key())
	}
}

// boot is a power cycle: from power-on to the exit.
func (n *node) boot(ctx context.Context, err error) (guest.Exit, error) {
	end := n.m.Trace.Begin("talos.boot", fmt.Sprintf("vm/%d", n.m.VMID), nil)
	if err == nil {
		n.book.set(platformAddresses(n.m, n.image.Platform))
		err = n.m.Clock.Sleep(ctx, bootTime)
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
		n.console("staged upgrade", "error", err)
	} else if upgraded {
		return n.rebootNow(ctx)
	}
	n.setUpState()

	if n.disk != nil && len(n.disk.read().Config) > 0 {
		cfg, err := loadConfig(n.disk.read().Config, n.image.Talos)
		if err == nil {
			return n.runConfigured(ctx, cfg)
		}
		n.console("loading the configuration", "error", err)
	}

	return n.runMaintenance(ctx)
}

// load chooses the medium as the firmware and the boot loader do.
func (n *node) load() error {
	n.disk = installedDisk(n.m)

	switch {
	case !n.m.BootedFromCD && n.m.BootDisk != nil && n.disk != nil && n.disk.disk.Device == n.m.BootDisk.Device:
		n.image = n.disk.read().Active
	case n.m.CD != nil:
		n.image = *n.m.CD
	case n.disk != nil:
		n.image = n.disk.read().Active
	default:
		return errors.New("no bootable device")
	}
	n.links = linksOf(n.m, n.image.Platform)

	switch cpu := n.m.CPUType; {
	case cpu == "qemu64", cpu == "kvm64", cpu == "qemu32", cpu == "kvm32":
		return fmt.Errorf("this program can only be run on AMD64 processors with v2 microarchitecture support "+
			"(CPU type %s)", cpu)
	case n.m.MemoryMiB > 0 && n.m.MemoryMiB < minimumMemoryMiB:
		return fmt.Errorf("kernel panic - not syncing: System is deadlocked on memory (%d MiB)", n.m.MemoryMiB)
	}

	return nil
}

// fromCD tells whether this power cycle runs from the CD.
func (n *node) fromCD() bool { return n.image.Kind == "iso" }

// halted tells whether the ISO refuses to run beside an installed disk.
func (n *node) halted() bool { return n.fromCD() && n.disk != nil }

// halt stops the CPU: the VM runs and answers nobody until the power is cut.
func (n *node) halt(ctx context.Context, reason error) (guest.Exit, error) {
	if ctx.Err() != nil {
		return guest.ExitPowerOff, ctx.Err()
	}
	n.book.set(nil)
	n.setStage(stageHalted, reason)
	n.m.Trace.Begin("talos.halt", fmt.Sprintf("vm/%d", n.m.VMID), nil)(reason)

	return guest.ExitHalt, reason
}

func (n *node) setStage(stage string, problem error) {
	n.mu.Lock()
	n.stage, n.problem = stage, problem
	n.mu.Unlock()
	n.publishState()
}

func (n *node) stageNow() (string, error) {
	n.mu.Lock()
	defer n.mu.Unlock()

	return n.stage, n.problem
}

// serve runs until something ends the power cycle.
func (n *node) serve(ctx context.Context) (guest.Exit, error) {
	for {
		select {
		case <-ctx.Done():
			return guest.ExitPowerOff, ctx.Err()
		case r := <-n.requests:
			exit, err := r.run(ctx, r.actor)
			if err == nil {
				return exit, nil
			}
			if ctx.Err() != nil {
				return guest.ExitPowerOff, ctx.Err()
			}
			n.console("sequence", "error", err)
			if exit != stays {
				return exit, err
			}
		}
	}
}

// stays is the exit of a sequence that failed and left the node running.
const stays = guest.Exit(-1)

// waitPoke waits d of the site's time, or until the node changes.
func (n *node) waitPoke(ctx context.Context, d time.Duration) {
	t := time.NewTimer(n.m.Clock.Scale(d))
	defer t.Stop()

	select {
	case <-ctx.Done():
	case <-t.C:
	case <-n.pokes():
	}
}

func shortHash(s string) string {
	sum := sha256.Sum256([]byte(strings.ToLower(s)))

	return hex.EncodeToString(sum[:])[:7]
}
