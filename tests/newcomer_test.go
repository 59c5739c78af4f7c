// SPDX-License-Identifier: Apache-2.0
// Copyright the talos-proxmox authors.

package tests_test

import (
	"encoding/json"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"go.yaml.in/yaml/v3"
)

// TestNewcomersFirstCommands runs what `make up`, `make preview` and `make destroy` run: Pulumi builds
// the program itself, in the repository as it was cloned, and leaves nothing behind in it.
func TestNewcomersFirstCommands(t *testing.T) {
	s := newcomersSite(t)
	before := s.inRepository()

	dev := s.up("dev", filepath.Join(s.root, "Pulumi.dev.yaml"))
	dev.hasNodes("ctrl-00", "ctrl-01", "ctrl-02")
	s.must("pulumi", "preview", "--stack", "dev", "--expect-no-changes", "--non-interactive")
	s.must("pulumi", "destroy", "--stack", "dev", "--yes", "--skip-preview", "--non-interactive")
	assert.Empty(t, s.status().VMs)
	s.create("prod")
	s.must("pulumi", "preview", "--stack", "prod", "--non-interactive")
	s.create("homelab")
	s.must("pulumi", "preview", "--stack", "homelab", "--config-file", filepath.Join("examples", "homelab", "Pulumi.homelab.yaml"), "--non-interactive")
	assert.Equal(t, before, s.inRepository(), "the lab leaves the repository's files as they were")
}

// TestShippedStackFilesAreNobodysOwn holds that a copy of a stack file asks for no passphrase that its new
// owner does not have, and finds its schema wherever it lies.
func TestShippedStackFilesAreNobodysOwn(t *testing.T) {
	t.Parallel()

	cmd := exec.CommandContext(t.Context(), "git", "ls-files", "*Pulumi.*.yaml")
	cmd.Dir = ".."
	files, err := cmd.Output()
	require.NoError(t, err)
	for _, name := range strings.Fields(string(files)) {
		content, err := os.ReadFile(filepath.Join("..", name))
		require.NoError(t, err)
		var file map[string]any
		require.NoError(t, yaml.Unmarshal(content, &file), name)
		assert.NotContains(t, file, "encryptionsalt", name)
		assert.NotContains(t, string(content), "$schema=../", name)
	}
}

// inRepository returns what git finds changed in the repository.
func (s *site) inRepository() string {
	s.t.Helper()

	cmd := exec.CommandContext(s.t.Context(), "git", "status", "--porcelain")
	cmd.Dir = s.root
	out, err := cmd.CombinedOutput()
	require.NoError(s.t, err, string(out))

	return string(out)
}

// TestDevAndProdInOneSite goes the newcomer's way on: both stacks come up from nothing in one site, are
// left alone by a second preview and a refresh, do not disturb each other, and go again.
func TestDevAndProdInOneSite(t *testing.T) {
	t.Parallel()
	s := newSite(t)

	dev := s.up("dev", s.stackFile("Pulumi.dev.yaml"))
	dev.hasNodes("ctrl-00", "ctrl-01", "ctrl-02")
	dev.followsGit()
	dev.talosAnswers()
	dev.isSettled()
	dev.keepsSecrets()

	prod := s.up("prod", s.stackFile("Pulumi.prod.yaml"))
	prod.hasNodes("prod-k8s-cp-01", "prod-k8s-cp-02", "prod-k8s-cp-03",
		"prod-k8s-worker-01", "prod-k8s-worker-02", "prod-k8s-worker-03")
	prod.followsGit()
	prod.isSettled()
	prod.keepsSecrets()
	dev.isSettled()

	dev.destroy()
	prod.isSettled()
	prod.destroy()

	st := s.status()
	assert.Empty(t, st.VMs, "destroy leaves the site empty")
	assert.Empty(t, st.Nodes)
	assert.Empty(t, st.Clusters)

	again := s.up("dev", dev.file)
	again.hasNodes("ctrl-00", "ctrl-01", "ctrl-02")
	again.isSettled()
}

// running holds a stack that is up.
type running struct {
	*site
	stack, file string
	kubeconfig  string // path
	talosconfig string // path
}

// up makes the stack where there is none yet, brings it up and fetches its credentials.
func (s *site) up(stack, file string) *running {
	s.t.Helper()

	if r := s.try("pulumi", "stack", "ls", "--json"); !strings.Contains(r.stdout, `"name": "`+stack+`"`) {
		s.create(stack)
	}
	r := s.must("pulumi", "up", "--stack", stack, "--config-file", file, "--yes", "--skip-preview", "--non-interactive")
	assert.NotContains(s.t, r.all(), "warning:", "an up warns of nothing")

	up := &running{site: s, stack: stack, file: file}
	up.kubeconfig = up.output("kubeconfig")
	up.talosconfig = up.output("talosconfig")

	return up
}

// output writes a secret output to a file of the test and returns its path.
func (r *running) output(name string) string {
	r.t.Helper()

	plain := r.must("pulumi", "stack", "output", "--stack", r.stack, "--json")
	var outputs map[string]any
	require.NoError(r.t, json.Unmarshal([]byte(plain.stdout), &outputs))
	assert.Equalf(r.t, "[secret]", outputs[name], "%s is a secret output", name)

	path := filepath.Join(r.t.TempDir(), name)
	shown := r.must("pulumi", "stack", "output", name, "--show-secrets", "--stack", r.stack)
	require.NoError(r.t, os.WriteFile(path, []byte(shown.stdout), 0o600))

	return path
}

// kubectl asks the cluster and decodes the JSON answer.
func (r *running) kubectl(into any, args ...string) {
	r.t.Helper()

	out := r.must(append([]string{"kubectl", "--kubeconfig", r.kubeconfig, "-o", "json"}, args...)...)
	require.NoError(r.t, json.Unmarshal([]byte(out.stdout), into), out.stdout)
}

type objects struct {
	Items []object `json:"items"`
}

// object decodes what tests look at of a Kubernetes object.
type object struct {
	Metadata struct {
		Name      string `json:"name"`
		Namespace string `json:"namespace"`
	} `json:"metadata"`
	Spec   map[string]any `json:"spec"`
	Status struct {
		Conditions []struct {
			Type   string `json:"type"`
			Status string `json:"status"`
		} `json:"conditions"`
	} `json:"status"`
}

// hasNodes asserts exactly these nodes, all ready.
func (r *running) hasNodes(names ...string) {
	r.t.Helper()

	var nodes objects
	r.kubectl(&nodes, "get", "nodes")

	var found []string
	for _, n := range nodes.Items {
		found = append(found, n.Metadata.Name)
		ready := ""
		for _, c := range n.Status.Conditions {
			if c.Type == "Ready" {
				ready = c.Status
			}
		}
		assert.Equalf(r.t, "True", ready, "node %s is ready", n.Metadata.Name)
	}
	assert.ElementsMatch(r.t, names, found)
}

// followsGit asserts that Flux has a repository and a path to reconcile, as the stack file says.
func (r *running) followsGit() {
	r.t.Helper()

	git := r.fileKey("talos-proxmox:gitops", "git")

	var repositories, kustomizations objects
	r.kubectl(&repositories, "get", "gitrepositories.source.toolkit.fluxcd.io", "-A")
	r.kubectl(&kustomizations, "get", "kustomizations.kustomize.toolkit.fluxcd.io", "-A")
	require.Len(r.t, repositories.Items, 1)
	require.Len(r.t, kustomizations.Items, 1)
	assert.Equal(r.t, git["url"], repositories.Items[0].Spec["url"])
	assert.Equal(r.t, "flux-system", repositories.Items[0].Metadata.Namespace)
	assert.Equal(r.t, git["path"], strings.TrimPrefix(kustomizations.Items[0].Spec["path"].(string), "./"))
}

// fileKey reads a value of the stack file.
func (r *running) fileKey(key, sub string) map[string]any {
	r.t.Helper()

	content, err := os.ReadFile(r.file)
	require.NoError(r.t, err)
	var file struct {
		Config map[string]map[string]any `yaml:"config"`
	}
	require.NoError(r.t, yaml.Unmarshal(content, &file))

	value, ok := file.Config[key][sub].(map[string]any)
	require.Truef(r.t, ok, "%s has no %s.%s", r.file, key, sub)

	return value
}

// isSettled asserts that neither preview nor refresh finds anything to do, and that a preview asks
// nobody: its proxy leads nowhere.
func (r *running) isSettled() {
	r.t.Helper()

	r.must("env", "HTTPS_PROXY=http://127.0.0.1:9", "HTTP_PROXY=http://127.0.0.1:9",
		"pulumi", "preview", "--stack", r.stack, "--config-file", r.file, "--expect-no-changes", "--non-interactive")
	r.must("pulumi", "refresh", "--stack", r.stack, "--config-file", r.file, "--expect-no-changes", "--yes",
		"--skip-preview", "--non-interactive")
}

// keepsSecrets asserts that no private value stands in the state, or in what a preview prints.
func (r *running) keepsSecrets() {
	r.t.Helper()

	private := r.privateValues()
	require.GreaterOrEqual(r.t, len(private), 2, "the stack has credentials to look for")

	places := map[string]string{
		"preview": r.must("pulumi", "preview", "--stack", r.stack, "--config-file", r.file, "--diff", "--non-interactive").all(),
		"export":  r.must("pulumi", "stack", "export", "--stack", r.stack).stdout,
	}
	require.NoError(r.t, filepath.WalkDir(r.dir, func(path string, entry os.DirEntry, err error) error {
		if err != nil || entry.IsDir() {
			return err
		}
		// The state, its backups and history, and every log; the guests' own disks hold secrets, as in life.
		if strings.Contains(path, "pulumi-state") || strings.HasSuffix(path, ".log") || strings.HasSuffix(path, "trace.jsonl") {
			content, err := os.ReadFile(path)
			if err != nil {
				return err
			}
			places[path] = string(content)
		}

		return nil
	}))
	require.Greater(r.t, len(places), 3)

	for place, content := range places {
		for what, value := range private {
			assert.Falsef(r.t, strings.Contains(content, value), "%s holds %s in plain text", place, what)
		}
	}
}

// privateValues returns the private keys of the stack's credentials.
func (r *running) privateValues() map[string]string {
	r.t.Helper()

	private := map[string]string{}

	var kube struct {
		Users []struct {
			User struct {
				Key string `yaml:"client-key-data"`
			} `yaml:"user"`
		} `yaml:"users"`
	}
	content, err := os.ReadFile(r.kubeconfig)
	require.NoError(r.t, err)
	require.NoError(r.t, yaml.Unmarshal(content, &kube))
	for _, u := range kube.Users {
		private["the kubeconfig's key"] = u.User.Key
	}

	var talos struct {
		Contexts map[string]struct {
			Key string `yaml:"key"`
		} `yaml:"contexts"`
	}
	content, err = os.ReadFile(r.talosconfig)
	require.NoError(r.t, err)
	require.NoError(r.t, yaml.Unmarshal(content, &talos))
	for _, c := range talos.Contexts {
		private["the talosconfig's key"] = c.Key
	}

	shown := r.must("pulumi", "stack", "export", "--show-secrets", "--stack", r.stack).stdout
	for _, line := range strings.Split(shown, `"`) {
		if strings.HasPrefix(line, "-----BEGIN OPENSSH PRIVATE KEY-----") {
			private["the deploy key"] = strings.Split(line, `\n`)[2]
		}
	}
	for what, value := range private {
		require.NotEmptyf(r.t, value, "%s was found", what)
	}

	return private
}

// destroy removes the stack's resources.
func (r *running) destroy() {
	r.t.Helper()
	r.must("pulumi", "destroy", "--stack", r.stack, "--config-file", r.file, "--yes", "--skip-preview", "--non-interactive")
}
