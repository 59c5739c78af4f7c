// SPDX-License-Identifier: Apache-2.0
// Copyright the talos-proxmox authors.

package proxmox_test

import (
	"net"
	"net/http"
	"net/netip"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"golang.org/x/crypto/ssh"

	"github.com/talos-proxmox/talos-proxmox/lab/proxmox"
	"github.com/talos-proxmox/talos-proxmox/lab/site"
	"github.com/talos-proxmox/talos-proxmox/lab/site/guest"
)

// TestHostsSpeakSSH: a host lets in whoever has a password, and runs nothing but the import of a disk image.
func TestHostsSpeakSSH(t *testing.T) {
	t.Parallel()

	s, err := site.Open(site.Options{Dir: t.TempDir(), Clock: guest.Clock{Speed: 1000}, HTTP: http.DefaultClient})
	require.NoError(t, err)
	t.Cleanup(func() { assert.NoError(t, s.Close()) })
	addr := s.Cluster("").HostAddress(pve)
	_, host, found := s.HostAt(addr)
	require.True(t, found)
	assert.Equal(t, pve, host)
	_, _, found = s.HostAt(netip.MustParseAddr("10.0.0.1"))
	assert.False(t, found)

	l, err := net.Listen("tcp", "127.0.0.1:0")
	require.NoError(t, err)
	t.Cleanup(func() { _ = l.Close() })
	go func() {
		for {
			conn, err := l.Accept()
			if err != nil {
				return // the end of the test
			}
			go proxmox.ServeSSH(t.Context(), s, conn, addr)
		}
	}()

	open := func(password string) (*ssh.Client, error) {
		client, err := net.Dial("tcp", l.Addr().String())
		require.NoError(t, err)
		conn, channels, requests, err := ssh.NewClientConn(client, addr.String()+":22", &ssh.ClientConfig{
			User: "root", Auth: []ssh.AuthMethod{ssh.Password(password)}, HostKeyCallback: ssh.InsecureIgnoreHostKey(),
		})
		if err != nil {
			return nil, err
		}

		return ssh.NewClient(conn, channels, requests), nil
	}
	_, err = open("")
	require.ErrorContains(t, err, "unable to authenticate")
	client, err := open("secret")
	require.NoError(t, err)
	t.Cleanup(func() { _ = client.Close() })

	for name, c := range map[string]struct{ command, want string }{
		"another":  {"rm -rf /", "bash: the lab's hosts import disk images by SSH, and do nothing else\n"},
		"no image": {importing("local:iso/none.img"), "volume 'local:iso/none.img' does not exist\n"},
	} {
		t.Run(name, func(t *testing.T) {
			session, err := client.NewSession()
			require.NoError(t, err)
			output, err := session.CombinedOutput(c.command)
			require.Error(t, err)
			assert.Equal(t, c.want, string(output))
		})
	}
}

// importing returns what the provider runs for a disk with an image.
func importing(file string) string {
	return `/bin/bash -c 'set -e; try_sudo(){ if [ $(sudo -n pvesm apiinfo 2>&1 | grep "APIVER" | wc -l) -gt 0 ]; then sudo $1; else $1; fi }; ` +
		`file_id="` + file + `"; file_format="raw"; datastore_id_target="local-lvm"; vm_id="800"; disk_options="aio=io_uring"; disk_interface="scsi0"; ` +
		`source_image=$(try_sudo "pvesm path $file_id"); imported_disk="$(try_sudo "qm importdisk $vm_id $source_image $datastore_id_target -format $file_format" ` +
		`| grep "unused0" | cut -d ":" -f 3 | cut -d "'"'"'" -f 1)"; disk_id="${datastore_id_target}:$imported_disk,${disk_options}"; ` +
		`try_sudo "qm set $vm_id -${disk_interface} $disk_id"'`
}
