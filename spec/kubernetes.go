// SPDX-License-Identifier: Apache-2.0
// Copyright the talos-proxmox authors.

package spec

// Kubernetes is the Kubernetes side of the cluster.
type Kubernetes struct {
	// Version of Kubernetes, "v1.35.0". Editing it upgrades component by component.
	Version *string `json:"version,omitempty" default:"v1.35.0"`
	// APIServer settings.
	APIServer *APIServer `json:"apiServer,omitempty"`
	// ControllerManager settings.
	ControllerManager *Component `json:"controllerManager,omitempty"`
	// Scheduler settings.
	Scheduler *Component `json:"scheduler,omitempty"`
	// Proxy is kube-proxy.
	Proxy *Proxy `json:"proxy,omitempty"`
	// Etcd settings.
	Etcd *Etcd `json:"etcd,omitempty"`
	// Kubelet settings of every node.
	Kubelet *Kubelet `json:"kubelet,omitempty"`
	// EtcdEncryption encrypts secrets at rest. Chosen when the cluster is made: an edit is refused, since
	// what etcd holds could not be read any more.
	EtcdEncryption *string `json:"etcdEncryption,omitempty" enum:"secretbox,aescbc" default:"secretbox"`
}

// Component is a Kubernetes component with arguments.
type Component struct {
	// ExtraArgs are command line flags without dashes.
	ExtraArgs map[string]string `json:"extraArgs,omitempty"`
	// Env are environment variables.
	Env map[string]Text `json:"env,omitempty"`
}

// APIServer settings.
type APIServer struct {
	Component `json:",inline"`
	// OIDC turns OpenID Connect login on.
	OIDC *OIDC `json:"oidc,omitempty"`
	// AuditPolicy is an audit.k8s.io/v1 Policy; Talos's default logs metadata.
	AuditPolicy *Text `json:"auditPolicy,omitempty"`
	// AdmissionPlugins configure admission, by plugin ("PodSecurity").
	AdmissionPlugins map[string]Text `json:"admissionPlugins,omitempty"`
	// DisablePodSecurity removes Talos's default PodSecurity admission (baseline).
	DisablePodSecurity *bool `json:"disablePodSecurity,omitempty" default:"false"`
}

// OIDC is OpenID Connect login to the Kubernetes API.
type OIDC struct {
	// IssuerURL is the provider's, https only.
	IssuerURL string `json:"issuerUrl"`
	// ClientID that tokens must be issued for.
	ClientID string `json:"clientId"`
	// UsernameClaim is the claim used as user name.
	UsernameClaim *string `json:"usernameClaim,omitempty" default:"sub"`
	// UsernamePrefix is put before user names.
	UsernamePrefix *string `json:"usernamePrefix,omitempty"`
	// GroupsClaim is the claim used as groups.
	GroupsClaim *string `json:"groupsClaim,omitempty"`
	// GroupsPrefix is put before groups.
	GroupsPrefix *string `json:"groupsPrefix,omitempty"`
}

// Proxy is kube-proxy.
type Proxy struct {
	// Enabled runs kube-proxy; off when Cilium replaces it.
	Enabled *bool `json:"enabled,omitempty"`
	// Mode of kube-proxy.
	Mode *string `json:"mode,omitempty" enum:"nftables,iptables,ipvs"`
	// ExtraArgs are command line flags without dashes.
	ExtraArgs map[string]string `json:"extraArgs,omitempty"`
}

// Etcd settings.
type Etcd struct {
	// ExtraArgs are command line flags without dashes.
	ExtraArgs map[string]string `json:"extraArgs,omitempty"`
	// AdvertisedSubnets select the addresses that etcd uses.
	AdvertisedSubnets []string `json:"advertisedSubnets,omitempty"`
	// Backup takes snapshots of etcd on a schedule.
	Backup *EtcdBackup `json:"backup,omitempty"`
}

// Kubelet settings.
type Kubelet struct {
	// ExtraArgs are command line flags without dashes.
	ExtraArgs map[string]string `json:"extraArgs,omitempty"`
	// ExtraConfig are fields of the KubeletConfiguration, as YAML.
	ExtraConfig *Text `json:"extraConfig,omitempty"`
	// ExtraMounts are host paths shown to the kubelet, by destination, with mount options:
	// "/var/lib/longhorn: [bind, rshared, rw]".
	ExtraMounts map[string][]string `json:"extraMounts,omitempty"`
	// ClusterDNS are the DNS servers pods use.
	ClusterDNS []string `json:"clusterDns,omitempty"`
	// NodeIPSubnets select the addresses that the kubelet registers.
	NodeIPSubnets []string `json:"nodeIpSubnets,omitempty"`
	// RotateServerCertificates makes kubelets ask for signed serving certificates.
	RotateServerCertificates *bool `json:"rotateServerCertificates,omitempty" default:"false"`
	// CertificateApprover signs them off: without it, logs and shells of pods do not work.
	CertificateApprover *CertificateApprover `json:"certificateApprover,omitempty"`
}

// CertificateApprover approves what kubelets ask for with rotateServerCertificates, as a day-0 manifest:
// github.com/alex1989hu/kubelet-serving-cert-approver.
type CertificateApprover struct {
	// Enabled brings it; set it to false where something else approves.
	Enabled *bool `json:"enabled,omitempty" default:"true"`
	// Image of the approver.
	Image *string `json:"image,omitempty" default:"ghcr.io/alex1989hu/kubelet-serving-cert-approver:0.9.1"`
}
