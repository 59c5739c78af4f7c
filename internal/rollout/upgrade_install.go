// SPDX-License-Identifier: Apache-2.0
// Copyright the talos-proxmox authors.

package rollout

import (
	"context"
	"errors"
	"fmt"

	"k8s.io/client-go/kubernetes"

	"github.com/talos-proxmox/talos-proxmox/internal/cluster"
	"github.com/talos-proxmox/talos-proxmox/internal/talosapi"
)

// install installs the image and reboots the node.
func (u Upgrade) install(
	ctx context.Context, api cluster.Talos, kubernetes kubernetes.Interface, m cluster.Member, image cluster.Image,
) error {
	installing, cancel := context.WithTimeout(ctx, u.Poll.Timeout)
	defer cancel()
	runs, err := api.Version(installing, m.Address)
	if err != nil {
		return err
	}
	if installsSeparately(runs) {
		if err := markInstalledImage(installing, kubernetes, m.Hostname, image.Installer); err != nil {
			return err
		}
	}
	u.Report(fmt.Sprintf("%s installs %s and reboots", m.Name, image.Installer))
	err = api.Upgrade(installing, m.Address, image.Installer, func(line string) {
		u.Report(fmt.Sprintf("%s: installer: %s", m.Name, line))
	})
	var failed *talosapi.NotInstalled
	if errors.As(err, &failed) {
		return errors.Join(fmt.Errorf("%w\n  the node goes on with what it runs", err),
			markInstalledImage(context.WithoutCancel(ctx), kubernetes, m.Hostname, ""))
	}

	return err
}

// confirmRunning uncordons a node that runs the image already, whose upgrade may have been interrupted after its reboot.
// It returns false for a node that would boot another image next, installed by a run that was interrupted
// before.
func (u Upgrade) confirmRunning(ctx context.Context, m cluster.Member, runs, image cluster.Image) (bool, error) {
	kubernetes, err := u.Access.Kubernetes(ctx)
	if err != nil {
		return false, fmt.Errorf("upgrading node %s: %w", m, err)
	}
	other, err := installedImage(ctx, kubernetes, m.Hostname)
	if err != nil {
		return false, fmt.Errorf("upgrading node %s: %w", m, err)
	}
	if other != "" && other != image.Installer {
		u.Report(fmt.Sprintf("%s runs Talos %s, but an interrupted run installed %s, which it would boot next",
			m.Name, runs, other))

		return false, nil
	}
	u.Report(fmt.Sprintf("%s runs Talos %s already", m.Name, runs))
	if other != "" {
		if err := markInstalledImage(ctx, kubernetes, m.Hostname, ""); err != nil {
			return false, fmt.Errorf("upgrading node %s: %w", m, err)
		}
	}

	return true, Uncordon(ctx, kubernetes, m.Hostname)
}
