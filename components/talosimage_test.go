// SPDX-License-Identifier: Apache-2.0
// Copyright the talos-proxmox authors.

package components_test

import (
	"testing"

	"github.com/pulumi/pulumi/sdk/v3/go/pulumi"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/talos-proxmox/talos-proxmox/components"
	"github.com/talos-proxmox/talos-proxmox/internal/pulumitest"
	"github.com/talos-proxmox/talos-proxmox/spec"
)

const (
	fileType      = "proxmoxve:Download/file:File"
	schematicType = "talos:imageFactory/schematic:Schematic"
	devFile       = "talos-talos-dev-v1.12.4-ce4c980550dd-nocloud-amd64.iso"
)

func devImage() components.TalosImageArgs {
	return components.TalosImageArgs{
		ClusterName: "talos-dev", Variant: spec.DefaultImage, TalosVersion: "v1.12.4",
		Image:   spec.Image{Extensions: []string{"qemu-guest-agent"}},
		Targets: []components.ImageTarget{{Host: "ryzen-proxmox", Datastore: "local", Hosts: []string{"ryzen-proxmox"}}},
	}
}

// registerImage runs the component alone; use sees it.
func registerImage(
	t *testing.T, preview bool, args components.TalosImageArgs, use func(*components.TalosImage),
) *pulumitest.Recorder {
	t.Helper()
	var r pulumitest.Recorder
	require.NoError(t, r.Run(preview, func(ctx *pulumi.Context) error {
		image, err := components.NewTalosImage(ctx, "image", &args)
		if err == nil && use != nil {
			use(image)
		}

		return err
	}))

	return &r
}

func TestImageOfDev(t *testing.T) {
	t.Parallel()

	for _, preview := range []bool{true, false} {
		r := registerImage(t, preview, devImage(), nil)
		require.Equal(t, []string{"image-schematic-ce4c980550dd"}, r.Names(schematicType))
		files := r.Names(fileType)
		require.Equal(t, []string{"image-ryzen-proxmox-local-" + devFile}, files)

		assert.Equal(t, map[string]any{
			"contentType": "iso", "datastoreId": "local", "nodeName": "ryzen-proxmox", "fileName": devFile,
			"overwrite": false, "overwriteUnmanaged": false, "uploadTimeout": 1800.0,
			"url": "https://factory.talos.dev/image/ce4c980550dd2ab1b17bbf2b08801c7eb59418eafe8f279833297925d67c7515" +
				"/v1.12.4/nocloud-amd64.iso",
		}, plain(t, r, files[0]))
		file := r.Register(files[0])
		assert.Contains(t, file.GetParent(), components.TalosImageType+"::image")
		assert.Equal(t, []string{"url", "checksum", "checksumAlgorithm"}, file.GetIgnoreChanges())
		require.Len(t, file.GetDependencies(), 1, "the factory has no image before it knows the schematic")
		assert.Contains(t, file.GetDependencies()[0], schematicType)
	}
}

// TestAnImageTakesOverWhatItCanAskAfter shows that a file which the state does not know is downloaded over only where a hook
// asks first which VMs have it in a drive.
func TestAnImageTakesOverWhatItCanAskAfter(t *testing.T) {
	t.Parallel()

	args := devImage()
	r := registerImage(t, false, args, nil)
	file := r.Names(fileType)[0]
	assert.Equal(t, false, plain(t, r, file)["overwriteUnmanaged"])
	assert.Empty(t, r.Register(file).GetHooks().GetBeforeCreate())

	args.Proxmox = spec.Proxmox{Endpoint: spec.Ptr("https://pve.example.com:8006")}
	r = registerImage(t, false, args, nil)
	assert.Equal(t, true, plain(t, r, file)["overwriteUnmanaged"])
	assert.Equal(t, []string{"talos-proxmox:components:TalosImage::image::used/ryzen-proxmox/local"},
		r.Register(file).GetHooks().GetBeforeCreate())
}

// TestNewImageIsANewFile shows why an old file outlives a roll-out: another version is another
// resource, and the engine deletes what is no longer registered after everything else, so that
// drives have let go of it.
func TestNewImageIsANewFile(t *testing.T) {
	t.Parallel()

	old := registerImage(t, false, devImage(), nil)
	for name, edit := range map[string]func(*components.TalosImageArgs){
		"a version":       func(a *components.TalosImageArgs) { a.TalosVersion = "v1.12.5" },
		"an extension":    func(a *components.TalosImageArgs) { a.Image.Extensions = []string{"qemu-guest-agent", "lldp"} },
		"kernel args":     func(a *components.TalosImageArgs) { a.Image.KernelArgs = []string{"a=b"} },
		"a datastore":     func(a *components.TalosImageArgs) { a.Targets[0].Datastore = "nas" },
		"the disk image":  func(a *components.TalosImageArgs) { a.Image.Boot = spec.Ptr("disk") },
		"a variant":       func(a *components.TalosImageArgs) { a.Variant = "gpu" },
		"secure boot":     func(a *components.TalosImageArgs) { a.Image.SecureBoot = spec.Ptr(true) },
		"another cluster": func(a *components.TalosImageArgs) { a.ClusterName = "other" },
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			args := devImage()
			edit(&args)
			now := registerImage(t, false, args, nil)
			require.Len(t, now.Names(fileType), 1)
			assert.NotEqual(t, old.Names(fileType), now.Names(fileType))
		})
	}

	moved := devImage()
	moved.Image.ISOMirror, moved.Image.Checksum = spec.Ptr("https://proxy.example.com/"), spec.Ptr("sha256:"+zeros)
	assert.Equal(t, old.Names(fileType), registerImage(t, false, moved, nil).Names(fileType),
		"another way to the same content is the same file")
}

const zeros = "0000000000000000000000000000000000000000000000000000000000000000"

func TestImageOptions(t *testing.T) {
	t.Parallel()

	args := devImage()
	args.Image.Register, args.Image.Checksum = spec.Ptr(false), spec.Ptr("SHA256:"+zeros)
	args.Image.Boot, args.Image.DiskFormat = spec.Ptr("disk"), spec.Ptr("raw.gz")
	r := registerImage(t, false, args, nil)
	assert.Empty(t, r.Names(schematicType), "ids are pre-seeded where registration is off")
	require.Len(t, r.Names(fileType), 1)
	file := plain(t, r, r.Names(fileType)[0])
	assert.Equal(t, "gz", file["decompressionAlgorithm"])
	assert.Equal(t, false, file["overwrite"], "the packed size is not the file's, and each refresh would replace it")
	assert.Equal(t, "sha256", file["checksumAlgorithm"])
	assert.Equal(t, zeros, file["checksum"])
	assert.Equal(t, "talos-talos-dev-v1.12.4-ce4c980550dd-nocloud-amd64-raw-gz.img", file["fileName"])
}

func TestFileIDs(t *testing.T) {
	t.Parallel()

	args := devImage()
	args.Targets = []components.ImageTarget{
		{Host: "alpha", Datastore: "nas", Hosts: []string{"alpha", "charlie"}}, {Host: "nuc", Datastore: "local", Hosts: []string{"nuc"}},
	}
	registerImage(t, false, args, func(image *components.TalosImage) {
		for _, host := range []string{"alpha", "charlie", "nuc"} {
			_, err := image.FileID(host)
			assert.NoError(t, err)
		}
		_, err := image.FileID("foxtrot")
		assert.EqualError(t, err, `the image has no file on host "foxtrot"`)
	})
}

func TestImageRefusesBadArgs(t *testing.T) {
	t.Parallel()

	args := devImage()
	args.ClusterName, args.Targets = "", nil
	args.Image.Extensions = []string{"qemu-guest-agnt"}
	var r pulumitest.Recorder
	err := r.Run(true, func(ctx *pulumi.Context) error {
		_, err := components.NewTalosImage(ctx, "image", &args)

		return err
	})
	require.ErrorContains(t, err, `image "image": 3 problems
  clusterName: is required
  image.extensions[0]: Talos v1.12.4 has no extension "qemu-guest-agnt"; did you mean siderolabs/qemu-guest-agent?
  targets: must name at least one datastore`)
	assert.Empty(t, r.Names(""))
}

func TestImageTargets(t *testing.T) {
	t.Parallel()

	node := func(name, host, variant string) spec.NamedNode {
		return spec.NamedNode{Name: name, Node: spec.Node{Host: &host, Image: &variant}}
	}
	cfg := spec.Config{
		Proxmox: spec.Proxmox{Hosts: map[string]spec.Host{"nuc": {ImageDatastore: spec.Ptr("usb")}}},
		Images: map[string]spec.Image{
			"default": {Datastore: spec.Ptr("nas"), DatastoreHost: spec.Ptr("alpha")}, "gpu": {Datastore: spec.Ptr("local")},
		},
		Nodes: []spec.NamedNode{
			node("a", "alpha", "default"), node("b", "charlie", "default"), node("c", "charlie", "default"),
			node("d", "nuc", "default"), node("e", "charlie", "gpu"), node("f", "alpha", "gpu"),
		},
	}
	assert.Equal(t, []components.ImageTarget{
		{Host: "alpha", Datastore: "nas", Hosts: []string{"alpha", "charlie"}},
		{Host: "nuc", Datastore: "usb", Hosts: []string{"nuc"}},
	}, components.ImageTargets(cfg, "default"))
	assert.Equal(t, []components.ImageTarget{
		{Host: "charlie", Datastore: "local", Hosts: []string{"charlie"}},
		{Host: "alpha", Datastore: "local", Hosts: []string{"alpha"}},
	}, components.ImageTargets(cfg, "gpu"))
}
