// SPDX-License-Identifier: Apache-2.0
// Copyright the talos-proxmox authors.

package spec

// Output says what is written beside the stack's outputs.
type Output struct {
	// KubeconfigFile is written with mode 0600; none when unset.
	KubeconfigFile *string `json:"kubeconfigFile,omitempty"`
	// TalosconfigFile is written with mode 0600; none when unset.
	TalosconfigFile *string `json:"talosconfigFile,omitempty"`
	// MachineConfigDirectory receives each node's configuration, mode 0600; none when unset.
	MachineConfigDirectory *string `json:"machineConfigDirectory,omitempty"`
	// Store hands the credentials to a secrets manager.
	Store *CredentialStore `json:"store,omitempty"`
}

// CredentialStore keeps kubeconfig and talosconfig under names of the user's choice.
type CredentialStore struct {
	// KubeconfigName is the name of the secret that holds the kubeconfig.
	KubeconfigName *string `json:"kubeconfigName,omitempty"`
	// TalosconfigName is the name of the secret that holds the talosconfig.
	TalosconfigName *string `json:"talosconfigName,omitempty"`
	// Command is run at up with the secret on its standard input and the name as {name} in its
	// arguments: ["vault", "kv", "put", "secret/{name}", "value=-"].
	Command []string `json:"command,omitempty"`
}
