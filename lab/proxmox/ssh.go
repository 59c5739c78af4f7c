// SPDX-License-Identifier: Apache-2.0
// Copyright the talos-proxmox authors.

package proxmox

import (
	"context"
	"crypto/ed25519"
	"crypto/sha256"
	"errors"
	"fmt"
	"net"
	"net/netip"
	"strings"

	"golang.org/x/crypto/ssh"

	"github.com/talos-proxmox/talos-proxmox/lab/site"
)

// SSHPort is where hosts answer SSH.
const SSHPort = 22

// ServeSSH serves one connection to the SSH port of the host with an address, and closes it. Whom a host lets in, the
// lab cannot know: it takes every key, and every password but none.
//
// The host's key follows from its address, so that what a client writes down as known stays true in every lab.
func ServeSSH(ctx context.Context, s *site.Site, conn net.Conn, addr netip.Addr) {
	cluster, host, ok := s.HostAt(addr)
	seed := sha256.Sum256([]byte("talos-proxmox lab " + addr.String()))
	key, err := ssh.NewSignerFromKey(ed25519.NewKeyFromSeed(seed[:]))
	if !ok || err != nil || !cluster.HostUp(host) {
		_ = conn.Close() // there is nobody

		return
	}

	config := &ssh.ServerConfig{
		PublicKeyCallback: func(ssh.ConnMetadata, ssh.PublicKey) (*ssh.Permissions, error) { return nil, nil }, // none in particular
		PasswordCallback: func(_ ssh.ConnMetadata, password []byte) (*ssh.Permissions, error) {
			if len(password) == 0 {
				return nil, errors.New("permission denied")
			}

			return nil, nil // as above
		},
	}
	config.AddHostKey(key)
	server, channels, requests, err := ssh.NewServerConn(conn, config)
	if err != nil {
		_ = conn.Close() // closed already when the client went

		return
	}
	defer func() { _ = server.Close() }() // everything was sent
	stop := context.AfterFunc(ctx, func() { _ = server.Close() })
	defer stop()

	go ssh.DiscardRequests(requests)
	for offered := range channels {
		if offered.ChannelType() != "session" {
			_ = offered.Reject(ssh.UnknownChannelType, "only sessions")

			continue
		}
		channel, requests, err := offered.Accept()
		if err != nil {
			return
		}
		go session(channel, requests, shell{cluster: cluster, host: host})
	}
}

// session runs the one command that a session asks for.
func session(channel ssh.Channel, requests <-chan *ssh.Request, sh shell) {
	defer func() { _ = channel.Close() }() // everything was sent

	for r := range requests {
		var run struct{ Command string }
		if r.Type != "exec" || ssh.Unmarshal(r.Payload, &run) != nil {
			_ = r.Reply(r.Type == "env", nil)

			continue
		}
		_ = r.Reply(true, nil)
		output, status := sh.run(run.Command)
		_, _ = channel.Write([]byte(output)) // the client is gone when this fails
		_, _ = channel.SendRequest("exit-status", false, ssh.Marshal(struct{ Status uint32 }{status}))

		return
	}
}

// shell plays a root shell on a host, which knows what the provider does with it.
type shell struct {
	cluster *site.Cluster
	host    string
}

// run plays a command and returns what it prints and its exit status.
func (s shell) run(command string) (string, uint32) {
	script := command
	if inner, ok := strings.CutPrefix(command, "/bin/bash -c '"); ok {
		script = strings.ReplaceAll(strings.TrimSuffix(inner, "'"), `'"'"'`, `'`)
	}
	job, ok := readImport(script)
	if !ok {
		return "bash: the lab's hosts import disk images by SSH, and do nothing else\n", 127
	}

	source, err := s.cluster.VolumePath(s.host, job.file)
	if err != nil {
		return err.Error() + "\n", 255
	}
	said := fmt.Sprintf("importing disk '%s' to VM %d ...\n", source, job.vm)
	key, volume, err := s.cluster.ImportDisk(s.host, job.vm, source, job.datastore, job.format)
	if err != nil {
		return said + err.Error() + "\n", 1
	}
	said += fmt.Sprintf("%s: successfully imported disk '%s'\n", key, volume)
	value := strings.TrimSuffix(volume+","+job.options, ",")
	if err := s.cluster.Set(s.host, job.vm, map[string]string{job.drive: value}); err != nil {
		return said + err.Error() + "\n", 1
	}

	return said + fmt.Sprintf("update VM %d: -%s %s\n", job.vm, job.drive, value), 0
}
