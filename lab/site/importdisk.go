// SPDX-License-Identifier: Apache-2.0
// Copyright the talos-proxmox authors.

package site

import (
	"crypto/sha256"
	"fmt"
	"net/netip"
	"strconv"

	"github.com/talos-proxmox/talos-proxmox/lab/site/pve"
)

// What a root shell on a host does with disks, for those who reach it by SSH.

const rootUser = "root@pam"

// VolumePath returns where a volume lies on a host, as `pvesm path` says it.
func (c *Cluster) VolumePath(host, volID string) (string, error) {
	c.s.mu.Lock()
	defer c.s.mu.Unlock()

	vol, err := c.volume(host, volID)
	if err != nil {
		return "", err
	}
	_, d, err := c.storage(host, vol.Storage)
	if err != nil {
		return "", err
	}

	return info(d, vol).Path, nil
}

// ImportDisk makes a disk of a file on the host and leaves it unused with the VM, as `qm importdisk` does. It returns
// the key in the VM's configuration, "unused0", and the volume's id.
func (c *Cluster) ImportDisk(host string, id int, source, storage, format string) (key, volID string, err error) {
	defer c.lockVM(id)()
	c.s.mu.Lock()
	defer c.s.mu.Unlock()

	v, err := c.find(host, id)
	if err != nil {
		return "", "", err
	}
	end := c.s.opts.Trace.Begin("qm.importdisk", "vm/"+strconv.Itoa(id), map[string]string{"source": source, "storage": storage})
	defer func() { end(err) }()

	var made []*volume
	stored, err := c.attach(v, "scsi0", fmt.Sprintf("%s:0,import-from=%s,format=%s", storage, source, format), rootUser, &made)
	if err != nil {
		return "", "", err
	}
	volID = pve.ParseProperties("file", stored).Get("file")
	for i := 0; ; i++ {
		key = fmt.Sprintf("unused%d", i)
		if _, taken := v.Config[key]; !taken {
			break
		}
	}
	v.Config[key] = volID

	return key, volID, c.s.save()
}

// Set changes a VM's configuration as root, as `qm set` does.
func (c *Cluster) Set(host string, id int, params map[string]string) error {
	return c.Update(host, id, params, rootUser)
}

// HostAddress returns where a host answers SSH: its own address, or one of the range for benchmarks (RFC 2544), which no
// network has, that follows from its name.
func (c *Cluster) HostAddress(name string) netip.Addr {
	c.s.mu.Lock()
	defer c.s.mu.Unlock()

	return c.hostAddress(name)
}

func (c *Cluster) hostAddress(name string) netip.Addr {
	if h, ok := c.c.host(name); ok {
		if own, err := netip.ParseAddr(h.Address); err == nil {
			return own
		}
	}
	sum := sha256.Sum256([]byte(c.c.Name + "/" + name))

	return netip.AddrFrom4([4]byte{198, 18, sum[0], sum[1]})
}

// HostAt finds the host that answers SSH at an address.
func (s *Site) HostAt(addr netip.Addr) (c *Cluster, host string, found bool) {
	s.mu.Lock()
	defer s.mu.Unlock()

	for _, state := range s.state.Clusters {
		c := &Cluster{s: s, c: state}
		for _, h := range state.Hosts {
			if c.hostAddress(h.Name) == addr {
				return c, h.Name, true
			}
		}
	}

	return nil, "", false
}
