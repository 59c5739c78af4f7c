// SPDX-License-Identifier: Apache-2.0
// Copyright the talos-proxmox authors.

package git

import (
	"context"
	"crypto/ed25519"
	"crypto/rand"
	"encoding/pem"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"net"
	"os"
	"os/exec"
	"regexp"
	"strings"

	"golang.org/x/crypto/ssh"
)

// hostKey reads the host's key, or makes it once. The file's mode is 0600.
func hostKey(path string) (ssh.Signer, error) {
	text, err := os.ReadFile(path) // G304: the site's own directory
	if errors.Is(err, fs.ErrNotExist) {
		text, err = makeHostKey(path)
	}
	if err != nil {
		return nil, fmt.Errorf("reading the git host's key: %w", err)
	}
	signer, err := ssh.ParsePrivateKey(text)
	if err != nil {
		return nil, fmt.Errorf("reading the git host's key: %w", err)
	}

	return signer, nil
}

func makeHostKey(path string) ([]byte, error) {
	_, key, err := ed25519.GenerateKey(rand.Reader)
	if err != nil {
		return nil, err
	}
	block, err := ssh.MarshalPrivateKey(key, "lab")
	if err != nil {
		return nil, err
	}
	text := pem.EncodeToMemory(block)

	return text, os.WriteFile(path, text, 0o600)
}

// HostKey returns the public half of the SSH host key, as known_hosts has it after a host's name.
func (h *Host) HostKey() string {
	return strings.TrimSpace(string(ssh.MarshalAuthorizedKey(h.signer.PublicKey())))
}

// keyExtension is the extension that carries the key a connection was opened with.
const keyExtension = "lab-key"

// ServeSSH serves one connection to a host's SSH port and closes it.
func (h *Host) ServeSSH(ctx context.Context, conn net.Conn, host string) {
	config := &ssh.ServerConfig{
		PublicKeyCallback: func(meta ssh.ConnMetadata, key ssh.PublicKey) (*ssh.Permissions, error) {
			if meta.User() != "git" || !h.isKnown(host, key.Marshal()) {
				return nil, errors.New("no repository has this key")
			}

			return &ssh.Permissions{Extensions: map[string]string{keyExtension: string(key.Marshal())}}, nil
		},
	}
	config.AddHostKey(h.signer)
	server, channels, requests, err := ssh.NewServerConn(conn, config)
	if err != nil {
		h.log.Debug("an SSH connection to the git host", "host", host, "error", err)
		_ = conn.Close() // closed already when the client went

		return
	}
	defer func() { _ = server.Close() }() // everything was sent

	stop := context.AfterFunc(ctx, func() { _ = server.Close() })
	defer stop()
	go ssh.DiscardRequests(requests)
	key := []byte(server.Permissions.Extensions[keyExtension])
	for offered := range channels {
		if offered.ChannelType() != "session" {
			_ = offered.Reject(ssh.UnknownChannelType, "only sessions")

			continue
		}
		channel, requests, err := offered.Accept()
		if err != nil {
			return
		}
		go h.session(ctx, channel, requests, host, key)
	}
}

// session runs the one command that a session asks for.
func (h *Host) session(ctx context.Context, channel ssh.Channel, requests <-chan *ssh.Request, host string, key []byte) {
	defer func() { _ = channel.Close() }() // everything was sent

	protocol := ""
	for r := range requests {
		switch r.Type {
		case "env":
			var env struct{ Name, Value string }
			if ssh.Unmarshal(r.Payload, &env) == nil && env.Name == "GIT_PROTOCOL" {
				protocol = env.Value
			}
			_ = r.Reply(true, nil)
		case "exec":
			var run struct{ Command string }
			if ssh.Unmarshal(r.Payload, &run) != nil {
				_ = r.Reply(false, nil)

				return
			}
			_ = r.Reply(true, nil)
			status := h.run(ctx, channel, host, run.Command, protocol, key)
			_, _ = channel.SendRequest("exit-status", false, ssh.Marshal(struct{ Status uint32 }{status}))

			return
		default:
			_ = r.Reply(false, nil)
		}
	}
}

var commandForm = regexp.MustCompile(`^git[- ](upload-pack|receive-pack) '?([^']+)'?$`)

// run runs a command of git with the rights of a deploy key, and returns its exit status.
func (h *Host) run(ctx context.Context, channel ssh.Channel, host, command, protocol string, key []byte) uint32 {
	m := commandForm.FindStringSubmatch(command)
	if m == nil {
		return refuse(channel, "the lab's git host runs nothing but git")
	}
	dir, err := h.find(host, m[2])
	if err != nil {
		return refuse(channel, ErrNoRepository.Error()+".")
	}
	deploy, ok := keyAt(dir, key)
	if !ok {
		return refuse(channel, ErrNoRepository.Error()+".")
	}
	if m[1] == "receive-pack" && deploy.ReadOnly {
		return refuse(channel, "The key you are authenticating with has been marked as read only.")
	}

	cmd := h.git(ctx, protocol, m[1], dir)
	cmd.Stdout, cmd.Stderr = channel, channel.Stderr()
	input, err := cmd.StdinPipe()
	if err != nil {
		return refuse(channel, err.Error())
	}
	if err := cmd.Start(); err != nil {
		return refuse(channel, err.Error())
	}
	go func() {
		_, _ = io.Copy(input, channel) // ends with the client or the command
		_ = input.Close()
	}()
	err = cmd.Wait()
	var exit *exec.ExitError
	if errors.As(err, &exit) {
		return uint32(max(exit.ExitCode(), 1)) // G115: small and positive
	}
	if err != nil {
		return 1
	}

	return 0
}

func refuse(channel ssh.Channel, why string) uint32 {
	_, _ = fmt.Fprintf(channel.Stderr(), "ERROR: %s\n", why) // the client is gone when this fails

	return 1
}
