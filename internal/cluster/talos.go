// SPDX-License-Identifier: Apache-2.0
// Copyright the talos-proxmox authors.

package cluster

import (
	"context"
	"io"
	"slices"
	"time"

	"k8s.io/client-go/kubernetes"
)

// Service describes one of Talos's own services on a node.
type Service struct {
	// State is Talos's word for it: Running, Preparing, Failed, …
	State string
	// Healthy is what its health check says; true where it has none.
	Healthy bool
	// Message is the health check's last word.
	Message string
}

// EtcdMember describes one member of etcd as one node sees it.
type EtcdMember struct {
	// ID of the member, unique in its cluster.
	ID uint64
	// Hostname of its node.
	Hostname string
	// Addresses of its peer URLs, without port.
	Addresses []string
	// Learner members do not vote yet.
	Learner bool
}

// StaticPod describes one of the control plane's pods as its node sees it.
type StaticPod struct {
	// ID is namespace/name, "kube-system/kube-apiserver-ctrl-00".
	ID string
	// Ready is the pod's Ready condition.
	Ready bool
}

// Component names a part of Kubernetes whose image is in a machine configuration.
type Component string

// The components, in the order in which they are upgraded.
const (
	APIServer         Component = "kube-apiserver"
	ControllerManager Component = "kube-controller-manager"
	Scheduler         Component = "kube-scheduler"
	KubeProxy         Component = "kube-proxy"
	Kubelet           Component = "kubelet"
)

// Installer names the image that installs Talos. A node pulls it as it pulls its kubelet's.
const Installer Component = "installer"

// Talos lists the calls to the Talos API that the packages of a living cluster make. A node is named by its
// address.
type Talos interface {
	// Version returns the Talos version that runs, "v1.12.4".
	Version(ctx context.Context, address string) (string, error)
	// Stage returns the machine's stage ("running") and the conditions that it still waits for.
	Stage(ctx context.Context, address string) (stage string, unmet []string, err error)
	// Services returns Talos's services, by id.
	Services(ctx context.Context, address string) (map[string]Service, error)
	// EtcdMembers returns the members as this node sees them.
	EtcdMembers(ctx context.Context, address string) ([]EtcdMember, error)
	// StaticPods returns the control plane pods of a node.
	StaticPods(ctx context.Context, address string) ([]StaticPod, error)
	// Schematic returns the id of the schematic that the node's image was made from; empty when the image does
	// not say.
	Schematic(ctx context.Context, address string) (string, error)
	// BootID returns an id that changes with every boot.
	BootID(ctx context.Context, address string) (string, error)
	// Bootstrap starts etcd on a control plane. The error has the code AlreadyExists when the node has etcd's
	// data.
	Bootstrap(ctx context.Context, address string) error
	// Upgrade has the node install the image and reboot into it; it returns before the reboot is done. Lines
	// that the installer prints go to report, where the node's Talos sends them.
	Upgrade(ctx context.Context, address, image string, report func(string)) error
	// Retire has a node leave etcd, wipe what it knows of the cluster and power off; it returns before that is
	// done.
	Retire(ctx context.Context, address string) error
	// RemoveEtcdMember has another node remove a member that does not answer.
	RemoveEtcdMember(ctx context.Context, address string, id uint64) error
	// Image returns the image of a component in the node's active configuration.
	Image(ctx context.Context, address string, component Component) (string, error)
	// SetImage changes a component's image in the node's configuration and nothing else, without a reboot; it
	// returns before the component runs.
	SetImage(ctx context.Context, address string, component Component, image string) error
	// Snapshot writes a copy of etcd's data as this control plane has it.
	Snapshot(ctx context.Context, address string, to io.Writer) error
	// Configuration returns the active machine configuration of a node, secrets included.
	Configuration(ctx context.Context, address string) ([]byte, error)
	// Reboots reports whether a node would reboot to apply a configuration; nothing is changed.
	Reboots(ctx context.Context, address string, configuration []byte) (bool, error)
	// Try applies a configuration that needs no reboot, and has the node take it back after some time unless
	// a configuration is applied for good before.
	Try(ctx context.Context, address string, configuration []byte, back time.Duration) error
	// Unconfigured reports whether a machine waits in maintenance mode: it has no configuration, belongs to no
	// cluster, and answers anybody.
	Unconfigured(ctx context.Context, address string) bool
	// Pull has the node pull a component's image ahead of its use, where its API can; it returns when the image
	// is there.
	Pull(ctx context.Context, address string, component Component, image string) error
}

// Access opens the APIs of one cluster.
type Access interface {
	// Talos returns the cluster's Talos API.
	Talos(ctx context.Context) (Talos, error)
	// Kubernetes returns the cluster's Kubernetes API.
	Kubernetes(ctx context.Context) (kubernetes.Interface, error)
	// Redial has later calls to a node, and to the Kubernetes API, open connections of their own: a firewall lets
	// those go on that are open.
	Redial(address string)
}

// Is reports whether the etcd member runs on that node.
func (e EtcdMember) Is(m Member) bool {
	return e.Hostname == m.Hostname || slices.Contains(e.Addresses, m.Address)
}
