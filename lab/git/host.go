// SPDX-License-Identifier: Apache-2.0
// Copyright the talos-proxmox authors.

package git

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"os/exec"
	"path"
	"path/filepath"
	"regexp"
	"strings"
	"sync"

	"golang.org/x/crypto/ssh"
)

// branch is the one that new repositories have.
const branch = "main"

// Host serves the git repositories of a site.
type Host struct {
	dir    string
	token  string
	signer ssh.Signer
	log    *slog.Logger

	mu sync.Mutex // one writer of keys, and of repositories that are being made
}

// Open opens the git host that keeps its repositories and its SSH host key in dir; both are made where
// they are missing. The token opens what is not public.
func Open(dir, token string, log *slog.Logger) (*Host, error) {
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return nil, fmt.Errorf("making the git host's directory: %w", err)
	}
	signer, err := hostKey(filepath.Join(dir, "ssh_host_ed25519_key"))
	if err != nil {
		return nil, err
	}

	return &Host{dir: dir, token: token, signer: signer, log: log}, nil
}

// ErrNoRepository is returned for a repository that is not there.
var ErrNoRepository = errors.New("Repository not found") // as git hosts say it

var repositoryForm = regexp.MustCompile(`^[A-Za-z0-9._~-]+(/[A-Za-z0-9._~-]+)+$`)

// locate returns where the repository at a URL's path is kept: "/lab/demo" and "lab/demo.git" are the same.
func (h *Host) locate(host, name string) (string, error) {
	name = strings.TrimSuffix(strings.Trim(path.Clean("/"+name), "/"), ".git")
	if !repositoryForm.MatchString(name) || strings.Contains(name, "..") {
		return "", fmt.Errorf("%q: %w", name, ErrNoRepository)
	}

	return filepath.Join(h.dir, "repositories", canonical(host), filepath.FromSlash(name)+".git"), nil
}

// canonical returns the host that owns the repositories: GitHub's API has a name of its own.
func canonical(host string) string { return strings.TrimPrefix(strings.ToLower(host), "api.") }

// find returns where an existing repository is kept.
func (h *Host) find(host, name string) (string, error) {
	dir, err := h.locate(host, name)
	if err != nil {
		return "", err
	}
	if _, err := os.Stat(filepath.Join(dir, "HEAD")); err != nil {
		return "", ErrNoRepository
	}

	return dir, nil
}

// ensure returns find, and makes the repository where it is missing.
func (h *Host) ensure(ctx context.Context, host, name string) (string, error) {
	h.mu.Lock()
	defer h.mu.Unlock()

	if dir, err := h.find(host, name); err == nil {
		return dir, nil
	}
	dir, err := h.locate(host, name)
	if err != nil {
		return "", err
	}
	cmd := h.git(ctx, "", "init", "--quiet", "--bare", "--initial-branch="+branch, dir)
	if out, err := cmd.CombinedOutput(); err != nil {
		return "", fmt.Errorf("making repository %s: %w: %s", name, err, out)
	}
	h.log.Info("the git host has a new repository", "host", host, "repository", name)

	return dir, nil
}

// private reports whether only the token and deploy keys open a repository.
func private(dir string) bool {
	_, err := os.Stat(filepath.Join(dir, privateFile))

	return err == nil
}

// privateFile marks a private repository.
const privateFile = "lab-private"

// git returns a command of git that no configuration of the user's reaches.
func (h *Host) git(ctx context.Context, protocol string, args ...string) *exec.Cmd {
	cmd := exec.CommandContext(ctx, "git", args...) // G204: commands of this package alone
	cmd.Dir = h.dir
	cmd.Env = append(environment(h.dir), "GIT_PROTOCOL="+protocol)

	return cmd
}

// environment returns what git needs, for repositories that may belong to another user.
func environment(home string) []string {
	return []string{
		"PATH=" + os.Getenv("PATH"), "HOME=" + home, "GIT_CONFIG_NOSYSTEM=1", "GIT_CONFIG_COUNT=1",
		"GIT_CONFIG_KEY_0=safe.directory", "GIT_CONFIG_VALUE_0=*",
	}
}
