// SPDX-License-Identifier: Apache-2.0
// Copyright the talos-proxmox authors.

package talosapi

import (
	"context"
	"errors"
	"fmt"
	"io"
	"strings"

	"github.com/siderolabs/talos/pkg/machinery/api/common"
	machineapi "github.com/siderolabs/talos/pkg/machinery/api/machine"
	"github.com/siderolabs/talos/pkg/machinery/client"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
)

// Upgrade installs an image and reboots the node into it. Talos 1.13 and newer do so in two steps, through
// their LifecycleService: report gets what the installer prints, and when it fails the error holds its last
// lines and the node stays as it was. Older versions do both by themselves and report nothing.
func (c *Client) Upgrade(ctx context.Context, address, image string, report func(string)) error {
	node, err := c.node(ctx, address)
	if err != nil {
		return err
	}
	err = install(ctx, node, image, report)
	if status.Code(err) == codes.Unimplemented {
		//nolint:staticcheck // what Talos before 1.13 has
		if _, err := node.UpgradeWithOptions(ctx, client.WithUpgradeImage(image)); err != nil {
			return fmt.Errorf("asking for the upgrade to %s: %w", image, err)
		}

		return nil
	}
	if err != nil {
		return err
	}
	if err := node.Reboot(ctx); err != nil {
		return fmt.Errorf("asking for the reboot into %s: %w", image, err)
	}

	return nil
}

// NotInstalled reports an installer that failed: the node keeps running what it ran before.
type NotInstalled struct {
	// Image is the installer's, Code what it ended with, and Said the last lines that it printed.
	Image string
	Code  int32
	Said  []string
}

// Error repeats what the installer printed last.
func (e *NotInstalled) Error() string {
	return fmt.Sprintf("installing %s ended with exit code %d: %s", e.Image, e.Code, strings.Join(e.Said, "; "))
}

// saidLines limits how many of the installer's last lines an error repeats.
const saidLines = 3

// install runs the installer, and pulls its image first where that is missing. The error has the code
// Unimplemented where the node has no LifecycleService.
func install(ctx context.Context, node *client.Client, image string, report func(string)) error {
	if err := pull(ctx, node, common.ContainerdNamespace_NS_SYSTEM, image); err != nil {
		return err
	}
	stream, err := node.LifecycleClient.Upgrade(ctx, &machineapi.LifecycleServiceUpgradeRequest{
		Containerd: containerd(common.ContainerdNamespace_NS_SYSTEM),
		Source:     &machineapi.InstallArtifactsSource{ImageName: image},
	})
	if err != nil {
		return fmt.Errorf("asking for the upgrade to %s: %w", image, err)
	}

	var said []string
	lines := lineReader{line: func(line string) {
		report(line)
		said = append(said, line)
		said = said[max(0, len(said)-saidLines):]
	}}
	for {
		answer, err := stream.Recv()
		if errors.Is(err, io.EOF) {
			return fmt.Errorf("installing %s: the node ended the installation without a result", image)
		}
		if err != nil {
			return fmt.Errorf("installing %s: %w", image, err)
		}
		switch progress := answer.GetProgress().GetResponse().(type) {
		case *machineapi.LifecycleServiceInstallProgress_Message:
			lines.add(progress.Message)
		case *machineapi.LifecycleServiceInstallProgress_ExitCode:
			lines.end()
			if progress.ExitCode != 0 {
				return &NotInstalled{Image: image, Code: progress.ExitCode, Said: said}
			}

			return nil
		}
	}
}

// lineReader splits a text that arrives in pieces into lines.
type lineReader struct {
	rest string
	line func(string)
}

func (r *lineReader) add(piece string) {
	r.rest += piece
	for {
		line, rest, ok := strings.Cut(r.rest, "\n")
		if !ok {
			return
		}
		r.rest = rest
		r.say(line)
	}
}

// end takes the rest as a line.
func (r *lineReader) end() {
	r.say(r.rest)
	r.rest = ""
}

func (r *lineReader) say(line string) {
	if line = strings.TrimSpace(line); line != "" {
		r.line(line)
	}
}

// containerd names the image store of Kubernetes or of Talos itself on a node's disk. (Talos's other
// containerd keeps images in memory, for machines without a disk yet.)
func containerd(namespace common.ContainerdNamespace) *common.ContainerdInstance {
	return &common.ContainerdInstance{Driver: common.ContainerDriver_CRI, Namespace: namespace}
}

// pull pulls an image through the ImageService of Talos 1.13; else the error has the code Unimplemented.
func pull(ctx context.Context, node *client.Client, namespace common.ContainerdNamespace, image string) error {
	stream, err := node.ImageClient.Pull(ctx, &machineapi.ImageServicePullRequest{
		Containerd: containerd(namespace), ImageRef: image,
	})
	if err != nil {
		return fmt.Errorf("pulling %s: %w", image, err)
	}
	for {
		switch _, err := stream.Recv(); {
		case errors.Is(err, io.EOF):
			return nil
		case err != nil:
			return fmt.Errorf("pulling %s: %w", image, err)
		}
	}
}
