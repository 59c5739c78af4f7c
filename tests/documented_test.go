// SPDX-License-Identifier: Apache-2.0
// Copyright the talos-proxmox authors.

package tests_test

import (
	"fmt"
	"maps"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// fence holds a block of commands in a page.
type fence struct {
	page, heading string
	// number counts the blocks under the same heading, from 1.
	number int
	script string
}

// name returns "docs/tpx.md: tpx" or, from the second block under a heading on, "docs/tpx.md: tpx 2".
func (f fence) name() string {
	if f.number == 1 {
		return f.page + ": " + f.heading
	}

	return fmt.Sprintf("%s: %s %d", f.page, f.heading, f.number)
}

var fenceForm = regexp.MustCompile("(?m)^#+ (.+)$|(?s:^```(?:sh|bash|shell|console)\n(.*?)^```$)")

// fencesOf returns the blocks of commands of a page.
func fencesOf(t *testing.T, page string) []fence {
	t.Helper()
	text, err := os.ReadFile(filepath.Join("..", page))
	require.NoError(t, err)
	var all []fence
	heading, number := "", 0
	for _, found := range fenceForm.FindAllStringSubmatch(string(text), -1) {
		if found[1] != "" && found[2] == "" {
			heading, number = found[1], 0

			continue
		}
		number++
		all = append(all, fence{page: page, heading: heading, number: number, script: found[2]})
	}

	return all
}

// documented says of every block of commands which test runs it, or why none does.
func documented() map[string]struct{ test, why string } {
	const (
		here  = "TestDocumentedCommands"
		start = "TestGettingStarted"
		host  = "runs on a host of Proxmox VE, of which the lab plays the API alone"
		role  = host + "; TestTheDocumentedRoleCoversTheShippedStacks compares the privileges with those that stacks need"
		build = "builds the tools and runs every test: CI does"
		young = "go install needs a release that Go's proxy has"
	)

	return map[string]struct{ test, why string }{
		"README.md: talos-proxmox":                                              {why: build + "; TestNewcomersFirstCommands runs what `make up` runs"},
		"README.md: talos-proxmox 2":                                            {test: here},
		"README.md: On your own Proxmox":                                        {test: start, why: "the same commands, on a stack of another name"},
		"CONTRIBUTING.md: Contributing":                                         {why: build},
		"docs/adding-a-version.md: The excluded modules in go.mod":              {why: "for a release, where Go's proxy has both modules"},
		"template/README.md: ${PROJECT}":                                        {test: "TestTemplateMakesAProject", why: "but for go install: " + young},
		"examples/fleet/README.md: Many clusters":                               {test: "TestAFleetOfClusters"},
		"docs/credential-stores.md: HashiCorp Vault":                            {test: "TestCredentialStores"},
		"docs/credential-stores.md: 1Password":                                  {test: "TestCredentialStores"},
		"docs/credential-stores.md: Bitwarden":                                  {test: "TestCredentialStores"},
		"docs/getting-started.md: 1. An account for Pulumi":                     {why: role},
		"docs/getting-started.md: 2. Trust its certificate":                     {test: here},
		"docs/getting-started.md: 3. Storage and bridge":                        {why: host},
		"docs/getting-started.md: 4. The project, its state and its passphrase": {test: here, why: "but for go install and go mod tidy: " + young},
		"docs/getting-started.md: 5. The stack file":                            {test: start},
		"docs/getting-started.md: 6. Look before you leap":                      {test: start},
		"docs/getting-started.md: 7. Up":                                        {test: start},
		"docs/getting-started.md: 7. Up 2":                                      {test: start},
		"docs/getting-started.md: 8. Git":                                       {test: start},
		"docs/gitops.md: Keys":                                                  {test: here},
		"docs/gitops.md: Keys 2":                                                {why: "sops is not built here; TestGitReachesTheCluster encrypts the same file for the same recipient"},
		"docs/lab.md: The lab":                                                  {test: here},
		"docs/lab.md: Breaking it":                                              {test: here},
		"docs/lab.md: Git in the lab":                                           {test: here},
		"docs/lifecycle.md: Snapshots of etcd":                                  {test: here},
		"docs/proxmox.md: A role for the token":                                 {why: role},
		"docs/proxmox.md: A role for the token 2":                               {why: role},
		"docs/proxmox.md: A role for the token 3":                               {why: host},
		"docs/proxmox.md: Devices of the host":                                  {why: host},
		"docs/pull-requests.md: Previews in pull requests":                      {test: "TestPreviewInAPullRequest"},
		"docs/pull-requests.md: What it needs":                                  {test: here},
		"docs/pull-requests.md: What it needs 2":                                {why: "TestNewcomersFirstCommands runs what `make preview` runs"},
		"docs/pull-requests.md: Policies":                                       {test: "TestPoliciesOfAPreview", why: "but for go install: " + young},
		"docs/stack-file.md: Secrets":                                           {test: here},
		"docs/tpx.md: tpx":                                                      {test: here, why: "but for go install: " + young},
	}
}

// pages returns the pages that users read.
func pages(t *testing.T) []string {
	t.Helper()
	all := []string{"README.md", "CONTRIBUTING.md", "SECURITY.md", "UPGRADE.md", "template/README.md", "examples/fleet/README.md"}
	for _, pattern := range []string{"docs/*.md", "docs/*/*.md"} {
		found, err := filepath.Glob(filepath.Join("..", pattern))
		require.NoError(t, err)
		for _, path := range found {
			all = append(all, filepath.ToSlash(strings.TrimPrefix(path, ".."+string(filepath.Separator))))
		}
	}

	return all
}

// TestEveryDocumentedCommandIsAccountedFor holds that each block of commands in README and docs is run by a test, or says
// why not.
func TestEveryDocumentedCommandIsAccountedFor(t *testing.T) {
	t.Parallel()
	listed, found := documented(), map[string]bool{}
	for _, page := range pages(t) {
		for _, f := range fencesOf(t, page) {
			found[f.name()] = true
			entry, ok := listed[f.name()]
			if !assert.Truef(t, ok, "%s: no test runs these commands, and nobody says why:\n%s", f.name(), f.script) {
				continue
			}
			assert.NotEmpty(t, entry.test+entry.why, f.name())
			if entry.test != "" {
				assert.Truef(t, holds(t, ".", "_test.go", "func "+entry.test+"("), "%s: there is no test %s", f.name(), entry.test)
			}
		}
	}
	for _, name := range slices.Sorted(maps.Keys(listed)) {
		assert.Truef(t, found[name], "%s: there are no such commands any more", name)
	}
}

// TestDocumentedCommands runs commands of README and docs as they stand there, but for what a person would do by hand:
// confirm an up, paste a secret.
func TestDocumentedCommands(t *testing.T) {
	t.Parallel()
	d := newReader(t)

	// On the way to one's own hosts.
	d.env = append(d.env, "PULUMI_HOME="+filepath.Join(d.home, ".pulumi"))
	made := d.run("docs/getting-started.md: 4. The project, its state and its passphrase", "unset PULUMI_BACKEND_URL; cd ~", "pulumi stack ls",
		"https://github.com/talos-proxmox/talos-proxmox/tree/main/template --generate-only", filepath.Join(d.root, "template")+" --generate-only --yes",
		"go mod tidy", "# go mod tidy")
	assert.Regexp(t, `(?m)^home\*`, made)
	assert.FileExists(t, filepath.Join(d.home, "cluster", "main.go"))
	d.run("docs/tpx.md: tpx", "set +u", "complete -p tpx")

	// In the lab.
	d.env = nil
	d.create("dev")
	trusted := d.run("docs/getting-started.md: 2. Trust its certificate", "LAB_CA=$SSL_CERT_FILE", "tpx doctor dev --live || true",
		"scp root@192.168.1.10:/etc/pve/pve-root-ca.pem", `cp "$LAB_CA"`)
	assert.Contains(t, trusted, "sha256 Fingerprint=")
	assert.Regexp(t, `(?m)^tls +ok$`, trusted)
	d.run("docs/lab.md: The lab", "", "", "bin/lab stop", "# bin/lab stop")
	assert.FileExists(t, filepath.Join(d.project, "run.svg"))
	assert.Contains(t, d.run("README.md: talos-proxmox 2", "", ""), "ctrl-02")
	assert.Contains(t, d.run("docs/pull-requests.md: What it needs", "STACK=dev", ""), "unchanged")
	d.run("docs/gitops.md: Keys", "", "", "pulumi config set", "echo word | pulumi config set --config-file other.yaml")
	d.run("docs/stack-file.md: Secrets", "", "", "pulumi config set", "age-keygen | pulumi config set --config-file other.yaml")
	backed := d.run("docs/lifecycle.md: Snapshots of etcd", "export KUBECONFIG=kubeconfig", "",
		"pulumi config set --secret", "echo word | pulumi config set --secret")
	assert.Contains(t, backed, "job.batch/first created")
	assert.Contains(t, d.run("docs/lab.md: Breaking it", "", ""), "host-down")
	d.must("sh", "-c", "git init -q repository && git -C repository -c user.name=a -c user.email=a@example.com commit -q --allow-empty -m Start")
	assert.Contains(t, d.run("docs/lab.md: Git in the lab", "", "", "git push", "git -C repository push"), "gitea.example.com ssh-ed25519 ")
}

// reader runs what the pages say.
type reader struct {
	*site

	home, tools string
	env         []string
}

func newReader(t *testing.T) *reader {
	t.Helper()
	d := &reader{site: newSite(t), home: t.TempDir(), tools: t.TempDir()}
	// Not the program: Pulumi's Go host writes that of the project there.
	require.NoError(t, os.Mkdir(filepath.Join(d.project, "bin"), 0o700))
	require.NoError(t, os.Symlink(filepath.Join(d.root, "bin", "lab"), filepath.Join(d.project, "bin", "lab")))
	cmd := exec.CommandContext(t.Context(), "go", "build", "-o", filepath.Join(d.tools, "age-keygen"), "filippo.io/age/cmd/age-keygen")
	cmd.Dir = d.root
	output, err := cmd.CombinedOutput()
	require.NoErrorf(t, err, "building age-keygen: %s", output)

	return d
}

// run runs a block of commands, between two others, in the lab unless the block itself calls it.
func (d *reader) run(name, before, after string, replacements ...string) string {
	d.t.Helper()
	page, _, _ := strings.Cut(name, ": ")
	all := fencesOf(d.t, page)
	at := slices.IndexFunc(all, func(f fence) bool { return f.name() == name })
	require.GreaterOrEqual(d.t, at, 0, name)
	replacements = append(replacements, "pulumi up", "pulumi up --yes --skip-preview --non-interactive", "go install", "# go install")
	script := strings.Join([]string{before, strings.NewReplacer(replacements...).Replace(all[at].script), after}, "\n")
	command := append([]string{"env", "HOME=" + d.home, "LAB_SITE=" + d.dir}, d.env...)
	command = append(command, "bash", "-euo", "pipefail", "-c", "PATH="+d.tools+":$PATH\n"+script)
	cmd := exec.CommandContext(d.t.Context(), command[0], command[1:]...)
	if !strings.Contains(script, "bin/lab ") {
		cmd = d.command(command...)
	}
	r := d.site.run(cmd)
	require.Zero(d.t, r.code, "%s\n%s\n%s", name, script, r.all())

	return r.all()
}
