// SPDX-License-Identifier: Apache-2.0
// Copyright the talos-proxmox authors.

package controlplane

import (
	"context"
	"net/http"
	"net/netip"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/client-go/rest"

	"github.com/siderolabs/talos/pkg/machinery/config"

	"github.com/talos-proxmox/talos-proxmox/lab/site/guest"
)

// Starter starts the API servers of clusters.
type Starter interface {
	// Start returns when the API server is ready to serve.
	Start(ctx context.Context, c Config) (Cluster, error)
}

// Cluster runs the Kubernetes of one cluster.
type Cluster interface {
	// Addr is the loopback host:port of the TLS API server.
	Addr() string
	// AdminConfig reaches the API server as a member of system:masters.
	AdminConfig() *rest.Config
	// Node runs a kubelet until ctx ends: it registers the Node object and keeps it alive. A second
	// call for the same name takes over, and the first returns an error.
	Node(ctx context.Context, n NodeSpec) error
	// Stop ends the API server and keeps its data.
	Stop() error
	// Destroy ends the API server and removes its data.
	Destroy() error
}

// Snapshotter is implemented by a [Cluster] whose data can be copied: what
// etcd's snapshot holds, and what a recovery restores before the API server starts.
type Snapshotter interface {
	// Snapshot returns a copy of all the cluster's data.
	Snapshot(ctx context.Context) ([]byte, error)
}

// Config describes one cluster's API server as its control planes configure it.
type Config struct {
	// Name is the cluster's name, for messages.
	Name string
	// Dir keeps the cluster's data; it belongs to this cluster alone.
	Dir string

	// The cluster's PKI as PEM.
	CACert, CAKey []byte
	// AcceptedCAs are further authorities whose clients are let in.
	AcceptedCAs                       []byte
	AggregatorCACert, AggregatorCAKey []byte
	ServiceAccountKey                 []byte

	// CertSANs are the names and addresses that the API server's certificate must carry.
	CertSANs     []string
	ServiceCIDRs []string
	PodCIDRs     []string
	DNSDomain    string
	// EncryptionConfig is an EncryptionConfiguration; nil: secrets are stored as they are.
	EncryptionConfig []byte
	APIServerArgs    map[string]string
	AuditPolicy      []byte
	// AdmissionConfig is an AdmissionConfiguration; nil: the plugins have their defaults.
	AdmissionConfig []byte
	// Images returns an error when an image cannot be pulled; nil: every image exists.
	Images func(ref string) error `json:"-"`
	// Version is the version of the API server's image, "v1.35.0".
	Version string
	// Restore is a snapshot to start from, nil for none. It replaces all data in Dir.
	Restore []byte

	Clock guest.Clock
	Trace *guest.Trace
}

// NodeSpec describes a node as its kubelet registers it.
type NodeSpec struct {
	Name         string
	Addresses    []netip.Addr
	ControlPlane bool
	Labels       map[string]string
	Annotations  map[string]string
	Taints       []corev1.Taint

	KubeletVersion   string
	OSImage          string
	KernelVersion    string
	ContainerRuntime string
	CPU              int
	MemoryMiB        int
	// BootID tells boots of the node apart: in the same boot a kubelet finds its pods running.
	BootID string
	// BootstrapToken is the ID of the token with which the kubelet joins.
	BootstrapToken string
	// StaticPods are the pods that the kubelet runs without the API server.
	StaticPods []StaticPod
}

// StaticPod describes a pod of the control plane.
type StaticPod struct {
	// Name is "kube-apiserver", "kube-controller-manager" or "kube-scheduler".
	Name string
	// Image is the image with its tag.
	Image string
	// Arguments are what the stack adds to the component's own; another pod has other ones.
	Arguments string
	// Manifest is the pod in full.
	Manifest *corev1.Pod
}

// Options configure a cluster's Kubernetes.
type Options struct {
	// Starter starts the API servers. Required.
	Kubernetes Starter
	// HTTPClient fetches a configuration's extra manifests. Nil: a client that dials the site and
	// trusts the system's authorities.
	HTTPClient *http.Client
}

// Node describes a control plane to its cluster's Kubernetes.
type Node interface {
	Config() config.Provider
	Hostname() string
	TalosVersion() string
	// WantedAddresses are the addresses that the node has or is still to get.
	WantedAddresses() []netip.Prefix
	Network() *guest.Net
	// Reachable returns an error when the node cannot pull an image.
	Reachable(ref string) error
}

// Members runs the etcd cluster that holds the data of a Kubernetes.
type Members interface {
	TalosID() string
	// Watch returns a channel that closes at the next change.
	Watch() <-chan struct{}
	Quorum() bool
	// MemberNames are the names and addresses of all members.
	MemberNames() []string
	RunningNodes() []Node
	// ConfiguredNodes are the configured control planes, whether or not they run etcd.
	ConfiguredNodes() []Node
}
