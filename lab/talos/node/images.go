// SPDX-License-Identifier: Apache-2.0
// Copyright the talos-proxmox authors.

package node

import (
	"cmp"
	"context"
	"fmt"
	"net"
	"net/url"
	"slices"
	"strings"
	"time"

	"github.com/distribution/reference"

	"google.golang.org/grpc/status"

	"github.com/talos-proxmox/talos-proxmox/lab/site/guest"
	"github.com/talos-proxmox/talos-proxmox/lab/talos/events"
	"github.com/talos-proxmox/talos-proxmox/lab/talos/machineconfig"
)

// PullImage pulls an image ahead of its use. Installer images must be in the site's registries; the
// site does not hold any others, so these only need a name with a tag.
func (n *Node) PullImage(ctx context.Context, ref string) error {
	if strings.Contains(ref, "installer") {
		if _, err := n.Pull(ctx, ref); err != nil {
			return err
		}
	} else if err := checkReference(ref); err != nil {
		return err
	} else if err := n.awaitRegistry(ctx, ref); err != nil {
		return err
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

// ServiceImages returns the images that the node's own services run from.
func (n *Node) ServiceImages() []string {
	var images []string
	for id, image := range map[string]string{
		"kubelet": machineconfig.KubeletImage(n.Config()), ServiceEtcd: machineconfig.EtcdImage(n.Config()),
	} {
		if s := n.Services.Get(id); s != nil && s.GetState() == events.StateRunning {
			images = append(images, image)
		}
	}
	slices.Sort(images)

	return images
}

// Pull fetches an installer image.
func (n *Node) Pull(ctx context.Context, ref string) (*guest.Image, error) {
	if err := checkReference(ref); err != nil {
		return nil, err
	}
	if err := n.awaitRegistry(ctx, ref); err != nil {
		return nil, err
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
		if strings.HasSuffix(err.Error(), ": not found") {
			err = fmt.Errorf("failed to resolve reference %q: %s: not found", ref, ref)
		}

		return nil, fmt.Errorf("1 error(s) occurred:\n\tfailed to pull image %q: %w", ref, err)
	}

	return img, nil
}

// pullLimit is how long Talos goes on asking a registry that does not answer.
const pullLimit = 20 * time.Minute

// checkReference refuses what is no name of an image.
func checkReference(ref string) error {
	if _, err := reference.ParseNormalizedNamed(ref); err != nil {
		return fmt.Errorf("failed to parse image reference %q: %w", ref, err)
	}

	return nil
}

// Reachable returns an error when an image can come from none of the places that the node's configuration names for
// it: the mirrors of its registry, and the registry itself unless the mirrors stand alone.
func (n *Node) Reachable(ref string) error {
	named, err := reference.ParseNormalizedNamed(ref)
	if err != nil {
		return fmt.Errorf("failed to parse image reference %q: %w", ref, err)
	}
	var failed error
	for _, host := range n.sources(reference.Domain(named)) {
		if n.Book.Stray(host) {
			failed = fmt.Errorf("failed to pull image %q: failed to do request: dial tcp: lookup %s: i/o timeout", ref, host)

			continue
		}
		if !n.VM.Faults.CutOff(host) {
			return nil
		}
		failed = fmt.Errorf("failed to pull image %q: failed to do request: dial tcp: lookup %s: no such host", ref, host)
	}

	return failed
}

// sources returns the hosts that serve a registry's images to the node.
func (n *Node) sources(domain string) []string {
	var hosts []string
	if cfg := n.Config(); cfg != nil {
		mirrors := cfg.RegistryMirrorConfigs()
		mirror, ok := mirrors[domain]
		if !ok {
			mirror, ok = mirrors["*"]
		}
		if ok {
			for _, e := range mirror.Endpoints() {
				if u, err := url.Parse(e.Endpoint()); err == nil {
					hosts = append(hosts, u.Hostname())
				}
			}
			if mirror.SkipFallback() {
				return hosts
			}
		}
	}
	host, _, _ := strings.Cut(domain, ":")

	return append(hosts, host)
}

// awaitRegistry waits for a registry that is named by its address until something answers there. Registries with names
// are outside the site, and answer.
func (n *Node) awaitRegistry(ctx context.Context, ref string) error {
	if err := n.Reachable(ref); err != nil {
		return err
	}
	domain, _, _ := strings.Cut(ref, "/")
	host, port, err := net.SplitHostPort(domain)
	if err != nil || net.ParseIP(host) == nil {
		return nil // it has a name
	}
	ctx, cancel := context.WithTimeout(ctx, n.VM.Clock.Scale(pullLimit))
	defer cancel()
	for {
		conn, err := n.VM.Net.DialContext(ctx, "tcp", net.JoinHostPort(host, port))
		if err == nil {
			return conn.Close() // it was opened to be closed
		}
		if n.VM.Clock.Sleep(ctx, evictRetry) != nil {
			return status.FromContextError(cmp.Or(ctx.Err(), context.DeadlineExceeded)).Err()
		}
	}
}
