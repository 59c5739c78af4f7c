// SPDX-License-Identifier: Apache-2.0
// Copyright the talos-proxmox authors.

package spec

// Talos is the operating system's side of the cluster. Every setting works since Talos 1.10, the oldest that a
// stack may name, in the forms that the contract has.
type Talos struct {
	// Version of Talos Linux, "v1.12.4"; docs/versions.md lists those that are supported. Editing it upgrades the nodes in place.
	Version *string `json:"version,omitempty" default:"v1.12.4"`
	// Contract is the Talos minor version ("v1.12") whose configuration forms are used. Unset, it stays
	// what Version was when the cluster was made. Raising it is an edit of its own, after every node
	// runs that version: anything else is refused.
	Contract *string `json:"contract,omitempty"`
	// Sysctls of every node.
	Sysctls map[string]string `json:"sysctls,omitempty"`
	// Sysfs settings of every node.
	Sysfs map[string]string `json:"sysfs,omitempty"`
	// KernelModules of every node, with their parameters.
	KernelModules map[string][]string `json:"kernelModules,omitempty"`
	// Files are written on every node, by path.
	Files map[string]MachineFile `json:"files,omitempty"`
	// KubePrism is the in-cluster API load balancer on every node.
	KubePrism *KubePrism `json:"kubePrism,omitempty"`
	// HostDNS is the caching resolver on every node.
	HostDNS *HostDNS `json:"hostDns,omitempty"`
	// DiskEncryption encrypts system partitions.
	DiskEncryption *DiskEncryption `json:"diskEncryption,omitempty"`
	// Registries are mirrors, by the registry they stand for ("docker.io", or "*").
	Registries map[string]Registry `json:"registries,omitempty"`
	// TrustedRoots are CA certificates (PEM) that nodes trust, by name.
	TrustedRoots map[string]Text `json:"trustedRoots,omitempty"`
	// Discovery turns cluster discovery through the public service on; off by default, since an
	// air-gapped site has none.
	Discovery *bool `json:"discovery,omitempty" default:"false"`
	// APIAccess lets pods use the Talos API.
	APIAccess *APIAccess `json:"apiAccess,omitempty"`
	// LogDestinations receive the nodes' logs: "tcp://host:port" or "udp://host:port".
	LogDestinations []string `json:"logDestinations,omitempty"`
	// WipeInstallDisk wipes the disk before installation.
	WipeInstallDisk *bool `json:"wipeInstallDisk,omitempty" default:"false"`
	// EphemeralMaxSize limits the EPHEMERAL volume, in GiB, so that the rest is free.
	EphemeralMaxSize *GiB `json:"ephemeralMaxSize,omitempty" min:"10"`
	// Patches are Talos configuration patches, applied last.
	Patches Patches `json:"patches,omitempty"`
}

// Patches are users' own Talos configuration patches.
type Patches struct {
	// All are for every node.
	All []Patch `json:"all,omitempty"`
	// ControlPlane are for control planes, after All.
	ControlPlane []Patch `json:"controlPlane,omitempty"`
	// Worker are for workers, after All.
	Worker []Patch `json:"worker,omitempty"`
}

// MachineFile is a file on every node.
type MachineFile struct {
	// Content of the file.
	Content Text `json:"content"`
	// Permissions in octal, "0o644".
	Permissions *string `json:"permissions,omitempty" default:"0o644"`
	// Op is what to do with it.
	Op *string `json:"op,omitempty" enum:"create,append,overwrite" default:"create"`
}

// KubePrism is the in-cluster API load balancer.
type KubePrism struct {
	// Enabled turns it on.
	Enabled *bool `json:"enabled,omitempty" default:"true"`
	// Port on every node.
	Port *int `json:"port,omitempty" min:"1" max:"65535" default:"7445"`
}

// HostDNS is the caching resolver.
type HostDNS struct {
	// Enabled turns it on.
	Enabled *bool `json:"enabled,omitempty" default:"true"`
	// ForwardKubeDNSToHost makes CoreDNS ask it.
	ForwardKubeDNSToHost *bool `json:"forwardKubeDnsToHost,omitempty"`
	// ResolveMemberNames resolves node names.
	ResolveMemberNames *bool `json:"resolveMemberNames,omitempty"`
}

// DiskEncryption encrypts system partitions.
type DiskEncryption struct {
	// State is the STATE partition.
	State *Encryption `json:"state,omitempty"`
	// Ephemeral is the EPHEMERAL partition.
	Ephemeral *Encryption `json:"ephemeral,omitempty"`
}

// Encryption says where the key comes from.
type Encryption struct {
	// Key is the kind of key.
	Key *string `json:"key,omitempty" enum:"nodeID,tpm,kms,static" default:"nodeID"`
	// KMSEndpoint of key kms, "https://kms.example.com:4050".
	KMSEndpoint *string `json:"kmsEndpoint,omitempty"`
	// Passphrase of key static.
	Passphrase *Secret `json:"passphrase,omitempty"`
}

// Registry is a registry's mirrors and credentials.
type Registry struct {
	// Endpoints are tried in order, "https://harbor.example.com/v2/dh" with OverridePath.
	Endpoints []string `json:"endpoints,omitempty"`
	// OverridePath takes the endpoint's path as it stands, without /v2 added.
	OverridePath *bool `json:"overridePath,omitempty" default:"false"`
	// SkipFallback never asks the registry itself.
	SkipFallback *bool `json:"skipFallback,omitempty" default:"false"`
	// Username for the registry of that name.
	Username *string `json:"username,omitempty"`
	// Password of Username.
	Password *Secret `json:"password,omitempty"`
	// Token instead of Username and Password.
	Token *Secret `json:"token,omitempty"`
	// CA certificate (PEM) of the registry of that name.
	CA *Text `json:"ca,omitempty"`
	// Insecure skips certificate verification.
	Insecure *bool `json:"insecure,omitempty" default:"false"`
}

// APIAccess lets pods use the Talos API.
type APIAccess struct {
	// Enabled turns it on.
	Enabled *bool `json:"enabled,omitempty" default:"true"`
	// Roles that may be asked for, "os:reader".
	Roles []string `json:"roles,omitempty"`
	// Namespaces whose pods may ask.
	Namespaces []string `json:"namespaces,omitempty"`
}
