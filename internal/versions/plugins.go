// SPDX-License-Identifier: Apache-2.0
// Copyright the talos-proxmox authors.

package versions

// The versions of the Pulumi plugins that stacks use.
const (
	// ProxmoxPlugin is the version of the proxmoxve plugin.
	ProxmoxPlugin = "6.18.1"
	// TalosPlugin is the version of the talos plugin.
	TalosPlugin = "0.7.1"
	// KubernetesPlugin is the version of the kubernetes plugin.
	KubernetesPlugin = "4.33.0"
	// GitHubPlugin is the version of the github plugin, which registers deploy keys.
	GitHubPlugin = "6.12.1"
	// GitLabPlugin is the version of the gitlab plugin, which registers deploy keys.
	GitLabPlugin = "9.5.0"
	// CommandPlugin is the version of the command plugin, which runs tpx for the keys of Gitea and Forgejo.
	CommandPlugin = "1.1.3"
	// PulumiCLI is the oldest Pulumi CLI that the program was run with: the one of tools/pulumi.
	PulumiCLI = "3.259.0"
)
