// SPDX-License-Identifier: Apache-2.0
// Copyright the talos-proxmox authors.

package site_test

import (
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/talos-proxmox/talos-proxmox/lab/site/pve"
)

func TestWhatAnUpdateMayRemove(t *testing.T) {
	t.Parallel()
	l := open(t)
	l.done(l.Create(host, 800, map[string]string{"protection": "1", "scsi0": "file=local-lvm:1"}, root))

	for name, c := range map[string]struct {
		params map[string]string
		field  string
		err    string
	}{
		"set in the same call": {
			map[string]string{"delete": "tags,ide3", "ide3": "file=cdrom,media=cdrom"},
			"you can't use '-ide3' and -delete ide3' at the same time",
			"Parameter verification failed. (delete: you can't use '-ide3' and -delete ide3' at the same time)",
		},
		"no option":       {map[string]string{"delete": "colour"}, "unknown option 'colour'", "Parameter verification failed. (delete: unknown option 'colour')"},
		"protected drive": {map[string]string{"delete": "scsi0"}, "", "can't remove drive 'scsi0' - protection mode enabled"},
	} {
		t.Run(name, func(t *testing.T) {
			err := l.Update(host, 800, c.params, root)
			require.EqualError(t, err, c.err)
			var refused *pve.Error
			require.ErrorAs(t, err, &refused)
			assert.Equal(t, c.field, refused.Fields["delete"])
		})
	}

	require.NoError(t, l.Update(host, 800, map[string]string{"delete": "ide3,net5,hostpci3"}, root), "what is not set is passed over")
}
