// SPDX-License-Identifier: Apache-2.0
// Copyright the talos-proxmox authors.

package talos_test

import (
	"bytes"
	"context"
	"fmt"
	"net/netip"
	"strings"
	"sync"

	"github.com/talos-proxmox/talos-proxmox/lab/site/guest"
)

// vm plays a machine whose disk survives its power cycles.
type vm struct {
	bench *bench
	m     guest.Machine
	mu    sync.Mutex
	disk  []byte
	off   context.CancelFunc
	exits []guest.Exit
	done  chan struct{}
	acpi  chan struct{}
}

func iso(version string) *guest.Image {
	return &guest.Image{
		Talos: version, Schematic: schematicA, Extensions: []string{"siderolabs/qemu-guest-agent"},
		Platform: "nocloud", Arch: "amd64", Kind: "iso",
	}
}

// vm makes a machine with a blank disk and a nocloud ISO; change may change it before power-on.
func (b *bench) vm(id int, change func(*guest.Machine)) *vm {
	b.t.Helper()
	v := &vm{bench: b}
	v.m = guest.Machine{
		Host: "pve", VMID: id, Name: fmt.Sprintf("vm-%d", id), UUID: fmt.Sprintf("uuid-%d", id),
		MemoryMiB: 4096, Cores: 2, CPUType: "host", AgentEnabled: true,
		NICs: []guest.NIC{{MAC: fmt.Sprintf("BC:24:11:00:00:%02X", id), Model: "virtio"}},
		CD:   iso("v1.12.4"),
		CloudInit: &guest.CloudInit{
			Hostname:  fmt.Sprintf("vm-%d", id),
			IPConfigs: []guest.IPConfig{{IPv4: netip.MustParsePrefix(fmt.Sprintf("10.0.0.%d/24", id))}},
		},
		Net: b.net, Clock: b.clock, Trace: guest.NewTrace(b.trace), PullImage: pullImage, Faults: b.faults,
		Names: []string{fmt.Sprintf("vm-%d", id)}, Lose: func(<-chan struct{}) {},
	}
	v.m.Disks = []*guest.Disk{{
		Device: "scsi0", Size: 20 << 30, DeviceID: "drive-scsi0", Controller: "virtio-scsi-pci",
		Load: func() []byte {
			v.mu.Lock()
			defer v.mu.Unlock()

			return bytes.Clone(v.disk)
		},
		Store: func(content []byte) error {
			v.mu.Lock()
			defer v.mu.Unlock()
			v.disk = bytes.Clone(content)

			return nil
		},
	}}
	if change != nil {
		change(&v.m)
	}

	return v
}

// pullImage returns the site's registry: every nocloud installer of a known schematic.
func pullImage(_ context.Context, ref string) (*guest.Image, error) {
	rest, ok := strings.CutPrefix(ref, installer)
	if !ok {
		return nil, fmt.Errorf("%s: not found", ref)
	}
	schematic, version, _ := strings.Cut(rest, ":")
	if schematic != schematicA && schematic != schematicB {
		return nil, fmt.Errorf("%s: not found", ref)
	}

	return &guest.Image{Talos: version, Schematic: schematic, Platform: "nocloud", Arch: "amd64", Kind: "installer"}, nil
}

// on powers the machine on, disk first in its boot order.
func (v *vm) on() {
	ctx, off := context.WithCancel(v.bench.ctx)
	v.mu.Lock()
	v.off, v.done, v.acpi = off, make(chan struct{}), make(chan struct{})
	v.mu.Unlock()

	v.bench.wg.Go(func() {
		defer close(v.done)
		for ctx.Err() == nil {
			m := v.m
			m.ShutdownRequested = v.acpi
			if d := m.Disks[0]; len(d.Load()) > 0 || d.Image != nil {
				m.BootDisk = d
			} else {
				m.BootedFromCD = true
			}
			exit := v.bench.nodes.Guest(&m).Run(ctx, &m)
			v.mu.Lock()
			v.exits = append(v.exits, exit)
			v.mu.Unlock()
			if exit == guest.ExitPowerOff {
				return
			}
			if exit == guest.ExitHalt {
				<-ctx.Done()
			}
		}
	})
}

// cut cuts the power.
func (v *vm) cut() {
	v.off()
	<-v.done
}

func (v *vm) addr() string { return fmt.Sprintf("10.0.0.%d", v.m.VMID) }

func (v *vm) lastExit() (guest.Exit, bool) {
	v.mu.Lock()
	defer v.mu.Unlock()
	if len(v.exits) == 0 {
		return 0, false
	}

	return v.exits[len(v.exits)-1], true
}
