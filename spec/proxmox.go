// SPDX-License-Identifier: Apache-2.0
// Copyright the talos-proxmox authors.

package spec

// Proxmox says how to reach Proxmox VE and which hosts there are. What is unset comes from the
// provider's environment variables (PROXMOX_VE_ENDPOINT, PROXMOX_VE_API_TOKEN, …).
type Proxmox struct {
	// Endpoint is the API's address, "https://pve.example.com:8006/".
	Endpoint *string `json:"endpoint,omitempty"`
	// Insecure turns certificate verification off.
	Insecure *bool `json:"insecure,omitempty" default:"false"`
	// MinTLS is the lowest TLS version.
	MinTLS *string `json:"minTls,omitempty" enum:"1.0,1.1,1.2,1.3" default:"1.3"`
	// APIToken is the token by which the API is asked, "user@realm!token=uuid".
	APIToken *Secret `json:"apiToken,omitempty"`
	// Username of the API, "user@realm", with Password instead of a token.
	Username *string `json:"username,omitempty"`
	// Password of Username.
	Password *Secret `json:"password,omitempty"`
	// SSH reaches the hosts; only options that say so need it.
	SSH *SSH `json:"ssh,omitempty"`
	// Version is the Proxmox VE major version, where options depend on it.
	Version *int `json:"version,omitempty" enum:"8,9" default:"8"`
	// Hosts is the host pool, by the name Proxmox has for the host.
	Hosts map[string]Host `json:"hosts,omitempty"`
	// DefaultHost runs every node that names none; without it nodes are spread over Hosts.
	DefaultHost *string `json:"defaultHost,omitempty"`
}

// Host is a Proxmox VE host.
type Host struct {
	// Datastore holds VM disks of nodes on the host.
	Datastore *string `json:"datastore,omitempty" default:"local-lvm"`
	// ImageDatastore holds boot images; defaults to the image's datastore.
	ImageDatastore *string `json:"imageDatastore,omitempty"`
	// Zone becomes the topology.kubernetes.io/zone of nodes on the host.
	Zone *string `json:"zone,omitempty"`
	// Memory of the host in MiB; when given, the nodes on it must fit.
	Memory *MiB `json:"memory,omitempty" min:"1024"`
}

// SSH reaches Proxmox hosts.
type SSH struct {
	// Username on the hosts.
	Username string `json:"username"`
	// PrivateKey in OpenSSH form.
	PrivateKey *Secret `json:"privateKey,omitempty"`
	// Password, where no key is used.
	Password *Secret `json:"password,omitempty"`
	// Agent uses the local SSH agent.
	Agent *bool `json:"agent,omitempty" default:"false"`
	// Nodes are addresses of hosts that differ from what Proxmox reports: "address" or "address:port".
	Nodes map[string]string `json:"nodes,omitempty"`
}
