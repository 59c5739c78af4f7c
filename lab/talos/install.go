// SPDX-License-Identifier: Apache-2.0
// Copyright the talos-proxmox authors.

package talos

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"time"

	"github.com/siderolabs/talos/pkg/machinery/api/machine"
	"github.com/siderolabs/talos/pkg/machinery/api/resource/definitions/block"
	"github.com/siderolabs/talos/pkg/machinery/cel"
	"github.com/siderolabs/talos/pkg/machinery/cel/celenv"
	"github.com/siderolabs/talos/pkg/machinery/config"

	"github.com/talos-proxmox/talos-proxmox/lab/site/guest"
)

const (
	pullTime    = 15 * time.Second
	installTime = 20 * time.Second
	// installRetry is how long a node shows a failed installation before it starts again.
	installRetry = 30 * time.Second
	rebootTime   = 5 * time.Second
)

// install writes Talos and the configuration to the install disk and reboots.
func (n *node) install(ctx context.Context, cfg config.Provider) (guest.Exit, error) {
	n.setStage(stageInstalling, nil)
	n.events.sequence("install", machine.SequenceEvent_START, "", nil)
	end := n.m.Trace.Begin("talos.install", n.object(), n.attrs())
	err := n.writeInstallation(ctx, cfg)
	end(err)
	n.events.sequence("install", machine.SequenceEvent_STOP, "", err)

	if err != nil {
		n.setStage(stageInstalling, err)
		n.console("install failed", "error", err)
		if n.m.Clock.Sleep(ctx, installRetry) != nil {
			return guest.ExitPowerOff, ctx.Err()
		}

		return guest.ExitReboot, err
	}

	return n.rebootNow(ctx)
}

func (n *node) writeInstallation(ctx context.Context, cfg config.Provider) error {
	if cfg.Machine() == nil {
		return errors.New("the configuration has no machine section")
	}
	in := cfg.Machine().Install()
	disk, err := n.installDisk(in)
	if err != nil {
		return err
	}

	img, err := n.pull(ctx, in.Image())
	if err != nil {
		return err
	}
	if err := n.m.Clock.Sleep(ctx, installTime); err != nil {
		return err
	}

	data, err := cfg.Bytes()
	if err != nil {
		return fmt.Errorf("saving the configuration: %w", err)
	}
	s := &systemDisk{disk: disk}

	return s.update(func(in *installation) {
		*in = installation{OS: osTalos, Active: n.onDisk(img), Config: data, NodeID: newID()}
	})
}

// onDisk is an installer's Talos as it runs from disk.
func (n *node) onDisk(img *guest.Image) guest.Image {
	out := *img
	out.Kind = "disk"
	if out.Platform == "" {
		out.Platform = n.image.Platform
	}
	if out.Arch == "" {
		out.Arch = n.image.Arch
	}

	return out
}

// pull fetches an installer image.
func (n *node) pull(ctx context.Context, ref string) (*guest.Image, error) {
	if ref == "" {
		return nil, errors.New("the install image is not set")
	}

	end := n.m.Trace.Begin("image.pull", n.object(), map[string]string{"image": ref})
	img, err := n.m.PullImage(ctx, ref)
	if err == nil && n.image.Arch != "" && img.Arch != "" && img.Arch != n.image.Arch {
		err = fmt.Errorf("no match for platform linux/%s in manifest of %s", n.image.Arch, ref)
	}
	if err == nil {
		err = n.m.Clock.Sleep(ctx, pullTime)
	}
	end(err)
	if err != nil {
		return nil, fmt.Errorf("failed to pull image %q: %w", ref, err)
	}

	return img, nil
}

// installDisk finds the disk that the configuration names or selects.
func (n *node) installDisk(in installTarget) (*guest.Disk, error) {
	paths := devicePaths(n.m.Disks)

	match, err := in.DiskMatchExpression()
	if err != nil {
		return nil, fmt.Errorf("failed to parse disk selector: %w", err)
	}
	if match != nil {
		for _, path := range slices.Sorted(maps.Keys(paths)) {
			ok, err := match.EvalBool(celenv.DiskLocator(), map[string]any{
				"disk": diskSpecProto(path, paths[path]), "system_disk": false,
			})
			if err != nil {
				return nil, fmt.Errorf("failed to evaluate disk selector: %w", err)
			}
			if ok {
				return paths[path], nil
			}
		}

		return nil, errors.New("no disk matches the disk selector")
	}

	if in.Disk() == "" {
		return nil, errors.New("an install disk is not set")
	}
	if d := paths[in.Disk()]; d != nil {
		return d, nil
	}

	return nil, fmt.Errorf("failed to open %s: open %s: no such file or directory", in.Disk(), in.Disk())
}

// installTarget is what an installation needs of the install section.
type installTarget interface {
	Disk() string
	DiskMatchExpression() (*cel.Expression, error)
}

func diskSpecProto(path string, d *guest.Disk) *block.DiskSpec {
	return &block.DiskSpec{
		DevPath: path, Size: uint64(max(d.Size, 0)), SectorSize: 512, IoSize: 512,
		Model: diskModel, Serial: d.Serial, Transport: diskTransport(path), SubSystem: "/sys/class/block",
	}
}
