// SPDX-License-Identifier: Apache-2.0
// Copyright the talos-proxmox authors.

package proxmoxve

import (
	"context"
	"fmt"
	"net/http"
	"net/url"
	"strconv"
	"strings"

	"github.com/talos-proxmox/talos-proxmox/lab/standin/bridge"
)

// rebootsFor returns the blocks whose change the provider follows with a reboot.
func rebootsFor() []string {
	return []string{
		"acpi", "kvmArguments", "bios", "keyboardLayout", "machine", "tabletDevice", "template", "agent",
		"audioDevice", "bootOrders", "cpu", "disks[*].aio", "efiDisk", "tpmState", "initialization", "hostpcis",
		"numas", "usbs", "memory", "networkDevices", "operatingSystem", "serialDevices", "vga", "scsiHardware",
		"watchdog",
	}
}

// numbered returns the blocks whose surplus devices are deleted: their key and how many there can be.
func numbered() map[string]struct {
	key  string
	most int
} {
	type device = struct {
		key  string
		most int
	}

	return map[string]device{
		"networkDevices": {"net", maxNICs}, "hostpcis": {"hostpci", maxPCI}, "usbs": {"usb", maxUSB},
		"numas": {"numa", maxNUMA}, "serialDevices": {"serial", maxSerial},
	}
}

// update carries out an update of a VM.
type update struct {
	machine
	op      *bridge.Op
	form    url.Values
	del     []string
	stopped bool // it was shut down for the change
	reboot  bool
}

func updateVM(ctx context.Context, op *bridge.Op) (bridge.Tree, error) {
	a, err := apiOf(op)
	if err != nil {
		return nil, err
	}

	id, err := strconv.Atoi(op.ID)
	if err != nil {
		return nil, fmt.Errorf("the id %q is no VM id", op.ID)
	}

	u := &update{
		machine: machine{api: a, node: op.In.Str("nodeName"), id: id}, op: op,
		form: url.Values{}, reboot: op.Changed(rebootsFor()...),
	}

	for _, step := range []func(context.Context) error{
		u.pool, u.migrate, u.collect, u.apply, u.power, u.disks,
	} {
		if err := step(ctx); err != nil {
			return bridge.Tree{"vmId": id}, err
		}
	}

	seen, err := u.observe(ctx, op, merge(op.State, op.In))

	return merge(seen, bridge.Tree{"vmId": id}), err
}

// pool moves the VM between pools.
func (u *update) pool(ctx context.Context) error {
	if !u.op.Changed("poolId") {
		return nil
	}

	if was := u.op.Was.Str("poolId"); was != "" {
		err := u.do(ctx, http.MethodPut, "pools/"+url.PathEscape(was),
			url.Values{"vms": {strconv.Itoa(u.id)}, "delete": {"1"}}, nil)
		if err != nil {
			return fmt.Errorf("while removing VM %d from pool %s: %w", u.id, was, err)
		}
	}
	if now := u.op.In.Str("poolId"); now != "" {
		err := u.do(ctx, http.MethodPut, "pools/"+url.PathEscape(now), url.Values{"vms": {strconv.Itoa(u.id)}}, nil)
		if err != nil {
			return fmt.Errorf("while adding VM %d to pool %s: %w", u.id, now, err)
		}
	}

	return nil
}

func (u *update) migrate(ctx context.Context) error {
	if !u.op.Changed("nodeName") {
		return nil
	}

	ctx, cancel := context.WithTimeout(ctx, seconds(u.op.In, "timeoutMigrate"))
	defer cancel()

	from := machine{api: u.api, node: u.op.Was.Str("nodeName"), id: u.id}
	err := u.run(ctx, http.MethodPost, from.path("/migrate"),
		url.Values{"target": {u.node}, "online": {"1"}, "with-local-disks": {"1"}})
	if err != nil {
		return fmt.Errorf("error waiting for VM migration: %w", err)
	}

	return nil
}

// collect gathers what goes into the one change of the configuration.
func (u *update) collect(ctx context.Context) error {
	in, op := u.op.In, u.op

	config, err := u.config(ctx)
	if err != nil {
		return err
	}

	for name, encode := range sections() {
		if op.Changed(name) {
			encode(in, u.id, u.form)
			u.surplus(name)
		}
	}

	if op.Changed("description") {
		u.form.Set("description", in.Str("description"))
	}
	if name := in.Str("name"); name != "" {
		u.form.Set("name", name)
	}
	if op.Changed("bootOrders") {
		u.form.Set("boot", "order="+strings.Join(in.Strs("bootOrders"), ";"))
	}
	if op.Changed("cdrom") {
		u.collectCD()
	}
	if op.Changed("disks") {
		u.collectDisks(config)
	}
	if op.Changed("initialization") {
		return u.collectInitialization(ctx, config)
	}

	return nil
}

// surplus deletes settings that the new inputs no longer have.
func (u *update) surplus(name string) {
	if d, ok := numbered()[name]; ok {
		for i := range d.most {
			if key := d.key + strconv.Itoa(i); !u.form.Has(key) {
				u.del = append(u.del, key)
			}
		}
	}

	for _, key := range map[string][]string{
		"cpu":              {"vcpus", "cpulimit", "affinity"},
		"memory":           {"hugepages", "keephugepages"},
		"startup":          {"startup"},
		"smbios":           {"smbios1"},
		"watchdog":         {"watchdog"},
		"audioDevice":      {"audio0"},
		"hookScriptFileId": {"hookscript"}, "kvmArguments": {"args"},
		"machine": {"machine"},
	}[name] {
		optional := key == "affinity" || key == "hugepages" || key == "keephugepages"
		path := map[string]string{
			"affinity": "cpu.affinity", "hugepages": "memory.hugepages", "keephugepages": "memory.keepHugepages",
		}[key]
		if !u.form.Has(key) && (!optional || u.op.Changed(path)) {
			u.del = append(u.del, key)
		}
	}
}

// collectCD swaps the medium, or moves the drive to another interface.
func (u *update) collectCD() {
	in := u.op.In

	if was := u.op.Was.Str("cdrom.interface"); was != "" && was != in.Str("cdrom.interface") {
		u.del = append(u.del, was)
	}
	if !in.Bool("cdrom.enabled") && in.Str("cdrom.fileId") == "" {
		u.del = append(u.del, in.Str("cdrom.interface")) // and it is set below, which Proxmox VE refuses
	}
	u.form.Set(in.Str("cdrom.interface"), cdrom(in))
}

// collectDisks writes options of disks that are there, and adds blank ones.
func (u *update) collectDisks(config vmConfig) {
	for _, d := range u.op.In.List("disks") {
		iface := d.Str("interface")

		have, ok := config[iface]
		if !ok {
			u.form.Set(iface, encodeNewDisk(d))
			continue
		}

		// The volume, its format and size stay as they are: resizing and moving come later.
		o := options{"file=" + volumeOf(have)}
		o.set("format", optionOf(have, "format"))
		o.set("size", inBytes(optionOf(have, "size")))
		u.form.Set(iface, append(o, diskOptions(d)...).String())
	}
}

// collectInitialization keeps the cloud-init drive, or makes a new one, for which the VM must be off.
func (u *update) collectInitialization(ctx context.Context, config vmConfig) error {
	in := u.op.In
	if !in.Has("initialization") {
		return nil
	}
	encodeInitialization(in, u.form)

	have, want := config.cloudInit(), in.Str("initialization.interface")
	if want == "" {
		want = have
	}
	if want == "" {
		want = "ide2"
	}

	was := u.op.Was.Str("initialization.datastoreId")
	if have != "" && have == want && was == in.Str("initialization.datastoreId") {
		u.form.Set(want, "file="+volumeOf(config[have])+",media=cdrom")
		return nil
	}

	if err := u.shutdown(ctx, in); err != nil {
		return err
	}
	u.stopped = true

	gone := []string{want}
	if have != "" && have != want {
		gone = append(gone, have)
	}
	err := u.do(ctx, http.MethodPut, u.path("/config"), url.Values{"delete": {strings.Join(gone, ",")}}, nil)
	if err != nil {
		return fmt.Errorf("error updating VM: %w", err)
	}
	u.form.Set(want, "file="+in.Str("initialization.datastoreId")+":cloudinit,media=cdrom")

	return nil
}

func (u *update) apply(ctx context.Context) error {
	if len(u.del) > 0 {
		u.form.Set("delete", strings.Join(u.del, ","))
	}

	if err := u.do(ctx, http.MethodPut, u.path("/config"), u.form, nil); err != nil {
		return fmt.Errorf("error updating VM: %w", err)
	}

	return nil
}
