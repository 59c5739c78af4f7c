// SPDX-License-Identifier: Apache-2.0
// Copyright the talos-proxmox authors.

package node

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"

	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	"github.com/talos-proxmox/talos-proxmox/lab/site/guest"
	"github.com/talos-proxmox/talos-proxmox/lab/talos/machineconfig"
)

// PullImage pulls an image ahead of its use. Installer images must be in the site's registries; the
// site does not hold any others, so these only need a name with a tag.
func (n *Node) PullImage(ctx context.Context, ref string) error {
	if strings.Contains(ref, "installer") {
		if _, err := n.Pull(ctx, ref); err != nil {
			return err
		}
	} else if machineconfig.ImageVersion(ref) == "" {
		return status.Errorf(codes.Unknown, "failed to parse image reference %q: a tag is missing", ref)
	}
	n.mu.Lock()
	defer n.mu.Unlock()
	if !slices.Contains(n.images, ref) {
		n.images = append(n.images, ref)
	}

	return nil
}

func (n *Node) HasImage(ref string) bool { return slices.Contains(n.ImageNames(), ref) }

// ImageNames returns the images that the node pulled, by name.
func (n *Node) ImageNames() []string {
	n.mu.Lock()
	defer n.mu.Unlock()

	return slices.Sorted(slices.Values(n.images))
}

// Pull fetches an installer image.
func (n *Node) Pull(ctx context.Context, ref string) (*guest.Image, error) {
	if ref == "" {
		return nil, errors.New("the install image is not set")
	}

	end := n.VM.Trace.Begin("image.pull", n.Object(), map[string]string{"image": ref})
	img, err := n.VM.PullImage(ctx, ref)
	if err == nil && n.Image.Arch != "" && img.Arch != "" && img.Arch != n.Image.Arch {
		err = fmt.Errorf("no match for platform linux/%s in manifest of %s", n.Image.Arch, ref)
	}
	if err == nil {
		err = n.VM.Clock.Sleep(ctx, PullTime)
	}
	end(err)
	if err != nil {
		return nil, fmt.Errorf("failed to pull image %q: %w", ref, err)
	}

	return img, nil
}
