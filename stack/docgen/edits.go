// SPDX-License-Identifier: Apache-2.0
// Copyright the talos-proxmox authors.

package docgen

import (
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/talos-proxmox/talos-proxmox/spec"
)

const editsHead = `
## What an edit does

What an edit of a setting does to a node that exists: *later* counts for what is created from then on; *in place*
disturbs nobody; *reboot* is in place and reboots the VM, one node at a time; *upgrade* rolls the node to another image,
one node at a time; *replace* is refused unless ` + "`lifecycle.allowReplace`" + ` permits it; *refused* would lose data or the
node: ` + "`lifecycle.replace`" + ` drains it and rebuilds its VM. A ` + "`*`" + ` stands for any name.

| Setting | An edit | Unless |
|---|---|---|
`

// edits writes the table of what an edit of each setting of a machine does.
func edits(b *strings.Builder) {
	b.WriteString(editsHead)
	all := spec.EditEffects()
	for _, key := range slices.Sorted(maps.Keys(all)) {
		fmt.Fprintf(b, "| `%s` | %s | %s |\n", key, all[key].Effect, escape(all[key].Note))
	}
}
