// SPDX-License-Identifier: Apache-2.0
// Copyright the talos-proxmox authors.

package git_test

import (
	"bytes"
	"crypto/ed25519"
	"crypto/rand"
	"encoding/base64"
	"encoding/json"
	"io"
	"log/slog"
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"golang.org/x/crypto/ssh"

	"github.com/talos-proxmox/talos-proxmox/lab/git"
)

const token = "the-token"

// server runs a git host; every URL of it is of one host, 127.0.0.1.
type server struct {
	t    *testing.T
	host *git.Host
	url  string
	dir  string
}

func start(t *testing.T) server {
	t.Helper()

	dir := t.TempDir()
	host, err := git.Open(dir, token, slog.New(slog.DiscardHandler))
	require.NoError(t, err)
	web := httptest.NewServer(host)
	t.Cleanup(web.Close)

	return server{t, host, web.URL, dir}
}

// git runs git as the user with a token, or as nobody.
func (s server) git(dir, token string, args ...string) (string, error) {
	s.t.Helper()

	cmd := exec.CommandContext(s.t.Context(), "git", args...)
	cmd.Dir = dir
	cmd.Env = append(os.Environ(), "GIT_CONFIG_NOSYSTEM=1", "HOME="+s.t.TempDir(), "GIT_TERMINAL_PROMPT=0",
		"GIT_AUTHOR_NAME=a", "GIT_AUTHOR_EMAIL=a@example.com", "GIT_COMMITTER_NAME=a", "GIT_COMMITTER_EMAIL=a@example.com",
		"HTTP_PROXY=", "http_proxy=")
	if token != "" {
		cmd.Env = append(cmd.Env, "GIT_CONFIG_COUNT=1", "GIT_CONFIG_KEY_0=http.extraHeader",
			"GIT_CONFIG_VALUE_0=Authorization: Basic "+base64.StdEncoding.EncodeToString([]byte("lab:"+token)))
	}
	out, err := cmd.CombinedOutput()

	return string(out), err
}

// pushed makes a repository with one commit.
func (s server) pushed(name string) {
	s.t.Helper()

	work := s.t.TempDir()
	for _, args := range [][]string{
		{"init", "-q", "-b", "main"}, {"commit", "-q", "--allow-empty", "-m", "first"}, {"push", "-q", s.url + name, "main"},
	} {
		out, err := s.git(work, token, args...)
		require.NoError(s.t, err, out)
	}
}

func TestReadingIsForAllAndWritingForTheToken(t *testing.T) {
	t.Parallel()

	s := start(t)
	s.pushed("/lab/demo.git")

	out, err := s.git(t.TempDir(), "", "clone", "-q", s.url+"/lab/demo")
	require.NoError(t, err, out)

	work := filepath.Join(t.TempDir(), "work")
	_, err = s.git(t.TempDir(), "", "clone", "-q", s.url+"/lab/demo.git", work)
	require.NoError(t, err)
	for _, wrong := range []string{"", "another"} {
		out, err := s.git(work, wrong, "push", s.url+"/lab/demo.git", "main:other")
		require.Error(t, err)
		assert.Contains(t, out, "could not read Username", "git is asked for credentials, and has none to give")
	}

	out, err = s.git(t.TempDir(), token, "ls-remote", s.url+"/lab/none.git")
	require.Error(t, err)
	assert.Contains(t, out, "not found")
}

func TestAPrivateRepositoryNeedsTheToken(t *testing.T) {
	t.Parallel()

	s := start(t)
	s.pushed("/lab/secret.git")
	require.NoError(t, os.WriteFile(
		filepath.Join(s.dir, "repositories", "127.0.0.1", "lab", "secret.git", "lab-private"), nil, 0o600))

	_, err := s.git(t.TempDir(), "", "ls-remote", s.url+"/lab/secret.git")
	require.Error(t, err)
	out, err := s.git(t.TempDir(), token, "ls-remote", s.url+"/lab/secret.git")
	require.NoError(t, err)
	assert.Contains(t, out, "refs/heads/main")
}

// call asks the API.
func (s server) call(method, path, token, body string) (int, map[string]any) {
	s.t.Helper()

	req, err := http.NewRequestWithContext(s.t.Context(), method, s.url+path, strings.NewReader(body))
	require.NoError(s.t, err)
	req.Header.Set("Authorization", "token "+token)
	res, err := http.DefaultClient.Do(req)
	require.NoError(s.t, err)
	defer func() { _ = res.Body.Close() }()
	var answer any
	_ = json.NewDecoder(res.Body).Decode(&answer) // some answers have no body
	object, _ := answer.(map[string]any)

	return res.StatusCode, object
}

func newKey(t *testing.T) (ssh.Signer, string) {
	t.Helper()

	_, private, err := ed25519.GenerateKey(rand.Reader)
	require.NoError(t, err)
	signer, err := ssh.NewSignerFromKey(private)
	require.NoError(t, err)

	return signer, strings.TrimSpace(string(ssh.MarshalAuthorizedKey(signer.PublicKey())))
}

func TestEveryAPIRegistersAndForgetsAKey(t *testing.T) {
	t.Parallel()

	for name, c := range map[string]struct {
		path, readOnly string
		want           map[string]any
		refused        int
	}{
		"Gitea":             {"/api/v1/repos/lab/demo/keys", `"read_only": true`, map[string]any{"read_only": true}, 422},
		"GitHub":            {"/repos/lab/demo/keys", `"read_only": true`, map[string]any{"read_only": true}, 422},
		"GitHub Enterprise": {"/api/v3/repos/lab/demo/keys", `"read_only": true`, map[string]any{"read_only": true}, 422},
		"GitLab":            {"/api/v4/projects/lab%2Fdemo/deploy_keys", `"can_push": false`, map[string]any{"can_push": false}, 400},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()

			s := start(t)
			s.pushed("/lab/demo.git")
			_, key := newKey(t)
			body := `{"title": "a key", "key": "` + key + `", ` + c.readOnly + `}`

			code, _ := s.call(http.MethodPost, c.path, "another", body)
			assert.Equal(t, http.StatusUnauthorized, code)
			code, made := s.call(http.MethodPost, c.path, token, body)
			require.Equal(t, http.StatusCreated, code, made)
			for field, want := range c.want {
				assert.Equal(t, want, made[field], field)
			}
			code, answer := s.call(http.MethodPost, c.path, token, body)
			assert.Equal(t, c.refused, code, answer)

			_, another := newKey(t)
			code, answer = s.call(http.MethodPost, c.path, token, strings.Replace(body, key, another, 1))
			if name == "Gitea" {
				assert.Equal(t, c.refused, code)
				assert.Equal(t, "Key title has been used", answer["message"])
			} else {
				assert.Equal(t, http.StatusCreated, code, answer)
			}

			one := c.path + "/1"
			code, _ = s.call(http.MethodGet, one, token, "")
			assert.Equal(t, http.StatusOK, code)
			code, _ = s.call(http.MethodDelete, one, token, "")
			assert.Equal(t, http.StatusNoContent, code)
			code, _ = s.call(http.MethodGet, one, token, "")
			assert.Equal(t, http.StatusNotFound, code)
		})
	}
}

// over runs a command by SSH with a key.
func (s server) over(key ssh.Signer, command string) (stdout, stderr string, err error) {
	s.t.Helper()

	l, err := net.Listen("tcp", "127.0.0.1:0")
	require.NoError(s.t, err)
	s.t.Cleanup(func() { _ = l.Close() })
	go func() {
		if conn, err := l.Accept(); err == nil {
			s.host.ServeSSH(s.t.Context(), conn, "127.0.0.1")
		}
	}()
	known, _, _, _, err := ssh.ParseAuthorizedKey([]byte(s.host.HostKey()))
	require.NoError(s.t, err)
	client, err := ssh.Dial("tcp", l.Addr().String(), &ssh.ClientConfig{
		User: "git", Auth: []ssh.AuthMethod{ssh.PublicKeys(key)}, HostKeyCallback: ssh.FixedHostKey(known),
	})
	if err != nil {
		return "", "", err
	}
	defer func() { _ = client.Close() }()
	session, err := client.NewSession()
	require.NoError(s.t, err)
	var out, problems bytes.Buffer
	session.Stdout, session.Stderr, session.Stdin = &out, &problems, strings.NewReader("0000")
	err = session.Run(command)

	return out.String(), problems.String(), err
}

func TestADeployKeyReadsItsRepositoryAndWritesNone(t *testing.T) {
	t.Parallel()

	s := start(t)
	s.pushed("/lab/demo.git")
	s.pushed("/lab/other.git")
	key, public := newKey(t)

	_, _, err := s.over(key, "git-upload-pack '/lab/demo.git'")
	require.ErrorContains(t, err, "unable to authenticate")

	code, _ := s.call(http.MethodPost, "/api/v1/repos/lab/demo/keys", token, `{"key": "`+public+`", "read_only": true}`)
	require.Equal(t, http.StatusCreated, code)
	out, problems, err := s.over(key, "git-upload-pack '/lab/demo.git'")
	require.NoError(t, err, problems)
	assert.Contains(t, out, "refs/heads/main")

	_, problems, err = s.over(key, "git-receive-pack '/lab/demo.git'")
	require.Error(t, err)
	assert.Equal(t, "ERROR: The key you are authenticating with has been marked as read only.\n", problems)
	_, problems, err = s.over(key, "git-upload-pack '/lab/other.git'")
	require.Error(t, err)
	assert.Equal(t, "ERROR: Repository not found.\n", problems)
	_, problems, err = s.over(key, "sh -c id")
	require.Error(t, err)
	assert.Contains(t, problems, "runs nothing but git")
}

func TestPathsStayInTheHostsDirectory(t *testing.T) {
	t.Parallel()

	s := start(t)
	for _, path := range []string{"/../../etc.git", "/lab/..%2f..%2fetc.git", "/x.git"} {
		req := httptest.NewRequest(http.MethodGet, "/", nil)
		req.URL.Path, req.URL.RawQuery = path+"/info/refs", "service=git-receive-pack"
		req.SetBasicAuth("lab", token)
		w := httptest.NewRecorder()
		s.host.ServeHTTP(w, req)
		body, _ := io.ReadAll(w.Body)
		assert.Equal(t, http.StatusNotFound, w.Code, "%s: %s", path, body)
	}
}

func TestTheHostKeyStays(t *testing.T) {
	t.Parallel()

	s := start(t)
	again, err := git.Open(s.dir, token, slog.New(slog.DiscardHandler))
	require.NoError(t, err)
	assert.Equal(t, s.host.HostKey(), again.HostKey())
	info, err := os.Stat(filepath.Join(s.dir, "ssh_host_ed25519_key"))
	require.NoError(t, err)
	assert.Equal(t, os.FileMode(0o600), info.Mode().Perm())
}
