// SPDX-License-Identifier: Apache-2.0
// Copyright the talos-proxmox authors.

package site_test

import (
	"context"
	"net/http"
	"net/http/httptest"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/talos-proxmox/talos-proxmox/lab/fault"
	"github.com/talos-proxmox/talos-proxmox/lab/image"
	"github.com/talos-proxmox/talos-proxmox/lab/site"
	"github.com/talos-proxmox/talos-proxmox/lab/site/guest"
)

const root = "root@pam"

// guests plays operating systems under a test's control: each boot waits for what the test decides.
type guests struct {
	mu     sync.Mutex
	boots  []*guest.Machine
	exits  chan guest.Exit
	obeys  bool // powers off when asked to
	writes []byte
}

func (g *guests) make(m *guest.Machine) guest.Guest {
	g.mu.Lock()
	defer g.mu.Unlock()
	g.boots = append(g.boots, m)

	return testGuest{g}
}

func (g *guests) booted() []*guest.Machine {
	g.mu.Lock()
	defer g.mu.Unlock()

	return append([]*guest.Machine(nil), g.boots...)
}

type testGuest struct{ *guests }

func (g testGuest) Run(ctx context.Context, m *guest.Machine) guest.Exit {
	if g.writes != nil {
		if err := m.Disks[0].Store(g.writes); err != nil {
			return guest.ExitHalt
		}
	}
	ask := m.ShutdownRequested
	if !g.obeys {
		ask = nil
	}
	select {
	case <-ctx.Done():
		return guest.ExitPowerOff
	case <-ask:
		return guest.ExitPowerOff
	case e := <-g.exits:
		return e
	}
}

type lab struct {
	*testing.T
	*site.Cluster
	site   *site.Site
	guests *guests
	dir    string
	url    string // of an image
	faults *fault.Set

	definition *site.Definition
}

func open(t *testing.T) *lab {
	t.Helper()

	return openAs(t, nil)
}

// openAs opens a site of that definition.
func openAs(t *testing.T, definition *site.Definition) *lab {
	t.Helper()

	iso, err := image.Encode(image.Image{Talos: "v1.12.4", Platform: "nocloud", Arch: "amd64", Kind: image.KindISO})
	require.NoError(t, err)
	web := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.URL.Path != "/talos.iso" {
			http.NotFound(w, r)

			return
		}
		_, _ = w.Write(iso)
	}))
	t.Cleanup(web.Close)

	l := &lab{T: t, definition: definition, dir: t.TempDir(), url: web.URL + "/talos.iso", guests: &guests{exits: make(chan guest.Exit), obeys: true}}
	l.faults = fault.New(guest.NewTrace(nil), nil)
	l.start()

	return l
}

func (l *lab) start() {
	l.Helper()

	s, err := site.Open(site.Options{
		Dir: l.dir, Definition: l.definition, Clock: guest.Clock{Speed: 1000}, Guest: l.guests.make, HTTP: http.DefaultClient,
		Faults: l.faults,
	})
	require.NoError(l, err)
	l.Cleanup(func() { _ = s.Close() })
	l.site, l.Cluster = s, s.Clusters()[0]
	s.Resume()
}

// done waits for a task that must succeed; called with the results of what starts it.
func (l *lab) done(upid string, err error) {
	l.Helper()
	require.NoError(l, err)
	require.NoError(l, l.site.Wait(l.Context(), upid))
}

// fails waits for a task, or its start, to fail with exactly that text.
func (l *lab) fails(want string, upid string, err error) {
	l.Helper()
	if err == nil {
		err = l.site.Wait(l.Context(), upid)
	}
	require.EqualError(l, err, want)
}

func (l *lab) download(host, storage string) {
	l.Helper()
	upid, err := l.Download(host, site.DownloadRequest{Storage: storage, Content: "iso", Filename: "talos.iso", URL: l.url}, root)
	l.done(upid, err)
}

// talos returns a VM as the project makes them.
func talos(changes ...string) map[string]string {
	m := map[string]string{
		"name": "ctrl-00", "cores": "2", "memory": "2048", "cpu": "host", "machine": "q35", "scsihw": "virtio-scsi-single",
		"boot": "order=scsi0;ide0", "scsi0": "file=local-lvm:10,format=raw,iothread=1", "ide0": "file=local:iso/talos.iso,media=cdrom",
		"ide2": "file=local-lvm:cloudinit,media=cdrom", "ipconfig0": "gw=10.200.0.1,ip=10.200.5.1/16",
		"net0": "model=virtio,bridge=vmbr200,macaddr=bc:24:11:00:00:01", "agent": "enabled=1",
	}
	for i := 0; i+1 < len(changes); i += 2 {
		if changes[i+1] == "" {
			delete(m, changes[i])
		} else {
			m[changes[i]] = changes[i+1]
		}
	}

	return m
}

func (l *lab) eventually(what string, holds func() bool) {
	l.Helper()
	require.Eventually(l, holds, 10*time.Second, 5*time.Millisecond, what)
}

const host = "ryzen-proxmox"

// said checks that a task has a line in its log.
func (l *lab) said(line, upid string) {
	l.Helper()
	task, err := l.site.Task(upid)
	require.NoError(l, err)
	require.Contains(l, task.Log, line)
}
