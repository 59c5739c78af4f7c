// SPDX-License-Identifier: Apache-2.0
// Copyright the talos-proxmox authors.

package talos

import (
	"encoding/json"
	"fmt"
	"strings"
	"sync"

	"github.com/talos-proxmox/talos-proxmox/lab/site/guest"
)

// installation is what Talos keeps on its system disk: the boot slots, the configuration (STATE)
// and etcd's data (EPHEMERAL).
type installation struct {
	// OS marks the disk as ours.
	OS string `json:"os"`
	// Active is what boots, Previous what a rollback goes back to.
	Active   guest.Image  `json:"active"`
	Previous *guest.Image `json:"previous,omitempty"`
	// Staged is installed at the next boot.
	Staged *guest.Image `json:"staged,omitempty"`
	Config []byte       `json:"config,omitempty"`
	// NodeID is the node's identity; it goes with STATE.
	NodeID string       `json:"nodeId,omitempty"`
	Etcd   *etcdReplica `json:"etcd,omitempty"`
	// Applied is a digest of the bootstrap manifests that this node applied last.
	Applied string `json:"applied,omitempty"`
}

const (
	osTalos = "talos"
	osWiped = "wiped"
)

func parseInstallation(content []byte) (installation, bool) {
	var in installation
	if len(content) == 0 || json.Unmarshal(content, &in) != nil || in.OS != osTalos {
		return installation{}, false
	}

	return in, true
}

// systemDisk is the disk that holds an installation. Every change is durable when it returns.
type systemDisk struct {
	mu   sync.Mutex
	disk *guest.Disk
	in   installation
}

// openDisk returns the installation on a disk, nil when Talos is not on it.
func openDisk(d *guest.Disk) *systemDisk {
	content := d.Load()
	if in, ok := parseInstallation(content); ok {
		return &systemDisk{disk: d, in: in}
	}

	if len(content) == 0 && d.Image != nil {
		return &systemDisk{disk: d, in: installation{OS: osTalos, Active: *d.Image}}
	}

	return nil
}

func installedDisk(m *guest.Machine) *systemDisk {
	for _, d := range m.Disks {
		if s := openDisk(d); s != nil {
			return s
		}
	}

	return nil
}

func (s *systemDisk) read() installation {
	s.mu.Lock()
	defer s.mu.Unlock()

	return s.in
}

func (s *systemDisk) update(change func(*installation)) error {
	s.mu.Lock()
	defer s.mu.Unlock()

	next := s.in
	change(&next)

	content, err := json.Marshal(next)
	if err != nil {
		return fmt.Errorf("writing disk %s: %w", s.disk.Device, err)
	}

	if err := s.disk.Store(content); err != nil {
		return fmt.Errorf("writing disk %s: %w", s.disk.Device, err)
	}
	s.in = next

	return nil
}

// wipe removes everything. A disk that an image was imported onto keeps a mark, or it would count
// as freshly imported.
func wipe(d *guest.Disk) error {
	var content []byte
	if d.Image != nil {
		content = []byte(`{"os":"` + osWiped + `"}`)
	}

	if err := d.Store(content); err != nil {
		return fmt.Errorf("wiping disk %s: %w", d.Device, err)
	}

	return nil
}

// devicePaths names each disk as Linux does: SCSI, SATA and IDE disks share sda…, virtio has vda….
func devicePaths(disks []*guest.Disk) map[string]*guest.Disk {
	paths := map[string]*guest.Disk{}
	next := map[string]byte{}

	for _, d := range disks {
		prefix := "sd"
		if strings.HasPrefix(d.Device, "virtio") {
			prefix = "vd"
		}

		paths["/dev/"+prefix+string('a'+rune(next[prefix]))] = d
		next[prefix]++
	}

	return paths
}
