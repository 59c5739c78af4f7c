// SPDX-License-Identifier: Apache-2.0
// Copyright the talos-proxmox authors.

package standin_test

import (
	"bytes"
	"compress/gzip"
	"context"
	"net/http"
	"net/http/httptest"
	"testing"
	"time"

	pulumirpc "github.com/pulumi/pulumi/sdk/v3/proto/go"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/talos-proxmox/talos-proxmox/lab/image"
	"github.com/talos-proxmox/talos-proxmox/lab/proxmox"
	"github.com/talos-proxmox/talos-proxmox/lab/site"
	"github.com/talos-proxmox/talos-proxmox/lab/site/guest"
	"github.com/talos-proxmox/talos-proxmox/lab/standin/bridge"
)

// idle plays a guest that runs until it is told to stop.
type idle struct{}

func (idle) Run(ctx context.Context, m *guest.Machine) guest.Exit {
	select {
	case <-ctx.Done():
	case <-m.ShutdownRequested:
	}

	return guest.ExitPowerOff
}

// onSite returns a configured provider of a site whose VMs idle, and the site. The web server has talos.iso, and the same as
// talos.raw.gz. The provider's token may do everything, or what grants say.
func onSite(t *testing.T, grants ...proxmox.Grants) (e engine, s *site.Site, web string) {
	t.Helper()

	iso, err := image.Encode(image.Image{Talos: "v1.12.4", Platform: "nocloud", Arch: "amd64", Kind: image.KindISO})
	require.NoError(t, err)
	var packed bytes.Buffer
	zip := gzip.NewWriter(&packed)
	_, err = zip.Write(iso)
	require.NoError(t, err)
	require.NoError(t, zip.Close())
	mux := http.NewServeMux()
	for name, content := range map[string][]byte{"talos.iso": iso, "talos.raw.gz": packed.Bytes()} {
		mux.HandleFunc("/"+name, func(w http.ResponseWriter, r *http.Request) {
			http.ServeContent(w, r, "", time.Time{}, bytes.NewReader(content))
		})
	}
	server := httptest.NewServer(mux)
	t.Cleanup(server.Close)

	s, err = site.Open(site.Options{
		Dir: t.TempDir(), Clock: guest.Clock{Speed: 1000}, HTTP: http.DefaultClient,
		Guest: func(*guest.Machine) guest.Guest { return idle{} },
	})
	require.NoError(t, err)
	t.Cleanup(func() { _ = s.Close() })
	who := proxmox.Token{Value: token}
	if len(grants) > 0 {
		who.Grants = grants[0]
	}
	api := httptest.NewTLSServer(proxmox.New(s, &proxmox.Auth{Tokens: []proxmox.Token{who}}))
	t.Cleanup(api.Close)

	e = attach(t, serve(t, "proxmoxve"))
	require.NoError(t, e.configure(bridge.Tree{"endpoint": api.URL, "insecure": "true", "apiToken": token,
		// Nobody answers SSH there.
		"ssh": bridge.Tree{"username": "root", "nodes": []bridge.Tree{{"name": "alpha", "address": "127.0.0.1", "port": 1}}},
	}))

	return e, s, server.URL
}

// On the lab's own Proxmox VE: made, read back without drift, changed, migrated, removed.
func TestVirtualMachineOnTheSite(t *testing.T) {
	t.Parallel()

	e, _, web := onSite(t)

	f := urn("proxmoxve:Download/file:File", "iso")
	fileIn, problems := e.check(f, bridge.Tree{
		"nodeName": "alpha", "datastoreId": "nas", "contentType": "iso", "url": web + "/talos.iso", "fileName": "t.iso",
	}.Properties(), nil)
	require.Empty(t, problems)
	fileID, fileOut, err := e.create(f, fileIn, false)
	require.NoError(t, err)
	assert.Equal(t, "nas:iso/t.iso", fileID)
	r := e.read(f, fileID, fileIn, fileOut)
	d := e.diff(f, fileID, e.unmarshal(r.GetInputs()), e.unmarshal(r.GetProperties()), fileIn)
	assert.Equal(t, pulumirpc.DiffResponse_DIFF_NONE, d.GetChanges(), "file drift: %v", d.GetDiffs())

	e.ignore = []string{"disks[0].speed"} // or the provider finds a difference for ever
	args := with(with(node(), "nodeName", "alpha"), "cdrom",
		bridge.Tree{"enabled": true, "fileId": fileID, "interface": "ide0"})
	u := urn(vmToken, "cp1")
	in, problems := e.check(u, args.Properties(), nil)
	require.Empty(t, problems)
	id, out, err := e.create(u, in, false)
	require.NoError(t, err)
	assert.True(t, bridge.TreeOf(out).Bool("started"))

	undrifted := func(why string) {
		t.Helper()
		r := e.read(u, id, in, out)
		d := e.diff(u, id, e.unmarshal(r.GetInputs()), e.unmarshal(r.GetProperties()), in)
		assert.Equal(t, pulumirpc.DiffResponse_DIFF_NONE, d.GetChanges(), "%s: %v", why, d.GetDiffs())
	}
	undrifted("after creation")

	for _, change := range []struct {
		what  string
		value any
	}{
		{"cpu", bridge.Tree{"cores": 4, "type": "x86-64-v2-AES"}},
		{"disks", []bridge.Tree{
			{"interface": "scsi0", "size": 30, "datastoreId": "local-lvm", "fileFormat": "raw", "iothread": true},
		}},
		{"nodeName", "charlie"},
	} {
		args = with(args, change.what, change.value)
		next, problems := e.check(u, args.Properties(), in)
		require.Empty(t, problems)
		out, err = e.update(u, id, in, out, next)
		require.NoError(t, err, change.what)
		in = next
		undrifted(change.what)
	}

	require.NoError(t, e.remove(u, id, in, out))
	require.NoError(t, e.remove(f, fileID, fileIn, fileOut))
	assert.Empty(t, e.read(u, id, in, out).GetId())
	assert.Empty(t, e.read(f, fileID, fileIn, fileOut).GetId())
}

// What nobody said differs for ever, as with the plugin: a speed without limits, a CD drive that is off.
func TestMachineThatNeverSettles(t *testing.T) {
	t.Parallel()

	st := newStage(t, func() int { return serve(t, "proxmoxve") })
	e := attach(t, st.ports[token])
	require.NoError(t, e.configure(bridge.Tree{"endpoint": st.url, "insecure": "true", "apiToken": token}))
	u := urn(vmToken, "m")
	inputs := machine("m", 100, nil)
	delete(inputs, "cdrom")
	in, problems := e.check(u, inputs.Properties(), nil)
	require.Empty(t, problems)
	id, out, err := e.create(u, in, false)
	require.NoError(t, err)

	const zeros = "disks[0].speed=UPDATE disks[0].speed.iopsRead=ADD disks[0].speed.iopsReadBurstable=ADD disks[0].speed.iopsWrite=ADD " +
		"disks[0].speed.iopsWriteBurstable=ADD disks[0].speed.read=ADD disks[0].speed.readBurstable=ADD disks[0].speed.write=ADD " +
		"disks[0].speed.writeBurstable=ADD"
	assert.Equal(t, "SOME cdrom=UPDATE cdrom.enabled=ADD cdrom.interface=ADD "+zeros, difference(e.diff(u, id, in, out, in)))
	_, err = e.update(u, id, in, out, in)
	require.ErrorContains(t, err, "(delete: you can't use '-ide3' and -delete ide3' at the same time)")

	e.ignore = []string{"cdrom"}
	assert.Equal(t, "SOME "+zeros, difference(e.diff(u, id, in, out, in)))
	e.ignore = []string{"cdrom", "disks[0].speed"}
	assert.Equal(t, "NONE", difference(e.diff(u, id, in, out, in)))
}
