// SPDX-License-Identifier: Apache-2.0
// Copyright the talos-proxmox authors.

package site

import (
	"fmt"
	"path"
	"regexp"
	"slices"
	"strconv"
	"strings"

	"github.com/talos-proxmox/talos-proxmox/lab/site/pve"
)

const (
	fourMiB = int64(4) << 20
	// varsSize is the size of EFI variables and TPM states.
	varsSize = fourMiB
)

// newDisk is the request for a new disk, "local-lvm:10".
var newDisk = regexp.MustCompile(`^([^:/\s]+):(\d+(\.\d+)?)$`)

// attach turns a drive as requested into one as stored: it makes the volume that the request asks for,
// or checks that the named one is there. Volumes it makes are added to made. The caller holds the lock.
func (c *Cluster) attach(v *vm, key, value, user string, made *[]*volume) (string, error) {
	p := pve.ParseProperties("file", value)
	file := p.Get("file")

	switch {
	case file == "none" || file == "cdrom":
		p.Del("size")
		p.Set("media", "cdrom")

		return p.String(), nil
	case strings.HasSuffix(file, ":cloudinit"):
		return c.attachCloudInit(v, p, strings.TrimSuffix(file, ":cloudinit"), made)
	case newDisk.MatchString(file) && !strings.HasPrefix(key, "unused"):
		return c.attachNew(v, key, p, user, made)
	case p.Get("import-from") != "":
		return "", pve.Invalid(key, "'import-from' requires special syntax - use <storage ID>:0,import-from=<source>")
	case strings.HasPrefix(file, "/"):
		return "", pve.Errorf("volume %s does not exist", file)
	}

	vol, err := c.volume(v.Host, file)
	if err != nil {
		return "", err
	}
	isCD := p.Get("media") == "cdrom"
	if vol.Content == "iso" && !isCD {
		return "", pve.Invalid(key, "explicit 'media=cdrom' is required for iso images")
	}
	// A volume of another VM may be used: it stays that VM's, and is neither moved nor removed with this one.
	p.Del("format")
	p.Set("size", pve.FormatSize(vol.Size))

	return p.String(), nil
}

func (c *Cluster) attachCloudInit(v *vm, p pve.Properties, storage string, made *[]*volume) (string, error) {
	_, d, err := c.storage(v.Host, storage)
	if err != nil {
		return "", err
	}

	name := fmt.Sprintf("vm-%d-cloudinit", v.ID)
	format := "raw"
	if d.fileBased() {
		name, format = fmt.Sprintf("%d/%s.qcow2", v.ID, name), "qcow2"
	}
	if _, ok := c.c.Volumes[volumeKey(d, v.Host, name)]; ok {
		return "", fmt.Errorf("lvcreate 'pve/%s' error:   Logical Volume \"%s\" already exists in volume group \"pve\"", name, name)
	}
	vol := c.add(d, v.Host, volume{Name: name, Content: "images", Format: format, Size: fourMiB, VMID: v.ID})
	*made = append(*made, vol)

	p.Set("file", vol.id())
	p.Set("media", "cdrom")
	p.Del("size")
	p.Del("format")

	return p.String(), nil
}

func (c *Cluster) attachNew(v *vm, key string, p pve.Properties, user string, made *[]*volume) (string, error) {
	m := newDisk.FindStringSubmatch(p.Get("file"))
	d, err := c.imageStorage(v.Host, m[1])
	if err != nil {
		return "", err
	}

	gibs, err := strconv.ParseFloat(m[2], 64)
	if err != nil {
		return "", fmt.Errorf("unable to parse size %q", m[2])
	}
	size := int64(gibs * float64(gib))
	if key == "efidisk0" || key == "tpmstate0" {
		size = varsSize
	}

	format := p.Get("format")
	if format == "" {
		format = "raw"
	}
	if !d.fileBased() && format != "raw" {
		return "", fmt.Errorf("unsupported format '%s' at /usr/share/perl5/PVE/Storage/LvmThinPlugin.pm line 87.",
			format) // Proxmox VE's own words
	}

	vol := volume{Name: c.diskName(d, v, format), Content: "images", Format: format, Size: size, VMID: v.ID}
	var data []byte
	if from := p.Get("import-from"); from != "" {
		if gibs != 0 {
			return "", pve.Invalid(key, "'import-from' requires special syntax - use <storage ID>:0,import-from=<source>")
		}
		if err = c.importSource(v.Host, key, from, user, &vol); err != nil {
			return "", err
		}
	}
	if vol.Size == 0 {
		return "", fmt.Errorf("unable to create image: got invalid size of 0 bytes")
	}
	if c.s.full(v.Host, d) {
		return "", noSpace(d, vol.Name)
	}
	kept := c.add(d, v.Host, vol)
	*made = append(*made, kept)
	if data != nil {
		if err := writeFile(c.file(kept), data); err != nil {
			return "", err
		}
	}

	p.Set("file", kept.id())
	p.Set("size", pve.FormatSize(kept.Size))
	p.Del("format")
	p.Del("import-from")

	return p.String(), nil
}

// importSource reads the image that a disk is made from. A path on the host, which is what stands for
// `qm importdisk` over SSH, is for root alone.
func (c *Cluster) importSource(host, key, from, user string, vol *volume) error {
	src, err := c.volume(host, from)
	if strings.HasPrefix(from, "/") {
		if user != "root@pam" {
			return fmt.Errorf("Only root can pass arbitrary filesystem paths.") // Proxmox VE's own words
		}
		src, err = c.byPath(host, from)
	}
	if err != nil {
		return err
	}
	if src.Content == "iso" && !strings.HasPrefix(from, "/") {
		return pve.Invalid(key, "%s has wrong type 'iso' - needs to be 'images' or 'import'", from)
	}

	data, err := c.read(src)
	if err != nil {
		return err
	}
	vol.Image = bootable(data)
	vol.Size = max(vol.Size, src.Size, importedSize)

	return nil
}

// importedSize is the virtual size of Talos's disk images.
const importedSize = int64(1306525696)

func (c *Cluster) byPath(host, file string) (*volume, error) {
	for _, v := range c.c.Volumes {
		i := slices.IndexFunc(c.c.Storages, func(d StorageDef) bool { return d.ID == v.Storage })
		if i >= 0 && (v.Host == "" || v.Host == host) && info(c.c.Storages[i], v).Path == path.Clean(file) {
			return v, nil
		}
	}

	return nil, pve.Errorf("can't find file '%s'", file)
}

// imageStorage returns a storage of the host that takes disks.
func (c *Cluster) imageStorage(host, id string) (StorageDef, error) {
	_, d, err := c.storage(host, id)
	if err != nil {
		return d, err
	}
	if !d.holds("images") {
		return d, pve.Invalid("storage", "storage '%s' does not support vm images", id)
	}

	return d, nil
}

// diskName returns the first free one.
func (c *Cluster) diskName(d StorageDef, v *vm, format string) string {
	for i := 0; ; i++ {
		name := fmt.Sprintf("vm-%d-disk-%d", v.ID, i)
		if d.fileBased() {
			name = fmt.Sprintf("%d/%s.%s", v.ID, name, format)
		}
		if _, taken := c.c.Volumes[volumeKey(d, v.Host, name)]; !taken {
			return name
		}
	}
}

// detach takes a drive out of the configuration: disks become unused, CDs and cloud-init drives go.
func (c *Cluster) detach(v *vm, key string) error {
	p := pve.ParseProperties("file", v.Config[key])
	delete(v.Config, key)

	vol, err := c.volume(v.Host, p.Get("file"))
	if err != nil || vol.VMID != v.ID || uses(v, vol.id()) {
		return nil //nolint:nilerr // nothing of this VM's is left behind
	}
	if strings.HasPrefix(key, "unused") || strings.Contains(vol.Name, "-cloudinit") {
		return c.free(vol)
	}

	for i := 0; ; i++ {
		unused := fmt.Sprintf("unused%d", i)
		if _, taken := v.Config[unused]; !taken {
			v.Config[unused] = vol.id()

			return nil
		}
	}
}
