// SPDX-License-Identifier: Apache-2.0
// Copyright the talos-proxmox authors.

package proxmoxve

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"net"
	"strconv"
	"strings"

	"golang.org/x/crypto/ssh"
	"golang.org/x/net/proxy"

	"github.com/talos-proxmox/talos-proxmox/lab/standin/bridge"
)

// shellLogin holds how the hosts are reached by SSH.
type shellLogin struct {
	username, password, privateKey, socks string
	nodes                                 []bridge.Tree
}

// shellOf reads the block ssh, and the environment where it says nothing.
func shellOf(config bridge.Tree, login credentials) shellLogin {
	block := config.Sub("ssh")
	user, _, _ := strings.Cut(login.username, "@")

	return shellLogin{
		username:   cmp.Or(setting(block, "username", "SSH_USERNAME"), user),
		password:   cmp.Or(setting(block, "password", "SSH_PASSWORD"), login.password),
		privateKey: setting(block, "privateKey", "SSH_PRIVATE_KEY"),
		socks:      setting(block, "socks5Server", "SSH_SOCKS5_SERVER"),
		nodes:      block.List("nodes"),
	}
}

// importDisks makes disks of images, over SSH: Proxmox VE's API has no way for it.
func (m machine) importDisks(ctx context.Context, in bridge.Tree) error {
	for _, d := range in.List("disks") {
		if d.Str("fileId") == "" {
			continue
		}
		if err := m.importDisk(ctx, d); err != nil {
			return err
		}
		if err := m.resizeDisk(ctx, d.Str("interface"), d.Int("size")); err != nil {
			return fmt.Errorf("resizing disk: %w", err)
		}
	}

	return nil
}

// importDisk runs the provider's own script, word for word.
func (m machine) importDisk(ctx context.Context, d bridge.Tree) error {
	format := d.Str("fileFormat")
	if format == "" {
		format = defaultFormat
	}
	script := strings.Join([]string{
		"set -e",
		`try_sudo(){ if [ $(sudo -n pvesm apiinfo 2>&1 | grep "APIVER" | wc -l) -gt 0 ]; then sudo $1; else $1; fi }`,
		fmt.Sprintf(`file_id="%s"`, d.Str("fileId")), fmt.Sprintf(`file_format="%s"`, format),
		fmt.Sprintf(`datastore_id_target="%s"`, d.Str("datastoreId")), fmt.Sprintf(`vm_id="%d"`, m.id),
		fmt.Sprintf(`disk_options="%s"`, diskOptions(d)), fmt.Sprintf(`disk_interface="%s"`, d.Str("interface")),
		`source_image=$(try_sudo "pvesm path $file_id")`,
		`imported_disk="$(try_sudo "qm importdisk $vm_id $source_image $datastore_id_target -format $file_format" | ` +
			`grep "unused0" | cut -d ":" -f 3 | cut -d "'" -f 1)"`,
		`disk_id="${datastore_id_target}:$imported_disk,${disk_options}"`,
		`try_sudo "qm set $vm_id -${disk_interface} $disk_id"`,
	}, "; ")

	client, err := m.openShell(ctx)
	if err != nil {
		return fmt.Errorf("creating custom disk: %w", err)
	}
	defer client.Close() //nolint:errcheck // everything was read

	session, err := client.NewSession()
	if err != nil {
		return fmt.Errorf("creating custom disk: failed to create SSH session: %w", err)
	}
	defer session.Close() //nolint:errcheck // as above

	output, err := session.CombinedOutput("/bin/bash -c '" + strings.ReplaceAll(script, `'`, `'"'"'`) + "'")
	if err != nil {
		return fmt.Errorf("creating custom disk: %s", output)
	}

	return nil
}

// openShell connects to the VM's host. The provider trusts a host's key at first sight and writes it down; the
// stand-in does not write.
func (m machine) openShell(ctx context.Context) (*ssh.Client, error) {
	address, err := m.shellAddress(ctx)
	if err != nil {
		return nil, fmt.Errorf("failed to find node endpoint: %w", err)
	}
	config := &ssh.ClientConfig{User: m.shell.username, HostKeyCallback: ssh.InsecureIgnoreHostKey()} // see above
	if m.shell.privateKey != "" {
		key, err := ssh.ParsePrivateKey([]byte(m.shell.privateKey))
		if err != nil {
			return nil, errors.New("failed to parse private key")
		}
		config.Auth = append(config.Auth, ssh.PublicKeys(key))
	}
	config.Auth = append(config.Auth, ssh.Password(m.shell.password))

	conn, err := m.dialShell(ctx, address)
	if err != nil {
		return nil, fmt.Errorf("failed to dial %s: %w", address, err)
	}
	inner, channels, requests, err := ssh.NewClientConn(conn, address, config)
	if err != nil {
		_ = conn.Close() // the error says more

		return nil, fmt.Errorf("unable to authenticate user %q over SSH to %q. Please verify that ssh-agent is correctly loaded "+
			"with an authorized key via 'ssh-add -L' (NOTE: configurations in ~/.ssh/config are not considered by the "+
			"provider): %w", m.shell.username, address, err)
	}

	return ssh.NewClient(inner, channels, requests), nil
}

func (m machine) dialShell(ctx context.Context, address string) (net.Conn, error) {
	if m.shell.socks == "" {
		var d net.Dialer

		return d.DialContext(ctx, "tcp", address)
	}
	dialer, err := proxy.SOCKS5("tcp", m.shell.socks, nil, proxy.Direct)
	if err != nil {
		return nil, err
	}

	return dialer.Dial("tcp", address)
}

// shellAddress returns what the configuration says, else the first address of the host's interfaces.
func (m machine) shellAddress(ctx context.Context) (string, error) {
	const port = 22
	for _, n := range m.shell.nodes {
		if n.Str("name") == m.node {
			return net.JoinHostPort(n.Str("address"), strconv.Itoa(cmp.Or(n.Int("port"), port))), nil
		}
	}

	var interfaces []struct{ Address, Gateway string }
	if err := m.get(ctx, "nodes/"+m.node+"/network", &interfaces); err != nil {
		return "", fmt.Errorf("failed to list network devices of node %q: %w", m.node, err)
	}
	found := ""
	for _, i := range interfaces {
		if i.Address != "" && (found == "" || i.Gateway != "") {
			found = i.Address
		}
	}
	if found == "" {
		return "", fmt.Errorf("failed to determine the IP address of node %q", m.node)
	}

	return net.JoinHostPort(found, strconv.Itoa(port)), nil
}
