// SPDX-License-Identifier: Apache-2.0
// Copyright the talos-proxmox authors.

package spec

import "strings"

// GitOps hands the cluster to git.
type GitOps struct {
	// Provider is the controller; none leaves the cluster alone.
	Provider *string `json:"provider,omitempty" enum:"flux,argocd,none" default:"none"`
	// Method is how Flux is installed: its community chart, the Flux operator, or at day 0 through
	// Talos. Not for Argo CD.
	Method *string `json:"method,omitempty" enum:"chart,operator,inline" default:"chart"`
	// Namespace of the controllers; flux-system or argocd.
	Namespace *string `json:"namespace,omitempty"`
	// Chart overrides which chart is installed, and its values.
	Chart Chart `json:"chart,omitempty"`
	// Version of Flux ("2.x" or exact) for the operator.
	Version *string `json:"version,omitempty"`
	// Registry of the images of Flux's controllers. Not for Argo CD.
	Registry *string `json:"registry,omitempty"`
	// Components of Flux to install.
	Components []string `json:"components,omitempty"`
	// Git is the repository to reconcile.
	Git Git `json:"git,omitempty"`
	// DestinationNamespace is where Argo CD puts namespaced objects that name none, and is made when it
	// is not there; with Flux it is the Kustomization's targetNamespace.
	DestinationNamespace *string `json:"destinationNamespace,omitempty"`
	// SOPS decrypts secrets with an age key. Not for Argo CD.
	SOPS *SOPS `json:"sops,omitempty"`
	// Await is how long `up` waits until Flux has read the repository and applied the path, as git.wait
	// has it; `up` ends with what Flux says when it cannot. Nothing waits when unset: an unreachable git
	// host then does not hold up a run. Not for Argo CD.
	Await *Duration `json:"await,omitempty"`
	// InstallTimeout bounds the installation of the controller's chart, and the wait for one that is taken away.
	InstallTimeout *Duration `json:"installTimeout,omitempty" default:"10m"`
	// DayZero installs Argo CD through Talos at bootstrap; for Flux see Method.
	DayZero *bool `json:"dayZero,omitempty" default:"false"`
}

// Git is the repository to reconcile.
type Git struct {
	// URL is https://… or ssh://git@host/…; the short form git@host:org/repo is refused.
	URL *string `json:"url,omitempty"`
	// Branch to follow; main when no tag, semver or commit is given.
	Branch *string `json:"branch,omitempty"`
	// Tag to use.
	Tag *string `json:"tag,omitempty"`
	// Semver range of tags to follow.
	Semver *string `json:"semver,omitempty"`
	// Commit to use.
	Commit *string `json:"commit,omitempty"`
	// Path in the repository; clusters/<cluster> when unset.
	Path *string `json:"path,omitempty"`
	// Interval between looks at the repository.
	Interval *Duration `json:"interval,omitempty" default:"1m"`
	// SyncInterval between corrections of drift. Not for Argo CD, which corrects it when it sees it.
	SyncInterval *Duration `json:"syncInterval,omitempty" default:"10m"`
	// Timeout of one reconciliation. Not for Argo CD.
	Timeout *Duration `json:"timeout,omitempty" default:"5m"`
	// Prune removes what left the repository.
	Prune *bool `json:"prune,omitempty" default:"true"`
	// Wait waits for what was applied to be ready. Not for Argo CD, which always watches it.
	Wait *bool `json:"wait,omitempty" default:"true"`
	// Auth is how to read the repository; none for a public one.
	Auth *GitAuth `json:"auth,omitempty"`
}

// GitAuth tells how to read the repository.
type GitAuth struct {
	// Type of credential. An ssh key is generated once unless PrivateKey is given.
	Type *string `json:"type,omitempty" enum:"ssh,token,basic,githubApp"`
	// PrivateKey for ssh, in OpenSSH form. The public half is the stack's output deployKey: allow it read
	// access on the git host, unless Register does.
	PrivateKey *Secret `json:"privateKey,omitempty"`
	// KnownHosts of the git host, as in ~/.ssh/known_hosts. Required for ssh.
	KnownHosts *string `json:"knownHosts,omitempty"`
	// Username for token and basic; "git" when unset.
	Username *string `json:"username,omitempty"`
	// Password or token for https.
	Password *Secret `json:"password,omitempty"`
	// CA certificate (PEM) of the git host.
	CA *Text `json:"ca,omitempty"`
	// GitHubApp credentials.
	GitHubApp *GitHubApp `json:"githubApp,omitempty"`
	// Register registers the public half of the ssh key with the repository, read-only, and
	// takes it away with the stack.
	Register *DeployKeyHost `json:"register,omitempty"`
}

// DeployKeyHost tells where a deploy key is registered.
type DeployKeyHost struct {
	// Kind of git host.
	Kind string `json:"kind" enum:"gitea,forgejo,github,gitlab"`
	// URL of its API, such as https://git.example.com/api/v1; derived from the repository's when unset.
	URL *string `json:"url,omitempty"`
	// Token that may administer the repository's deploy keys.
	Token Secret `json:"token"`
}

// GitHubApp credentials.
type GitHubApp struct {
	// ID of the app.
	ID string `json:"id"`
	// InstallationID of the app.
	InstallationID string `json:"installationId"`
	// PrivateKey of the app.
	PrivateKey Secret `json:"privateKey"`
	// BaseURL of a GitHub Enterprise API.
	BaseURL *string `json:"baseUrl,omitempty"`
}

// SOPS decrypts secrets in the repository.
type SOPS struct {
	// AgeKey is an age identity (AGE-SECRET-KEY-1…); generated once when unset.
	AgeKey *Secret `json:"ageKey,omitempty"`
	// SecretName of the Kubernetes secret.
	SecretName *string `json:"secretName,omitempty" default:"sops-age"`
}

// RepositoryPath returns what a git host calls the repository at a URL's path: "lab/demo".
func RepositoryPath(urlPath string) string {
	return strings.TrimSuffix(strings.Trim(urlPath, "/"), ".git")
}
