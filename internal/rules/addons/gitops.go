// SPDX-License-Identifier: Apache-2.0
// Copyright the talos-proxmox authors.

package addons

import (
	"cmp"
	"path"
	"reflect"
	"regexp"
	"slices"
	"strings"

	"github.com/Masterminds/semver/v3"
	"golang.org/x/crypto/ssh"

	"github.com/talos-proxmox/talos-proxmox/internal/agekey"
	"github.com/talos-proxmox/talos-proxmox/internal/check"
	"github.com/talos-proxmox/talos-proxmox/internal/credential"
	"github.com/talos-proxmox/talos-proxmox/internal/rules/scope"
	"github.com/talos-proxmox/talos-proxmox/spec"
)

// fluxComponents are the controllers Flux has.
var fluxComponents = []string{
	"helm-controller", "image-automation-controller", "image-reflector-controller", "kustomize-controller",
	"notification-controller", "source-controller", "source-watcher",
}

var (
	commitForm = regexp.MustCompile(`^[0-9a-f]{7,64}$`)
	scpForm    = regexp.MustCompile(`^([^/@:]+@)?([^/:]+):([^/].*)$`)
)

// gitops checks how the cluster is handed to git.
func (r *rules) gitops() {
	g := r.Config.GitOps
	if *g.Provider == "none" {
		r.noGitOps(r.Said.GitOps)

		return
	}
	if g.Namespace == nil {
		return // the provider is none there is
	}
	if !scope.LabelForm.MatchString(*g.Namespace) {
		r.Addf("gitops.namespace", "%q is no name of a namespace", *g.Namespace)
	}
	if g.DestinationNamespace != nil && !scope.LabelForm.MatchString(*g.DestinationNamespace) {
		r.Addf("gitops.destinationNamespace", "%q is no name of a namespace", *g.DestinationNamespace)
	}
	r.gitopsMethod(g)
	r.git(g.Git)
	r.Positive("gitops.await", g.Await)
	r.longEnough("gitops.await", g.Await)
	if g.SOPS != nil {
		r.sops(*g.SOPS)
	}
}

// noGitOps records every setting that is written while nothing follows git: it would have no effect.
func (r *rules) noGitOps(said spec.GitOps) {
	v := reflect.ValueOf(said)
	var written []string
	for _, f := range spec.Fields(v.Type()) {
		if f.Name != "provider" && !v.FieldByIndex(f.Index).IsZero() {
			written = append(written, f.Name)
		}
	}
	if len(written) > 0 {
		r.Addf(check.Join("gitops", written[0]),
			"is written while gitops.provider is none (%s): set the provider to flux or argocd, or remove what is written",
			strings.Join(written, ", "))
	}
}

// gitopsMethod checks what only some ways of installing have.
func (r *rules) gitopsMethod(g spec.GitOps) {
	flux := *g.Provider == "flux"
	if flux {
		r.fluxOnly(g)
	} else {
		CheckArgoCD(g, "gitops", r.List)
	}
	for i, name := range g.Components {
		if !slices.Contains(fluxComponents, name) {
			r.Addf(check.Index("gitops.components", i), "%s", scope.NotOneOf(name, fluxComponents))
		}
	}
	if flux && *g.Method == "operator" && g.Version != nil {
		if _, err := semver.NewConstraint(*g.Version); err != nil || !strings.HasPrefix(strings.TrimLeft(*g.Version, "v=~^>< "), "2") {
			r.Addf("gitops.version", "%q is no version of Flux 2 such as 2.x or 2.7.2", *g.Version)
		}
	}
	r.fluxParts(g)
	if g.Registry != nil && !registryForm.MatchString(*g.Registry) {
		r.Addf("gitops.registry",
			"%q is no registry: write host and path without a scheme and a tag, such as harbor.example.com/flux", *g.Registry)
	}
	r.chart("gitops.chart", g.Chart)
	switch {
	case !flux:
		r.chartOfRepository("gitops.chart", r.Said.GitOps.Chart, "argo-cd")
	case *g.Method == "operator":
		r.chartOfRepository("gitops.chart", r.Said.GitOps.Chart, "flux-operator")
	default:
		r.chartOfRepository("gitops.chart", r.Said.GitOps.Chart, "flux2")
	}
	r.gitopsNeeds(g)
	if !spec.Value(g.DayZero) && spec.Value(g.Method) != "inline" { // else Helm itself reads them
		r.releaseValues("gitops.chart.values", g.Chart.Values)
	}
}

// gitHost checks that pods reach the git host of a repository.
func (r *rules) gitHost(address string) {
	if u, ok := scope.WebURL(address, "https", "http", "ssh"); ok && scope.Loopback(u.Hostname()) && !r.Wrong("gitops.git.url") {
		r.Addf("gitops.git.url", "%s is the controller's own pod: name the git host as pods reach it", u.Hostname())
	}
}

// git checks the repository to reconcile.
func (r *rules) git(g spec.Git) {
	if g.URL == nil {
		r.Addf("gitops.git.url", "is required: write https://… or ssh://git@host/…")
	} else {
		r.gitURL(g)
		r.gitHost(*g.URL)
	}
	var refs []string
	for name, ref := range map[string]*string{"branch": g.Branch, "tag": g.Tag, "semver": g.Semver, "commit": g.Commit} {
		if ref != nil {
			refs = append(refs, name)
		}
	}
	// A commit may say its branch, for shallow clones.
	if slices.Sort(refs); len(refs) > 1 && !slices.Equal(refs, []string{"branch", "commit"}) {
		r.Addf("gitops.git", "has %s: keep one of them", strings.Join(refs, " and "))
	}
	if g.Commit != nil && !commitForm.MatchString(*g.Commit) {
		r.Addf("gitops.git.commit", "%q is no commit: write its hexadecimal id", *g.Commit)
	}
	if g.Semver != nil {
		if _, err := semver.NewConstraint(*g.Semver); err != nil {
			r.Addf("gitops.git.semver", "%q is no range of versions such as >=1.2.0 <2.0.0", *g.Semver)
		}
	}
	if g.Path != nil && !isRepositoryPath(*g.Path) && !r.Wrong("cluster.name") { // it has the name by default
		r.Addf("gitops.git.path", "%q is no path in the repository: write it relative to its root", *g.Path)
	}
	whole := r.Config.GitOps
	for name, d := range map[string]*spec.Duration{
		"git.interval": g.Interval, "git.syncInterval": g.SyncInterval, "git.timeout": g.Timeout,
		"await": whole.Await, "installTimeout": whole.InstallTimeout,
	} {
		r.Positive("gitops."+name, d)
	}
	r.references(g)
	r.gitAuth(g)
}

// isRepositoryPath reports whether a path names a directory of the repository plainly, as Flux and Argo
// CD write it: "clusters/dev", with or without "./" before and "/" after it, and "./" for the root.
func isRepositoryPath(p string) bool {
	plain := strings.TrimSuffix(strings.TrimPrefix(p, "./"), "/")

	return scope.InProject(p) && path.Clean(p) == cmp.Or(plain, ".")
}

// gitURL checks the form of the repository's URL.
func (r *rules) gitURL(g spec.Git) {
	const at = "gitops.git.url"
	if m := scpForm.FindStringSubmatch(*g.URL); m != nil && !strings.Contains(*g.URL, "://") {
		r.Addf(at, "%q is the short form, which Flux and Argo CD do not read alike: write ssh://%s%s/%s",
			*g.URL, cmp.Or(m[1], "git@"), m[2], m[3])

		return
	}
	u, ok := scope.WebURL(*g.URL, "https", "http", "ssh")
	switch {
	case !ok:
		r.Addf(at, "%q is no URL of a repository: write https://… or ssh://git@host/…", *g.URL)
	case u.Scheme == "ssh" && u.User.Username() == "":
		r.Addf(at, "%q names no user: write ssh://git@%s%s", *g.URL, u.Host, u.Path)
	case credential.In(*g.URL) != "":
		r.Addf(at, "holds %s in plain text: give it under gitops.git.auth", credential.In(*g.URL))
	case u.Scheme == "http" && g.Auth != nil && spec.Value(g.Auth.Type) != "ssh":
		r.Addf(at, "sends the credentials of gitops.git.auth in plain text: write https://")
	case strings.Trim(u.Path, "/") == "":
		r.Addf(at, "%q names no repository: write its path behind the host", *g.URL)
	case u.RawQuery != "" || u.Fragment != "":
		r.Addf(at, "has a query or a fragment, which git does not take: end it with the repository's path")
	case u.Scheme == "ssh" && g.Auth == nil:
		r.Addf("gitops.git.auth", "is required with an ssh:// URL: give at least knownHosts")
	}
}

// gitAuth checks the credentials against the URL and each other.
func (r *rules) gitAuth(g spec.Git) {
	if g.Auth == nil {
		return
	}
	a, at := *g.Auth, "gitops.git.auth"
	kind := spec.Value(a.Type)
	if kind == "" {
		if g.URL != nil {
			r.Addf(at+".type", "is required: ssh, token, basic or githubApp")
		}

		return
	}
	overSSH := strings.HasPrefix(spec.Value(g.URL), "ssh://")
	if g.URL != nil && overSSH != (kind == "ssh") && !r.Wrong("gitops.git.url") {
		r.Addf(at+".type", "%s does not go with %q: ssh needs an ssh:// URL, the others https://", kind, *g.URL)

		return // what else is written is for the one or for the other
	}
	r.authFields(at, kind, a)
	r.accounts(a)
	switch {
	case kind == "ssh":
		r.sshAuth(at, g, a)
	case kind == "githubApp" && a.GitHubApp == nil:
		r.Addf(at+".githubApp", "is required with type githubApp")
	case (kind == "token" || kind == "basic") && a.Password == nil:
		r.Addf(at+".password", "is required with type %s", kind)
	}
	if a.Register != nil {
		r.deployKeyHost(at+".register", g, *a.Register)
	}
	r.Certificate(at+".ca", a.CA)
	r.gitHubURL(at+".githubApp.baseUrl", a.GitHubApp)
}

// gitHubURL checks the address of a GitHub Enterprise Server, where an app has one.
func (r *rules) gitHubURL(at string, app *spec.GitHubApp) {
	if app == nil || app.BaseURL == nil {
		return
	}
	if _, ok := scope.WebURL(*app.BaseURL, "https"); !ok {
		r.Addf(at, "%q is no https:// URL", *app.BaseURL)
	}
}

// authFields records fields that another type of credential has.
func (r *rules) authFields(at, kind string, a spec.GitAuth) {
	allowed := map[string][]string{
		"ssh": {"privateKey", "knownHosts", "register"}, "token": {"username", "password", "ca"},
		"basic": {"username", "password", "ca"}, "githubApp": {"githubApp", "ca"},
	}[kind]
	for name, used := range map[string]bool{
		"privateKey": a.PrivateKey != nil, "knownHosts": a.KnownHosts != nil, "username": a.Username != nil, "password": a.Password != nil,
		"ca": a.CA != nil, "githubApp": a.GitHubApp != nil, "register": a.Register != nil,
	} {
		if used && !slices.Contains(allowed, name) {
			r.Addf(check.Join(at, name), "does not go with type %s: remove it", kind)
		}
	}
}

// deployKeyHost checks where the deploy key is registered.
func (r *rules) deployKeyHost(at string, g spec.Git, h spec.DeployKeyHost) {
	if h.URL != nil {
		if _, ok := scope.WebURL(*h.URL, "https"); !ok {
			r.Addf(at+".url", "%q is no https:// URL of an API", *h.URL)
		}
	}
	u, ok := scope.WebURL(spec.Value(g.URL), "ssh")
	if ok && h.Kind != "gitlab" && strings.Count(spec.RepositoryPath(u.Path), "/") != 1 {
		r.Addf(at+".kind", "%s has repositories by owner and name, and gitops.git.url is %q", h.Kind, *g.URL)
	}
}

// sshAuth checks the key and the host keys of the git host.
func (r *rules) sshAuth(at string, g spec.Git, a spec.GitAuth) {
	if a.PrivateKey != nil && !scope.IsPrivateKey(a.PrivateKey.Reveal()) {
		r.Addf(at+".privateKey", "is not a private key without passphrase, in OpenSSH or PEM form")
	}
	if a.KnownHosts == nil {
		r.Addf(at+".knownHosts",
			"is required with type ssh: give the line that `ssh-keyscan` prints for the git host, after "+
				"comparing it with what the host publishes")

		return
	}
	hosts, ok := knownHosts(*a.KnownHosts)
	u, isURL := scope.WebURL(spec.Value(g.URL), "ssh")
	switch {
	case !ok:
		r.Addf(at+".knownHosts", "is not in the form of ~/.ssh/known_hosts: write <host> <type> <key>")
	case isURL && !hasHost(hosts, knownAs(u.Hostname(), u.Port())):
		r.Addf(at+".knownHosts", "has no key of %s, the git host: add its line", knownAs(u.Hostname(), u.Port()))
	}
}

// hasHost reports whether a host is among known ones; hashed names may be any host.
func hasHost(hosts []string, host string) bool {
	return slices.ContainsFunc(hosts, func(h string) bool { return strings.HasPrefix(h, "|") || h == host })
}

// knownAs returns how known_hosts names a host.
func knownAs(host, port string) string {
	if port == "" || port == "22" {
		return host
	}

	return "[" + host + "]:" + port
}

// knownHosts reads the hosts of a known_hosts file; false when a line is none.
func knownHosts(text string) (hosts []string, ok bool) {
	rest := []byte(text)
	for len(strings.TrimSpace(string(rest))) > 0 {
		_, names, _, _, next, err := ssh.ParseKnownHosts(rest)
		if err != nil {
			return hosts, len(hosts) > 0 && err.Error() == "EOF"
		}
		hosts, rest = append(hosts, names...), next
	}

	return hosts, len(hosts) > 0
}

func (r *rules) sops(s spec.SOPS) {
	if !scope.DomainForm.MatchString(*s.SecretName) {
		r.Addf("gitops.sops.secretName", "%q is no name of a Kubernetes secret", *s.SecretName)
	}
	if s.AgeKey == nil {
		return
	}
	if _, err := agekey.Parse(s.AgeKey.Reveal()); err != nil {
		r.Addf("gitops.sops.ageKey", "%s", err)
	}
}
