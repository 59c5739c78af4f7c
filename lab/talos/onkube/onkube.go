// SPDX-License-Identifier: Apache-2.0
// Copyright the talos-proxmox authors.

// Package onkube gives the lab's Talos nodes the lab's Kubernetes.
package onkube

import (
	"context"

	"github.com/talos-proxmox/talos-proxmox/lab/kube"
	"github.com/talos-proxmox/talos-proxmox/lab/talos/controlplane"
)

// Kubernetes starts real API servers for [talos.Options].
type Kubernetes struct {
	// Binary is the path of lab-kubernetes. Required.
	Binary string
	// Programs do the work of containers.
	Programs []kube.Program
	// Beside runs beside each cluster, from its start until its context ends; dir is the cluster's
	// folder, which it leaves alone. It may be nil.
	Beside func(ctx context.Context, c *kube.Cluster, dir string)
}

// Start implements [talos.Kubernetes].
func (k Kubernetes) Start(ctx context.Context, c controlplane.Config) (controlplane.Cluster, error) {
	running, err := kube.Start(ctx, kube.Config{
		Name: c.Name, Dir: c.Dir, Binary: k.Binary,
		CACert: c.CACert, CAKey: c.CAKey, AcceptedCAs: c.AcceptedCAs,
		AggregatorCACert: c.AggregatorCACert, AggregatorCAKey: c.AggregatorCAKey,
		ServiceAccountKey: c.ServiceAccountKey,
		CertSANs:          c.CertSANs, ServiceCIDRs: c.ServiceCIDRs, PodCIDRs: c.PodCIDRs, DNSDomain: c.DNSDomain,
		EncryptionConfig: c.EncryptionConfig, APIServerArgs: c.APIServerArgs, AuditPolicy: c.AuditPolicy,
		AdmissionConfig: c.AdmissionConfig,
		Version:         c.Version, Restore: c.Restore, Clock: c.Clock, Trace: c.Trace, Images: c.Images,
		Programs: k.Programs,
	})
	if err != nil {
		return nil, err // names the cluster itself
	}

	beside, stop := context.WithCancel(context.Background())
	made := cluster{Cluster: running, stop: stop, stopped: make(chan struct{})}
	go func() {
		defer close(made.stopped)

		if k.Beside != nil {
			k.Beside(beside, running, c.Dir)
		}
	}()

	return made, nil
}

type cluster struct {
	*kube.Cluster

	stop    context.CancelFunc
	stopped chan struct{} // closed when nothing runs beside the cluster any more
}

// Stop implements [talos.KubernetesCluster].
func (c cluster) Stop() error {
	c.stop()
	<-c.stopped

	return c.Cluster.Stop() // names the cluster itself
}

// Destroy implements [talos.KubernetesCluster].
func (c cluster) Destroy() error {
	c.stop()
	<-c.stopped

	return c.Cluster.Destroy() // names the cluster itself
}

// Node implements [talos.KubernetesCluster].
func (c cluster) Node(ctx context.Context, n controlplane.NodeSpec) error {
	spec := kube.NodeSpec{
		Name: n.Name, Addresses: n.Addresses, ControlPlane: n.ControlPlane,
		Labels: n.Labels, Annotations: n.Annotations, Taints: n.Taints,
		KubeletVersion: n.KubeletVersion, OSImage: n.OSImage, KernelVersion: n.KernelVersion,
		ContainerRuntime: n.ContainerRuntime, CPU: n.CPU, MemoryMiB: n.MemoryMiB, BootID: n.BootID,
		BootstrapToken: n.BootstrapToken,
	}
	for _, p := range n.StaticPods {
		spec.StaticPods = append(spec.StaticPods, kube.StaticPod(p))
	}

	return c.Cluster.Node(ctx, spec) // names the node itself
}

var _ controlplane.Snapshotter = cluster{}
