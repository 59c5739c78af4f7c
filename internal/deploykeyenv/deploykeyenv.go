// SPDX-License-Identifier: Apache-2.0
// Copyright the talos-proxmox authors.

// Package deploykeyenv names the environment variables through which the program tells tpx of a deploy key at Gitea and
// Forgejo.
package deploykeyenv

const (
	// API has the URL of the git host's API.
	API = "TALOS_PROXMOX_GIT_API"
	// Repository has the repository's owner and name.
	Repository = "TALOS_PROXMOX_GIT_REPOSITORY"
	// Title has what people see at the git host.
	Title = "TALOS_PROXMOX_GIT_KEY_TITLE"
	// Key has the public key.
	Key = "TALOS_PROXMOX_GIT_KEY"
	// LastToken has the token that the last `pulumi up` was given.
	LastToken = "TALOS_PROXMOX_GIT_LAST_TOKEN"
	// Token has a token that counts in place of LastToken: a destroy knows no other, and that one may have expired.
	Token = "TALOS_PROXMOX_GIT_TOKEN"
)
