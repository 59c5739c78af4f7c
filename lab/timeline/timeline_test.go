// SPDX-License-Identifier: Apache-2.0
// Copyright the talos-proxmox authors.

package timeline_test

import (
	"encoding/xml"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/talos-proxmox/talos-proxmox/lab/site/guest"
	"github.com/talos-proxmox/talos-proxmox/lab/timeline"
)

func at(second int) time.Time { return time.Unix(int64(second), 0).UTC() }

func events() []guest.Event {
	node := map[string]string{"vm": "301", "hostname": "cp-<1>"}

	return []guest.Event{
		{Op: "pve.download", Object: "download/talos.iso", Start: at(0), End: at(5)},
		{Op: "pve.qmcreate", Object: "qmcreate/301", Start: at(5), End: at(7)},
		{Op: "talos.install", Object: "node/10.0.0.1", Start: at(8), End: at(20), Attrs: node},
		{Op: "talos.apply", Object: "node/10.0.0.1", Start: at(8), End: at(9), Error: "refused"},
		{Op: "kubernetes.start", Object: "cluster/small", Start: at(20), End: at(30)},
	}
}

func TestDraw(t *testing.T) {
	t.Parallel()

	svg, err := timeline.Draw(events(), time.Time{})
	require.NoError(t, err)
	require.NoError(t, xml.Unmarshal([]byte(svg), new(struct{})), "it is XML")
	for _, name := range []string{">image<", ">cp-&lt;1&gt;<", ">small<"} {
		assert.Equal(t, 1, strings.Count(svg, name), name)
	}
	assert.Equal(t, 4, strings.Count(svg, "<title>"), "a bar for each operation that did not fail")
	again, err := timeline.Draw(events(), time.Time{})
	require.NoError(t, err)
	assert.Equal(t, svg, again)
}

func TestDrawSince(t *testing.T) {
	t.Parallel()

	svg, err := timeline.Draw(events(), at(21))
	require.NoError(t, err)
	assert.Equal(t, 1, strings.Count(svg, "<title>"))
	_, err = timeline.Draw(events(), at(31))
	assert.EqualError(t, err, "there is nothing to draw: no operation ended since "+at(31).Format(time.TimeOnly))
}
