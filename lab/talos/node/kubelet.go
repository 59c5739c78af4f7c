// SPDX-License-Identifier: Apache-2.0
// Copyright the talos-proxmox authors.

package node

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"net/netip"
	"slices"
	"strings"
	"time"

	"github.com/siderolabs/talos/pkg/machinery/config"
	corev1 "k8s.io/api/core/v1"

	"github.com/talos-proxmox/talos-proxmox/lab/talos/controlplane"
	"github.com/talos-proxmox/talos-proxmox/lab/talos/events"
	"github.com/talos-proxmox/talos-proxmox/lab/talos/machineconfig"
)

const (
	apiPort      = 6443
	kubeletRetry = 5 * time.Second
	staticPods   = 10 * time.Second
)

var errRestarting = errors.New("kube-apiserver is not ready")

// runKubernetes runs the kubelet with its static pods until ctx ends.
func (n *Node) runKubernetes(ctx context.Context) {
	n.Services.Set("kubelet", events.StateRunning, "Health check successful", true)
	n.Poke()

	for ctx.Err() == nil {
		if n.IsStopping() {
			n.setKubelet(false)
			n.Services.Set("kubelet", events.StateFinished, "Service finished successfully", false)
			<-ctx.Done()

			return
		}
		g, err := n.findKubernetes()
		if err != nil {
			// an API server that only restarts takes no node down
			if !errors.Is(err, errRestarting) {
				n.setKubelet(false)
			}
			n.setWhy(err)
			n.waitPoke(ctx, kubeletRetry)

			continue
		}
		n.setWhy(nil)
		n.runKubelet(ctx, g)
	}
}

// findKubernetes finds the API server that this node's kubelet would reach and be accepted by.
func (n *Node) findKubernetes() (*EtcdCluster, error) {
	if g, _ := n.Group(); machineconfig.IsControlPlane(n.Config()) {
		if g == nil || !g.Quorum() {
			return nil, errors.New("etcd is not healthy")
		}
		if api, _ := g.Kube.API(); api == nil {
			return nil, errRestarting
		}

		return g, nil
	}

	cfg := n.Config()
	g, owner := n.Nodes.servingGroup(n)
	if g == nil {
		return nil, fmt.Errorf("dial %s: connection refused", machineconfig.Endpoint(cfg))
	}
	theirs := owner.Config()
	switch {
	case !trustsKubernetes(cfg, machineconfig.KubernetesCA(theirs).Crt):
		return nil, errors.New("x509: certificate signed by unknown authority")
	case cfg.Cluster().Token().ID() != theirs.Cluster().Token().ID() || cfg.Cluster().Token().Secret() != theirs.Cluster().Token().Secret():
		return nil, errors.New("failed to run Kubelet: cannot create certificate signing request: Unauthorized")
	}

	return g, nil
}

// servingGroup finds the cluster behind a node's endpoint, through KubePrism any control plane that
// serves, and the control plane that answered.
func (ns *Nodes) servingGroup(n *Node) (*EtcdCluster, *Node) {
	cfg := n.Config()
	prism := cfg.K8sKubePrismConfig() != nil
	host, port := machineconfig.Endpoint(cfg).Hostname(), machineconfig.Endpoint(cfg).Port()
	if port == "" {
		port = "443"
	}

	for _, cp := range ns.all() {
		g, _ := cp.Group()
		if g == nil || cp.VM.Net != n.VM.Net || !cp.isServing() {
			continue
		}
		if prism && cp.ClusterID() == n.ClusterID() {
			return g, cp
		}
		for _, a := range cp.Book.Addresses() {
			if a.Addr().String() == host && port == fmt.Sprint(apiPort) {
				return g, cp
			}
		}
	}

	return nil, nil
}

// runKubelet keeps the Node registered with one API server until that goes. A changed spec takes
// over from the former one, as a kubelet that restarts leaves its pods alone.
func (n *Node) runKubelet(ctx context.Context, g *EtcdCluster) {
	api, apiChanged := g.Kube.API()
	if api == nil {
		n.waitPoke(ctx, kubeletRetry)

		return
	}
	if machineconfig.IsControlPlane(n.Config()) && !n.kubeletUp() {
		if n.VM.Clock.Sleep(ctx, staticPods) != nil {
			return
		}
	}

	ctx, cancel := context.WithCancel(ctx)
	spec := n.nodeSpec()
	current := runNode(ctx, api, spec)
	defer func() {
		cancel()
		<-current.done
	}()
	n.setKubelet(true)

	for !n.IsStopping() {
		groupChanged := g.Watch()
		if machineconfig.IsControlPlane(n.Config()) {
			if own, _ := n.Group(); own != g || !g.Quorum() {
				n.setKubelet(false)

				return
			}
		}
		if next := n.nodeSpec(); !equalNodeSpec(spec, next) && len(next.Addresses) > 0 {
			former := current
			spec, current = next, runNode(ctx, api, next)
			<-former.done
		}

		select {
		case <-ctx.Done():
			n.setKubelet(false)

			return
		case <-current.done:
			if current.err != nil && ctx.Err() == nil {
				n.Console("kubelet", "error", current.err)
				n.waitPoke(ctx, kubeletRetry)
			}

			return
		case <-apiChanged:
			return
		case <-groupChanged:
		case <-n.pokes():
		}
	}
}

// nodeRun plays a kubelet that runs with one spec.
type nodeRun struct {
	done chan struct{}
	err  error
}

func runNode(ctx context.Context, api controlplane.Cluster, spec controlplane.NodeSpec) *nodeRun {
	r := &nodeRun{done: make(chan struct{})}
	go func() {
		defer close(r.done)
		r.err = api.Node(ctx, spec)
	}()

	return r
}

func (n *Node) nodeSpec() controlplane.NodeSpec {
	cfg := n.Config()
	spec := controlplane.NodeSpec{
		Name:             n.Hostname(),
		ControlPlane:     machineconfig.IsControlPlane(cfg),
		Labels:           nodeLabels(cfg),
		Annotations:      maps.Clone(cfg.K8sNodeConfig().Annotations()),
		Taints:           nodeTaints(cfg),
		KubeletVersion:   machineconfig.ImageVersion(machineconfig.KubeletImage(cfg)),
		OSImage:          "Talos (" + n.Image.Talos + ")",
		KernelVersion:    "6.18.0-talos",
		ContainerRuntime: "containerd://2.1.5",
		CPU:              n.VM.Cores,
		MemoryMiB:        n.VM.MemoryMiB,
		BootID:           n.BootID,
	}
	for _, e := range n.extensionLayers() {
		spec.Annotations = setDefault(spec.Annotations, "extensions.talos.dev/"+e.Metadata.Name, e.Metadata.Version)
	}
	spec.Addresses = n.kubeletAddresses()
	if spec.ControlPlane {
		spec.StaticPods = controlplane.StaticPods(cfg)
	}
	spec.BootstrapToken = cfg.Cluster().Token().ID()

	return spec
}

// kubeletAddresses returns the addresses that the kubelet reports: one per family, never a VIP.
func (n *Node) kubeletAddresses() []netip.Addr {
	n.mu.Lock()
	vips := slices.Clone(n.vips)
	n.mu.Unlock()

	var nets []netip.Prefix
	for _, s := range n.Config().K8sNodeConfig().NodeIP().ValidSubnets() {
		if p, err := netip.ParsePrefix(strings.TrimPrefix(s, "!")); err == nil && !strings.HasPrefix(s, "!") {
			nets = append(nets, p)
		}
	}

	var out []netip.Addr
	var have4, have6 bool
	for _, p := range n.Book.Wanted() {
		a := p.Addr()
		inNets := len(nets) == 0 || slices.ContainsFunc(nets, func(s netip.Prefix) bool { return s.Contains(a) })
		if slices.Contains(vips, a) || !inNets || a.Is4() && have4 || a.Is6() && have6 {
			continue
		}
		have4, have6 = have4 || a.Is4(), have6 || a.Is6()
		out = append(out, a)
	}

	return out
}

// nodeLabels returns the labels that the kubelet registers with; those of a section have Talos's own
// among them, those of a document are taken as they are.
func nodeLabels(cfg config.Provider) map[string]string {
	labels := map[string]string{}
	maps.Copy(labels, cfg.K8sNodeConfig().Labels())

	return labels
}

func nodeTaints(cfg config.Provider) []corev1.Taint {
	var taints []corev1.Taint
	wanted := cfg.K8sNodeConfig().Taints()
	for _, key := range slices.Sorted(maps.Keys(wanted)) {
		value, effect, found := strings.Cut(wanted[key], ":")
		if !found {
			value, effect = "", value
		}
		taints = append(taints, corev1.Taint{Key: key, Value: value, Effect: corev1.TaintEffect(effect)})
	}

	return taints
}

func setDefault(m map[string]string, k, v string) map[string]string {
	if m == nil {
		m = map[string]string{}
	}
	if _, ok := m[k]; !ok {
		m[k] = v
	}

	return m
}

func equalNodeSpec(a, b controlplane.NodeSpec) bool {
	return controlplane.ConfigDigestOf(a) == controlplane.ConfigDigestOf(b)
}
