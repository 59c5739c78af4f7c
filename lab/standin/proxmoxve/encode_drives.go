// SPDX-License-Identifier: Apache-2.0
// Copyright the talos-proxmox authors.

package proxmoxve

import (
	"encoding/base64"
	"fmt"
	"net/url"
	"strconv"
	"strings"

	"github.com/talos-proxmox/talos-proxmox/lab/standin/bridge"
)

const (
	gibibyte      = 1 << 30
	defaultFormat = "qcow2"
)

func encode64(s string) string { return base64.StdEncoding.EncodeToString([]byte(s)) }

// newVolume returns the file= part of a disk that is made or attached.
func newVolume(d bridge.Tree) string {
	if p := d.Str("pathInDatastore"); p != "" {
		return d.Str("datastoreId") + ":" + p
	}

	return d.Str("datastoreId") + ":" + strconv.Itoa(d.Int("size"))
}

// diskOptions writes everything but the volume.
func diskOptions(d bridge.Tree) options {
	var o options

	iface := d.Str("interface")
	o.set("aio", d.Str("aio"))
	o.flag("backup", d.Bool("backup"))
	o.number("iops_rd", d.Int("speed.iopsRead"))
	o.number("iops_wr", d.Int("speed.iopsWrite"))
	o.number("iops_rd_max", d.Int("speed.iopsReadBurstable"))
	o.number("iops_wr_max", d.Int("speed.iopsWriteBurstable"))
	if !strings.HasPrefix(iface, "sata") && !strings.HasPrefix(iface, "ide") {
		o.flag("iothread", d.Bool("iothread"))
	}
	o.set("serial", d.Str("serial"))
	if !strings.HasPrefix(iface, "virtio") {
		o.flag("ssd", d.Bool("ssd"))
	}
	o.set("discard", d.Str("discard"))
	o.set("cache", d.Str("cache"))
	o.number("mbps_rd_max", d.Int("speed.readBurstable"))
	o.number("mbps_wr_max", d.Int("speed.writeBurstable"))
	o.number("mbps_rd", d.Int("speed.read"))
	o.number("mbps_wr", d.Int("speed.write"))
	o.flag("replicate", d.Bool("replicate"))

	return o
}

// encodeNewDisk returns a blank disk.
func encodeNewDisk(d bridge.Tree) string {
	o := options{"file=" + newVolume(d)}

	format := d.Str("fileFormat")
	if format == "" {
		format = defaultFormat
	}
	o.set("format", format)
	o.set("size", strconv.Itoa(d.Int("size")*gibibyte))

	return append(o, diskOptions(d)...).String()
}

// encodeDrives writes all drives of a new VM.
func encodeDrives(in bridge.Tree, form url.Values) {
	for _, d := range in.List("disks") {
		if d.Str("fileId") == "" { // others are imported once the VM exists
			form.Set(d.Str("interface"), encodeNewDisk(d))
		}
	}

	if in.Has("initialization") {
		form.Set(cloudInitInterface(in), "file="+in.Str("initialization.datastoreId")+":cloudinit,media=cdrom")
	}
	if in.Bool("cdrom.enabled") {
		form.Set(in.Str("cdrom.interface"), cdrom(in))
	}

	if in.Has("efiDisk") {
		o := options{"file=" + in.Str("efiDisk.datastoreId") + ":1"}
		o.set("format", in.Str("efiDisk.fileFormat"))
		o.set("efitype", in.Str("efiDisk.type"))
		o.flag("pre-enrolled-keys", in.Bool("efiDisk.preEnrolledKeys"))
		form.Set("efidisk0", o.String())
	}
	if in.Has("tpmState") {
		o := options{"file=" + in.Str("tpmState.datastoreId") + ":1"}
		o.set("version", in.Str("tpmState.version"))
		form.Set("tpmstate0", o.String())
	}
}

func cdrom(in bridge.Tree) string {
	id := in.Str("cdrom.fileId")
	if id == "" {
		id = "cdrom"
	}

	return "file=" + id + ",media=cdrom"
}

func cloudInitInterface(in bridge.Tree) string {
	if i := in.Str("initialization.interface"); i != "" {
		return i
	}

	return "ide2"
}

// bootOrder: the CD comes first where the program says nothing, then the first disk of each kind.
func bootOrder(in bridge.Tree) []string {
	if order := in.Strs("bootOrders"); len(order) > 0 {
		return order
	}

	var order []string
	if in.Bool("cdrom.enabled") {
		order = append(order, in.Str("cdrom.interface"))
	}
	for _, first := range []string{"ide0", "sata0", "scsi0", "virtio0"} {
		for _, d := range in.List("disks") {
			if d.Str("interface") == first {
				order = append(order, first)
			}
		}
	}
	if len(in.List("networkDevices")) > 0 {
		order = append(order, "net0")
	}

	return order
}

// encodeInitialization writes cloud-init's settings, not its drive.
func encodeInitialization(in bridge.Tree, form url.Values) {
	init := in.Sub("initialization")
	if init == nil {
		return
	}

	var files options
	files.set("meta", init.Str("metaDataFileId"))
	files.set("network", init.Str("networkDataFileId"))
	files.set("user", init.Str("userDataFileId"))
	files.set("vendor", init.Str("vendorDataFileId"))
	if len(files) > 0 {
		form.Set("cicustom", files.String())
	}

	for i, c := range init.List("ipConfigs") {
		var o options
		o.set("gw", c.Str("ipv4.gateway"))
		o.set("gw6", c.Str("ipv6.gateway"))
		o.set("ip", c.Str("ipv4.address"))
		o.set("ip6", c.Str("ipv6.address"))
		if len(o) > 0 {
			form.Set(fmt.Sprintf("ipconfig%d", i), o.String())
		}
	}

	if servers := init.Strs("dns.servers"); len(servers) > 0 {
		form.Set("nameserver", strings.Join(servers, " "))
	} else {
		text("dns.server", "nameserver")(init, 0, form)
	}
	text("dns.domain", "searchdomain")(init, 0, form)
	text("type", "citype")(init, 0, form)
	text("userAccount.username", "ciuser")(init, 0, form)
	text("userAccount.password", "cipassword")(init, 0, form)

	if keys := init.Strs("userAccount.keys"); len(keys) > 0 {
		// The API wants this one encoded twice.
		form.Set("sshkeys", strings.ReplaceAll(url.QueryEscape(strings.Join(keys, "\n")), "+", "%20"))
	}
}
