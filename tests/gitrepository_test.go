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

	"github.com/stretchr/testify/require"
)

const (
	gitHost = "gitea.example.com"
	gitPath = "/lab/fluxcd-demo"
	gitURL  = "https://" + gitHost + gitPath + ".git"
)

// repository holds a clone of the site's git repository, in which a user works.
type repository struct {
	*site

	dir string
}

// newRepository pushes the example repository of the docs to the site's git host.
func (s *site) newRepository() *repository {
	s.t.Helper()

	r := &repository{site: s, dir: filepath.Join(s.t.TempDir(), "repository")}
	require.NoError(s.t, os.CopyFS(r.dir, os.DirFS(filepath.Join(s.root, "examples", "gitops-repo"))))
	r.must("git", "init", "--quiet", "--initial-branch", "main", r.dir)
	r.push("Start")

	return r
}

// write changes a file.
func (r *repository) write(name, content string) {
	r.t.Helper()
	require.NoError(r.t, os.WriteFile(filepath.Join(r.dir, name), []byte(content), 0o600))
}

// read returns a file's content.
func (r *repository) read(name string) string {
	r.t.Helper()
	content, err := os.ReadFile(filepath.Join(r.dir, name))
	require.NoError(r.t, err)

	return string(content)
}

// push commits everything and pushes it, as somebody who may write.
func (r *repository) push(message string) {
	r.t.Helper()
	r.must("git", "-C", r.dir, "add", "--all")
	r.must("git", "-C", r.dir, "-c", "user.name=somebody", "-c", "user.email=somebody@example.com", "commit", "--quiet", "-m", message)
	r.must("git", "-C", r.dir, "push", "--quiet", gitURL, "HEAD:main")
}

// untouched asserts that nobody has written to the repository but this clone.
func (r *repository) untouched() {
	r.t.Helper()
	head := strings.TrimSpace(r.must("git", "-C", r.dir, "rev-parse", "HEAD").stdout)
	remote := r.must("git", "ls-remote", gitURL).stdout
	require.Equal(r.t, head+"\tHEAD\n"+head+"\trefs/heads/main\n", remote, "nobody else has written to git")
}

// deployKey decodes a key as the git host's API lists it.
type deployKey struct {
	Title    string `json:"title"`
	Key      string `json:"key"`
	ReadOnly bool   `json:"read_only"`
}

// deployKeys returns those of the repository.
func (s *site) deployKeys() []deployKey {
	s.t.Helper()

	out := s.must("sh", "-c", `curl -sS --fail -H "Authorization: token $LAB_GIT_TOKEN" https://`+gitHost+"/api/v1/repos"+gitPath+"/keys")
	var keys []deployKey
	require.NoError(s.t, json.Unmarshal([]byte(out.stdout), &keys), out.stdout)

	return keys
}

// gitOpsFile returns the stack file that follows the repository, with the keys of the site's git host.
func (s *site) gitOpsFile(stack string) string {
	s.t.Helper()

	known := strings.TrimSpace(s.lab("known-hosts", gitHost).stdout)
	require.NotEmpty(s.t, known)
	content, err := os.ReadFile(filepath.Join(s.root, "tests", "testdata", "stacks", "gitops.yaml"))
	require.NoError(s.t, err)
	file := filepath.Join(s.t.TempDir(), "gitops.yaml")
	require.NoError(s.t, os.WriteFile(file, []byte(strings.ReplaceAll(string(content), "KNOWN_HOSTS", known)), 0o600))
	s.create(stack)
	s.must("sh", "-c", "pulumi config set --stack "+stack+" --config-file "+file+
		` --secret --path talos-proxmox:gitops.git.auth.register.token "$LAB_GIT_TOKEN"`)

	return file
}

// edit changes a stack file in place.
func edit(t *testing.T, file string, edits ...string) {
	t.Helper()

	content, err := os.ReadFile(file)
	require.NoError(t, err)
	text := string(content)
	for i := 0; i+1 < len(edits); i += 2 {
		require.Contains(t, text, edits[i])
		text = strings.ReplaceAll(text, edits[i], edits[i+1])
	}
	require.NoError(t, os.WriteFile(file, []byte(text), 0o600))
}

// encrypted returns a file for the holder of an age key, as the sops command makes it.
func (s *site) encrypted(plain, recipient string) string {
	s.t.Helper()

	cmd := exec.CommandContext(s.t.Context(), filepath.Join(s.root, "bin", "flux-controllers", "encrypt"), recipient)
	cmd.Stdin = strings.NewReader(plain)
	out, err := cmd.Output()
	require.NoError(s.t, err)
	require.NotContains(s.t, string(out), "password: change-me")

	return string(out)
}
