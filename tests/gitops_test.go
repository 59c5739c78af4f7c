// SPDX-License-Identifier: Apache-2.0
// Copyright the talos-proxmox authors.

package tests_test

import (
	"encoding/base64"
	"encoding/json"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"filippo.io/age"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// TestDeployKeyComesAndGoesWithTheStack registers the key that a stack generates, turns GitOps off and
// on, and destroys the stack when its cluster is dead: the key goes, whatever happened to the cluster.
func TestDeployKeyComesAndGoesWithTheStack(t *testing.T) {
	t.Parallel()
	s := newSite(t)
	repo := s.newRepository()
	up := s.up("git", s.gitOpsFile("git"))

	keys := s.deployKeys()
	require.Len(t, keys, 1)
	assert.Contains(t, keys[0].Title, "talos-proxmox talos-dev SHA256:")
	assert.True(t, keys[0].ReadOnly)
	assert.Equal(t, keys[0].Key, up.plainOutput("deployKey"))
	up.isSettled()
	up.keepsSecrets()
	up.tokenEnds()

	recipient := up.plainOutput("ageRecipient")
	on := up.turnOff()
	r := up.preview()
	assert.Contains(t, r.all(), "gitops is turned off: Flux goes, and everything that it applied keeps running")
	up.again()
	assert.Empty(t, s.deployKeys(), "without GitOps nobody needs the key")
	up.hasKustomization("flux-system")
	var deployments objects
	up.kubectl(&deployments, "get", "deployments", "-n", "flux-system")
	assert.Empty(t, deployments.Items, "Flux is gone")

	require.NoError(t, os.WriteFile(up.file, on, 0o600))
	up.again()
	up.hasKustomization("flux-system")
	require.Len(t, s.deployKeys(), 1)
	assert.Equal(t, recipient, up.plainOutput("ageRecipient"), "what was encrypted can still be read")

	up.kill()
	up.destroy()
	assert.Empty(t, s.deployKeys(), "the key goes although the cluster is dead")
	repo.untouched()
}

// tokenEnds gives the stack a token that the git host refuses: the up that brings it says so and changes nothing, one in
// the environment counts in its place, and the good one is taken back.
func (r *running) tokenEnds() {
	r.t.Helper()
	set := func(token string) {
		r.must("sh", "-c", `pulumi config set --stack `+r.stack+` --config-file `+r.file+
			` --secret --path talos-proxmox:gitops.git.auth.register.token "`+token+`"`)
	}
	up := []string{"pulumi", "up", "--stack", r.stack, "--config-file", r.file, "--yes", "--skip-preview", "--non-interactive"}
	set("another")
	refused := r.try(up...)
	assert.NotZero(r.t, refused.code)
	assert.Contains(r.t, refused.all(), "the git host answers 401 to the token")
	assert.Len(r.t, r.deployKeys(), 1)
	if r.providers == "command" { // the stand-in is a process of the lab's, with an environment of its own
		r.must("sh", "-c", "TALOS_PROXMOX_GIT_TOKEN=$LAB_GIT_TOKEN "+strings.Join(up, " "))
	}
	set("$LAB_GIT_TOKEN")
	r.must(up...)
	assert.Len(r.t, r.deployKeys(), 1, "another token registers nothing anew")
	r.isSettled()
}

// hasFluxControllers wants Flux's own controllers, and what encrypts for them, to be built.
func (s *site) hasFluxControllers() {
	s.t.Helper()
	for _, tool := range []string{"source-controller", "kustomize-controller", "encrypt"} {
		require.FileExists(s.t, filepath.Join(s.root, "bin", "flux-controllers", tool), "run make bin/flux-controllers")
	}
}

// TestGitReachesTheCluster runs Flux's own controllers: what the example repository says is in the
// cluster, with its secrets decrypted, and what is wrong is told in Flux's own words.
func TestGitReachesTheCluster(t *testing.T) {
	heavy(t)
	t.Parallel()
	s := newSite(t)
	s.hasFluxControllers()
	repo := s.newRepository()
	file := s.gitOpsFile("git")
	edit(t, file, "    provider: flux\n", "    provider: flux\n    await: 4m\n")

	up := s.up("git", file)
	assert.Equal(t, "hello from talos-dev", up.field("configmap", "greeting", "greeting", "{.data.text}"))
	assert.Equal(t, "1000", up.field("priorityclass", "", "workload", "{.value}"))
	up.isSettled()

	repo.write("apps/talos-dev/kustomization.yaml",
		strings.ReplaceAll(repo.read("apps/talos-dev/kustomization.yaml"), "hello from talos-dev", "hello again"))
	repo.push("Greet again")
	up.eventually("hello again", "configmap", "greeting", "greeting", "{.data.text}")

	repo.addSecret(up.plainOutput("ageRecipient"))
	up.eventually("change-me", "secret", "greeting", "greeting", "{.data.password}")
	up.keepsWorkloadsWithoutFlux() // and makes another deploy key, but no other age key

	up.refusesToPush(repo)
	up.tellsOfAWrongAgeKey(repo)
	up.tellsOfAnotherHostKey()

	repo.untouched()
	up.kill()
	up.destroy()
	assert.Empty(t, s.deployKeys())
	repo.untouched()
}

// addSecret encrypts the example's secret and pushes it.
func (r *repository) addSecret(recipient string) {
	r.t.Helper()
	r.write("apps/talos-dev/secret.yaml", r.encrypted(r.read("apps/talos-dev/secret.example.yaml"), recipient))
	r.write("apps/talos-dev/kustomization.yaml",
		strings.ReplaceAll(r.read("apps/talos-dev/kustomization.yaml"), "  - ../base/greeting\n", "  - ../base/greeting\n  - secret.yaml\n"))
	r.push("Add a password")
}

// hasKustomization asserts that the cluster has an object that stands for workloads.
func (r *running) hasKustomization(name string) {
	r.t.Helper()

	var all objects
	r.kubectl(&all, "get", "kustomizations.kustomize.toolkit.fluxcd.io", "-n", "flux-system")
	assert.True(r.t, slices.ContainsFunc(all.Items, func(o object) bool { return o.Metadata.Name == name }), "%s is there", name)
}

// keepsWorkloadsWithoutFlux turns GitOps off and on: what Flux applied runs on meanwhile.
func (r *running) keepsWorkloadsWithoutFlux() {
	r.t.Helper()

	uid := r.field("deployment", "greeting", "greeting", "{.metadata.uid}")
	on := r.turnOff()
	r.again()
	_, runs := r.tryField("deployment", "flux-system", "kustomize-controller", "{.metadata.uid}")
	assert.False(r.t, runs, "Flux is gone")
	assert.Equal(r.t, uid, r.field("deployment", "greeting", "greeting", "{.metadata.uid}"))
	require.NoError(r.t, os.WriteFile(r.file, on, 0o600))
	r.again()
	assert.Equal(r.t, uid, r.field("deployment", "greeting", "greeting", "{.metadata.uid}"))
}

// refusesToPush takes the key that Flux reads with and tries to write.
func (r *running) refusesToPush(repo *repository) {
	r.t.Helper()

	dir := r.t.TempDir()
	for name, path := range map[string]string{"key": "{.data.identity}", "known": "{.data.known_hosts}"} {
		require.NoError(r.t, os.WriteFile(filepath.Join(dir, name), []byte(r.field("secret", "flux-system", "flux-system", path)), 0o600))
	}
	ssh := `GIT_SSH_COMMAND="$GIT_SSH_COMMAND -i ` + dir + `/key -o IdentitiesOnly=yes -o UserKnownHostsFile=` + dir + `/known" git -C ` + repo.dir
	url := "ssh://git@" + gitHost + gitPath + ".git"
	r.must("sh", "-c", ssh+" ls-remote "+url)
	push := r.try("sh", "-c", ssh+" push "+url+" HEAD:other")
	assert.NotZero(r.t, push.code)
	assert.Contains(r.t, push.all(), "The key you are authenticating with has been marked as read only.")
}

// tellsOfAWrongAgeKey gives the stack a key that opens nothing, and then takes it back.
func (r *running) tellsOfAWrongAgeKey(repo *repository) {
	r.t.Helper()

	wrong, err := age.GenerateX25519Identity()
	require.NoError(r.t, err)
	before, err := os.ReadFile(r.file)
	require.NoError(r.t, err)
	r.must("pulumi", "config", "set", "--stack", r.stack, "--config-file", r.file, "--secret", "--path",
		"talos-proxmox:gitops.sops.ageKey", wrong.String())
	edit(r.t, r.file, "await: 4m", "await: 40s")

	failed := r.tryUp()
	assert.NotZero(r.t, failed.code, failed.all())
	assert.Contains(r.t, failed.all(), "Flux does not follow the repository after")
	assert.Contains(r.t, failed.all(), "Kustomization apps: ")
	assert.Contains(r.t, failed.all(), "decrypt")
	assert.NotContains(r.t, failed.all(), wrong.String())

	require.NoError(r.t, os.WriteFile(r.file, before, 0o600))
	r.again()
	r.eventually("change-me", "secret", "greeting", "greeting", "{.data.password}")
}

// tellsOfAnotherHostKey gives the stack a key that the git host does not have: nothing is trusted blindly.
func (r *running) tellsOfAnotherHostKey() {
	r.t.Helper()

	before, err := os.ReadFile(r.file)
	require.NoError(r.t, err)
	known := strings.TrimSpace(r.lab("known-hosts", gitHost).stdout)
	edit(r.t, r.file, known, gitHost+" ssh-ed25519 AAAAC3NzaC1lZDI1NTE5AAAAIBKbi6TI+As1UypzxqMHv/Exy7MuzNFJ5OZqVnvwn8bl", "await: 4m", "await: 30s")

	failed := r.tryUp()
	assert.NotZero(r.t, failed.code, failed.all())
	assert.Contains(r.t, failed.all(), "GitRepository flux-system: ")
	assert.Contains(r.t, failed.all(), "knownhosts: key mismatch")
	require.NoError(r.t, os.WriteFile(r.file, before, 0o600))
	r.again()
}

// field returns a part of an object, and of a secret what it stands for.
func (r *running) field(kind, namespace, name, path string) string {
	r.t.Helper()

	out, ok := r.tryField(kind, namespace, name, path)
	require.Truef(r.t, ok, "%s %s has no %s: %s", kind, name, path, out)

	return out
}

func (r *running) tryField(kind, namespace, name, path string) (string, bool) {
	r.t.Helper()

	args := []string{"kubectl", "--kubeconfig", r.kubeconfig, "get", kind, name, "-o", "jsonpath=" + path}
	if namespace != "" {
		args = append(args, "-n", namespace)
	}
	got := r.try(args...)
	if got.code != 0 || got.stdout == "" {
		return got.all(), false
	}
	if kind != "secret" {
		return got.stdout, true
	}
	plain, err := base64.StdEncoding.DecodeString(got.stdout)
	require.NoError(r.t, err)

	return string(plain), true
}

// eventually waits until a part of an object is as wanted.
func (r *running) eventually(want, kind, namespace, name, path string) {
	r.t.Helper()

	last := ""
	require.Eventuallyf(r.t, func() bool {
		last, _ = r.tryField(kind, namespace, name, path)

		return last == want
	}, 3*time.Minute, time.Second, "%s %s: %s is not %q", kind, name, path, want)
}

// turnOff takes GitOps out of the stack file and returns what it was.
func (r *running) turnOff() []byte {
	r.t.Helper()

	content, err := os.ReadFile(r.file)
	require.NoError(r.t, err)
	without := regexp.MustCompile(`(?m)^  talos-proxmox:gitops:\n(    .*\n)+`).ReplaceAll(content, nil)
	require.Less(r.t, len(without), len(content))
	require.NoError(r.t, os.WriteFile(r.file, without, 0o600))

	return content
}

// plainOutput returns an output of the stack that is no secret.
func (r *running) plainOutput(name string) string {
	r.t.Helper()

	out := r.must("pulumi", "stack", "output", "--stack", r.stack, "--json")
	var outputs map[string]any
	require.NoError(r.t, json.Unmarshal([]byte(out.stdout), &outputs))
	text, ok := outputs[name].(string)
	require.True(r.t, ok, out.stdout)

	return text
}

// tryUp brings the stack to what its file says, or fails.
func (r *running) tryUp() result {
	r.t.Helper()

	return r.try("pulumi", "up", "--stack", r.stack, "--config-file", r.file, "--yes", "--skip-preview", "--non-interactive")
}

// again brings the stack to what its file says.
func (r *running) again() {
	r.t.Helper()
	up := r.tryUp()
	require.Zero(r.t, up.code, up.all())
}

// preview says what an up would do.
func (r *running) preview() result {
	r.t.Helper()

	return r.must("pulumi", "preview", "--stack", r.stack, "--config-file", r.file, "--non-interactive")
}

// kill pulls the plug of every machine of the site.
func (r *running) kill() {
	r.t.Helper()

	for _, vm := range r.status().VMs {
		r.must("sh", "-c", `curl -sS --fail -X POST -H "Authorization: PVEAPIToken=$PROXMOX_VE_API_TOKEN" https://`+vm.Host+
			`.example.com:8006/api2/json/nodes/`+vm.Host+`/qemu/`+strconv.Itoa(vm.VMID)+`/status/stop`)
	}
	require.Eventually(r.t, func() bool {
		for _, vm := range r.status().VMs {
			if vm.Status == "running" {
				return false
			}
		}

		return true
	}, time.Minute, time.Second, "every machine is off")
}

// TestInlineFluxFollowsGit has Talos install Flux at day 0, with Flux's own controllers at work: the
// repository is followed, a push arrives, secrets are decrypted, and a destroy takes the key away.
func TestInlineFluxFollowsGit(t *testing.T) {
	heavy(t)
	t.Parallel()
	s := newSite(t)
	s.hasFluxControllers()
	repo := s.newRepository()
	file := s.gitOpsFile("git")
	edit(t, file, "    provider: flux\n", "    provider: flux\n    await: 4m\n", "method: chart", "method: inline")

	up := s.up("git", file)
	assert.Equal(t, "hello from talos-dev", up.field("configmap", "greeting", "greeting", "{.data.text}"))
	_, byHelm := up.tryField("secret", "flux-system", "sh.helm.release.v1.flux2.v1", "{.data.release}")
	assert.False(t, byHelm, "Talos has installed it")
	up.isSettled()

	repo.write("apps/talos-dev/kustomization.yaml",
		strings.ReplaceAll(repo.read("apps/talos-dev/kustomization.yaml"), "hello from talos-dev", "hello again"))
	repo.push("Greet again")
	up.eventually("hello again", "configmap", "greeting", "greeting", "{.data.text}")
	repo.addSecret(up.plainOutput("ageRecipient"))
	up.eventually("change-me", "secret", "greeting", "greeting", "{.data.password}")

	edit(t, file, "method: inline", "method: chart")
	refused := s.try("pulumi", "preview", "--stack", "git", "--config-file", file, "--non-interactive")
	assert.NotZero(t, refused.code)
	assert.Contains(t, refused.all(), "Talos installed Flux at day 0 and Helm does not take over what it has not installed")
	edit(t, file, "method: chart", "method: inline")
	repo.untouched()
	up.destroy()
	assert.Empty(t, s.deployKeys())
}
