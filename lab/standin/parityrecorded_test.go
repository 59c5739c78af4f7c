// SPDX-License-Identifier: Apache-2.0
// Copyright the talos-proxmox authors.

package standin_test

import (
	"compress/gzip"
	"encoding/json"
	"errors"
	"flag"
	"io/fs"
	"maps"
	"os"
	"path/filepath"
	"sync"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

var record = flag.Bool("record", false, "keep what the genuine plugins do in testdata/recorded; they must be installed")

// narrator tells what a genuine plugin does in each scene: by asking it where it is installed, else from its recording.
type narrator struct {
	plugin string
	file   string
	live   bool

	mu   sync.Mutex
	kept recording
	used map[string]bool
}

// recording holds what was recorded of a plugin.
type recording struct {
	// Given is what the scenes were made from, where that is drawn by lot.
	Given   json.RawMessage  `json:"given,omitempty"`
	Stories map[string]story `json:"stories"`
}

// narrate returns the narrator of a plugin in its pinned version.
func narrate(t *testing.T, plugin string) *narrator {
	t.Helper()

	n := &narrator{
		plugin: plugin, file: filepath.Join("testdata", "recorded", plugin+"-v"+pinned()[plugin]+".json.gz"),
		kept: recording{Stories: map[string]story{}}, used: map[string]bool{},
	}
	_, err := os.Stat(pluginBinary(t, plugin))
	n.live = err == nil
	if *record {
		require.Truef(t, n.live, "plugin %s %s is not installed: there is nothing to record", plugin, pinned()[plugin])
		t.Cleanup(func() { n.write(t) })

		return n
	}
	if n.live {
		return n
	}
	n.read(t)
	t.Cleanup(func() {
		for name := range maps.Keys(n.kept.Stories) {
			assert.Truef(t, n.used[name], "the recording has a scene %q that is not played any more: record anew", name)
		}
	})

	return n
}

// given gets what the scenes are made from: what draw draws where the plugin is asked, what was recorded where it is not.
func (n *narrator) given(t *testing.T, into any, draw func()) {
	t.Helper()

	if !n.live {
		require.NoError(t, json.Unmarshal(n.kept.Given, into))

		return
	}
	draw()
	text, err := json.Marshal(into)
	require.NoError(t, err)
	n.kept.Given = text
}

// story returns what the plugin does in a scene; play asks it.
func (n *narrator) story(t *testing.T, scene string, play func() story) story {
	t.Helper()

	if n.live {
		st := play()
		n.mu.Lock()
		defer n.mu.Unlock()
		n.kept.Stories[scene] = st

		return st
	}
	n.mu.Lock()
	defer n.mu.Unlock()
	st, ok := n.kept.Stories[scene]
	require.Truef(t, ok, "%s has no scene %q: record it where the plugin is installed (`make record`)", n.file, scene)
	n.used[scene] = true

	return st
}

func (n *narrator) read(t *testing.T) {
	t.Helper()

	f, err := os.Open(n.file)
	if errors.Is(err, fs.ErrNotExist) && n.plugin == "kubernetes" {
		t.Skipf("skipped: plugin kubernetes %s is not installed, and nobody has recorded it yet", pinned()[n.plugin])
	}
	require.NoError(t, err, "what plugin %s does is not recorded", n.plugin)
	defer func() { _ = f.Close() }()
	unpacked, err := gzip.NewReader(f)
	require.NoError(t, err)
	require.NoError(t, json.NewDecoder(unpacked).Decode(&n.kept))
}

func (n *narrator) write(t *testing.T) {
	t.Helper()

	require.NoError(t, os.MkdirAll(filepath.Dir(n.file), 0o750))
	f, err := os.Create(n.file)
	require.NoError(t, err)
	packed, err := gzip.NewWriterLevel(f, gzip.BestCompression)
	require.NoError(t, err)
	require.NoError(t, json.NewEncoder(packed).Encode(n.kept))
	require.NoError(t, packed.Close())
	require.NoError(t, f.Close())
	t.Logf("recorded %d scenes in %s", len(n.kept.Stories), n.file)
}
