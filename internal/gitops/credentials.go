// SPDX-License-Identifier: Apache-2.0
// Copyright the talos-proxmox authors.

package gitops

import "github.com/talos-proxmox/talos-proxmox/spec"

// Credentials describes the secret that a controller reads the repository with.
type Credentials struct {
	// Name and Labels of the secret; it is in the controller's namespace.
	Name   string
	Labels map[string]string
	// Data holds the fields whose values the settings give.
	Data map[string]string
	// PrivateKey and PublicKey name the fields that take the halves of the deploy key. PrivateKey is empty
	// where no SSH key is used, PublicKey also where the controller has no use for it.
	PrivateKey, PublicKey string
}

// secretFields holds the names that a controller has for the fields of its Secret; empty where it has none.
type secretFields struct{ privateKey, publicKey, knownHosts, ca, gitHubURL string }

// NewCredentials returns the secret that the controller reads the repository with, and whether it needs
// one.
func NewCredentials(clusterName string, g spec.GitOps) (Credentials, bool) {
	if spec.Value(g.Provider) == ArgoCD {
		if g.Git.URL == nil || g.Git.Auth == nil || g.Git.Auth.Type == nil {
			return Credentials{}, false
		}
		c := Credentials{
			Name: clusterName + "-repository", Labels: map[string]string{"argocd.argoproj.io/secret-type": "repository"},
			Data: map[string]string{"type": "git", "url": *g.Git.URL},
		}
		c.fill(*g.Git.Auth, secretFields{privateKey: "sshPrivateKey", gitHubURL: "githubAppEnterpriseBaseUrl"})

		return c, true
	}
	if !hasFluxSecret(g) {
		return Credentials{}, false
	}
	c := Credentials{Name: FluxObject, Data: map[string]string{}}
	c.fill(*g.Git.Auth, secretFields{
		privateKey: "identity", publicKey: "identity.pub", knownHosts: "known_hosts", ca: "ca.crt", gitHubURL: "githubAppBaseURL",
	})

	return c, true
}

// fill adds what the way of authentication gives, under the controller's names.
func (c *Credentials) fill(auth spec.GitAuth, field secretFields) {
	set := func(name, value string) {
		if name != "" {
			c.Data[name] = value
		}
	}
	if auth.CA != nil {
		set(field.ca, string(*auth.CA))
	}
	switch spec.Value(auth.Type) {
	case "ssh":
		c.PrivateKey, c.PublicKey = field.privateKey, field.publicKey
		set(field.knownHosts, spec.Value(auth.KnownHosts))
	case "token", "basic":
		set("username", spec.Value(auth.Username))
		set("password", spec.Value(auth.Password).Reveal())
	case "githubApp":
		set("githubAppID", auth.GitHubApp.ID)
		set("githubAppInstallationID", auth.GitHubApp.InstallationID)
		set("githubAppPrivateKey", auth.GitHubApp.PrivateKey.Reveal())
		if auth.GitHubApp.BaseURL != nil {
			set(field.gitHubURL, *auth.GitHubApp.BaseURL)
		}
	}
}

// isGitHubApp reports whether the repository is read as a GitHub App.
func isGitHubApp(g spec.GitOps) bool {
	return g.Git.Auth != nil && spec.Value(g.Git.Auth.Type) == "githubApp"
}

// hasFluxSecret reports whether Flux needs a secret to read the repository.
func hasFluxSecret(g spec.GitOps) bool {
	return g.Git.Auth != nil && (g.Git.Auth.Type != nil || g.Git.Auth.CA != nil)
}
