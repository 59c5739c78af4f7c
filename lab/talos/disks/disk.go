// SPDX-License-Identifier: Apache-2.0
// Copyright the talos-proxmox authors.

package disks

import (
	"encoding/json"
	"fmt"
	"sync"

	"github.com/talos-proxmox/talos-proxmox/lab/site/guest"
	"github.com/talos-proxmox/talos-proxmox/lab/talos/etcd"
)

// Installation holds what Talos keeps on its system disk: the boot slots, the configuration (STATE)
// and etcd's data (EPHEMERAL).
type Installation struct {
	// OS marks the disk as ours.
	OS string `json:"os"`
	// Active is what boots, Previous what a rollback goes back to.
	Active   guest.Image  `json:"active"`
	Previous *guest.Image `json:"previous,omitempty"`
	// Staged is installed at the next boot.
	Staged *guest.Image `json:"staged,omitempty"`
	Config []byte       `json:"config,omitempty"`
	// NodeID is the node's identity; it goes with STATE.
	NodeID string        `json:"nodeId,omitempty"`
	Etcd   *etcd.Replica `json:"etcd,omitempty"`
	// Meta are the values of META by their keys.
	Meta map[uint8]string `json:"meta,omitempty"`
	// Applied is a digest of the bootstrap manifests that this node applied last.
	Applied string `json:"applied,omitempty"`
}

const (
	OsTalos = "talos"
	osWiped = "wiped"
)

func ParseInstallation(content []byte) (Installation, bool) {
	var in Installation
	if len(content) == 0 || json.Unmarshal(content, &in) != nil || in.OS != OsTalos {
		return Installation{}, false
	}

	return in, true
}

// System holds an installation on a disk. Every change is durable when it returns.
type System struct {
	mu   sync.Mutex
	Disk *guest.Disk
	in   Installation
}

// Open returns the installation on a disk, nil when Talos is not on it.
func Open(d *guest.Disk) *System {
	content := d.Load()
	if in, ok := ParseInstallation(content); ok {
		return &System{Disk: d, in: in}
	}

	if len(content) == 0 && d.Image != nil {
		return &System{Disk: d, in: Installation{OS: OsTalos, Active: *d.Image}}
	}

	return nil
}

func InstalledDisk(m *guest.Machine) *System {
	for _, d := range m.Disks {
		if s := Open(d); s != nil {
			return s
		}
	}

	return nil
}

func (s *System) Read() Installation {
	s.mu.Lock()
	defer s.mu.Unlock()

	return s.in
}

func (s *System) Update(change func(*Installation)) error {
	s.mu.Lock()
	defer s.mu.Unlock()

	next := s.in
	change(&next)

	content, err := json.Marshal(next)
	if err != nil {
		return fmt.Errorf("writing disk %s: %w", s.Disk.Device, err)
	}

	if err := s.Disk.Store(content); err != nil {
		return fmt.Errorf("writing disk %s: %w", s.Disk.Device, err)
	}
	s.in = next

	return nil
}

// Wipe removes everything. A disk that an image was imported onto keeps a mark, or it would count
// as freshly imported.
func Wipe(d *guest.Disk) error {
	var content []byte
	if d.Image != nil {
		content = []byte(`{"os":"` + osWiped + `"}`)
	}

	if err := d.Store(content); err != nil {
		return fmt.Errorf("wiping disk %s: %w", d.Device, err)
	}

	return nil
}
