// SPDX-License-Identifier: Apache-2.0
// Copyright the talos-proxmox authors.

package stack_test

import (
	"testing"

	"github.com/stretchr/testify/assert"
)

// TestOnlyRootMay tries every setting that Proxmox VE takes from root@pam with a password alone, by every credential that the
// provider may ask with: a token counts before a password, wherever each is written.
func TestOnlyRootMay(t *testing.T) {
	t.Parallel()
	const token = "ci@pve!x=00000000-0000-0000-0000-000000000000"
	settings := map[string]string{
		"cpuAffinity": "0-1", "kvmArguments": "-cpu host", "hookScript": "local:snippets/hook.sh", "sharedMemory": "64",
		"usb[0].host": "[{host: 0bda:2838}]", "gpu.devices[0]": `{devices: ["0000:01:00.0"]}`,
		"hugepages": `"2"`,
	}
	credentials := map[string]struct {
		edits   []string
		allowed bool
	}{
		"root's password":                   {nil, true},
		"root's password, from outside":     {[]string{"proxmox.password=null", "ENV PROXMOX_VE_PASSWORD=hunter2"}, true},
		"all of root from outside":          {[]string{"proxmox.username=null", "proxmox.password=null", "ENV PROXMOX_VE_USERNAME=root@pam", "ENV PROXMOX_VE_PASSWORD=x"}, true},
		"a token":                           {[]string{"proxmox.username=null", "proxmox.password=null", "proxmox.apiToken={secure: \"" + token + "\"}"}, false},
		"a token from outside":              {[]string{"proxmox.username=null", "proxmox.password=null", "ENV PROXMOX_VE_API_TOKEN=" + token}, false},
		"a password, and a token outside":   {[]string{"ENV PROXMOX_VE_API_TOKEN=" + token}, false},
		"root's token":                      {[]string{"ENV PROXMOX_VE_API_TOKEN=root@pam!x=00000000-0000-0000-0000-000000000000"}, false},
		"another user's password":           {[]string{"proxmox.username=ops@pve"}, false},
		"another user's, from outside":      {[]string{"proxmox.username=null", "proxmox.password=null", "ENV PROXMOX_VE_USERNAME=ops@pve", "ENV PROXMOX_VE_PASSWORD=x"}, false},
		"root of another realm with a word": {[]string{"proxmox.username=root@pve"}, false},
	}
	tried := 0
	for at, value := range settings {
		field := at
		for i, c := range at {
			if c == '[' || c == '.' {
				field = at[:i]

				break
			}
		}
		for name, c := range credentials {
			tried++
			edits := append([]string{"nodes.w-1." + field + "=" + value}, c.edits...)
			if field == "hugepages" {
				edits = append(edits, "nodes.w-1.numa=true")
			}
			problems := mistake{base: "rich", edits: edits}.problems(t)
			if c.allowed {
				assert.Empty(t, problems, "%s with %s", at, name)

				continue
			}
			if assert.Len(t, problems, 1, "%s with %s", at, name) {
				assert.Equal(t, "nodes.w-1."+at, problems[0].Path)
				assert.Contains(t, problems[0].Message, "needs proxmox.username root@pam with a password", name)
			}
		}
	}
	t.Logf("%d settings by %d credentials", len(settings), tried/len(settings))
}
