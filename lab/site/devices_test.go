// SPDX-License-Identifier: Apache-2.0
// Copyright the talos-proxmox authors.

package site_test

import (
	"testing"

	"github.com/stretchr/testify/assert"

	"github.com/talos-proxmox/talos-proxmox/lab/site"
)

func TestWhatADiskAnswers(t *testing.T) {
	for name, c := range map[string]struct {
		pve    int
		params map[string]string
		want   []string
	}{
		"Proxmox VE 8": {8, map[string]string{
			"scsi1": "file=local-lvm:1,serial=mine",
		}, []string{"drive-scsi0", "mine"}},
		"Proxmox VE 9": {9, map[string]string{
			"scsi1": "file=local-lvm:1,serial=mine",
		}, []string{"drive-scsi0", "drive-scsi1"}},
		"an older board on Proxmox VE 9": {9, map[string]string{
			"scsi1": "file=local-lvm:1,serial=mine", "machine": "pc-q35-9.2+pve1",
		}, []string{"drive-scsi0", "mine"}},
	} {
		t.Run(name, func(t *testing.T) {
			d := site.DefaultDefinition()
			d.Clusters[0].PVE = c.pve
			l := openAs(t, &d)
			l.download(host, "local")
			l.done(l.Create(host, 800, talos("scsi1", c.params["scsi1"], "machine", c.params["machine"]), root))
			l.done(l.Start(host, 800, root))
			l.eventually("the guest boots", func() bool { return len(l.guests.booted()) == 1 })
			var got []string
			for _, disk := range l.guests.booted()[0].Disks {
				got = append(got, disk.DeviceID)
			}
			assert.Equal(t, c.want, got)
		})
	}
}
