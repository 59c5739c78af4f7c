// SPDX-License-Identifier: Apache-2.0
// Copyright the talos-proxmox authors.

package spec

// Manifests holds what the cluster gets at day 0 beside its CNI, in this order: Inline by name, Charts
// by Order and name, Extra in the given order.
type Manifests struct {
	// Inline manifests, by name.
	Inline map[string]Manifest `json:"inline,omitempty"`
	// Charts rendered in process, by name of the release.
	Charts map[string]DayZeroChart `json:"charts,omitempty"`
	// Extra are URLs that the control planes fetch. When one is edited on a living cluster, what it holds
	// is fetched where Pulumi runs and applied; what comes behind the same URL later is not.
	Extra []string `json:"extra,omitempty"`
	// ExtraHeaders are sent with those requests.
	ExtraHeaders map[string]Secret `json:"extraHeaders,omitempty"`
	// CoreDNS overrides what Talos says of CoreDNS.
	CoreDNS *CoreDNS `json:"coreDns,omitempty"`
}

// Manifest is Kubernetes objects: exactly one of Inline and File.
type Manifest struct {
	// Order among the manifests; the lower is applied first.
	Order *int `json:"order,omitempty" min:"0" default:"100"`
	// Inline is the YAML itself.
	Inline *Text `json:"inline,omitempty"`
	// File is a path relative to the project directory.
	File *string `json:"file,omitempty"`
}

// DayZeroChart is a chart rendered into inline manifests.
type DayZeroChart struct {
	Chart `json:",inline"`
	// Namespace of the release.
	Namespace *string `json:"namespace,omitempty"`
	// CreateNamespace adds the namespace.
	CreateNamespace *bool `json:"createNamespace,omitempty" default:"true"`
	// Order among the manifests; the lower is applied first.
	Order *int `json:"order,omitempty" min:"0" default:"200"`
}

// CoreDNS overrides Talos's CoreDNS.
type CoreDNS struct {
	// Disabled removes it.
	Disabled *bool `json:"disabled,omitempty" default:"false"`
	// Image of CoreDNS.
	Image *string `json:"image,omitempty"`
	// Corefile replaces CoreDNS's configuration; Talos's objects and RBAC stay.
	Corefile *Text `json:"corefile,omitempty"`
	// Replicas of CoreDNS.
	Replicas *int `json:"replicas,omitempty" min:"1" default:"2"`
}
