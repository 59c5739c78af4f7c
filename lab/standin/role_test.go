// SPDX-License-Identifier: Apache-2.0
// Copyright the talos-proxmox authors.

package standin_test

import (
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/pulumi/pulumi/sdk/v3/go/common/resource"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/talos-proxmox/talos-proxmox/lab/proxmox"
	"github.com/talos-proxmox/talos-proxmox/lab/site"
	"github.com/talos-proxmox/talos-proxmox/lab/standin/bridge"
)

// guide is the page that tells users which role their token needs.
var guide = filepath.Join("..", "..", "docs", "proxmox.md")

// privilege holds a row of the guide's table: what it is for, and what it grants.
type privilege struct {
	what   string
	grants proxmox.Grants
}

// privilegeTable returns the rows of the guide's table.
func privilegeTable(t *testing.T) []privilege {
	t.Helper()

	text, err := os.ReadFile(guide)
	require.NoError(t, err)
	_, table, ok := strings.Cut(string(text), "| Privilege | On | For |")
	require.True(t, ok, "the table is gone from %s", guide)
	table, _, _ = strings.Cut(table, "\n\n")

	code := regexp.MustCompile("`([^`]+)`")
	places := strings.NewReplacer("<image datastore>", "local", "<VM datastore>", "local-lvm", "<pool>", "k8s", "<name>", "gpu")
	var rows []privilege
	for line := range strings.Lines(table) {
		cells := strings.Split(line, "|")
		if len(cells) < 5 || strings.HasPrefix(cells[1], "---") {
			continue
		}
		var privileges []string
		for _, m := range code.FindAllStringSubmatch(cells[1], -1) {
			name := m[1]
			if strings.HasPrefix(name, ".") { // `VM.Config.CDROM`, `.CPU`
				name = "VM.Config" + name
			}
			privileges = append(privileges, name)
		}
		granted := proxmox.Grants{}
		for _, m := range code.FindAllStringSubmatch(cells[2], -1) {
			path := places.Replace(m[1])
			granted[path] = privileges
		}
		rows = append(rows, privilege{strings.TrimSpace(cells[3]), granted})
	}

	return rows
}

// together returns grants of several rows.
func together(rows ...proxmox.Grants) proxmox.Grants {
	all := proxmox.Grants{}
	for _, row := range rows {
		for path, privileges := range row {
			all[path] = append(slices.Clone(all[path]), privileges...)
		}
	}

	return all
}

// always returns what every stack needs: the rows before that of the agent, but those of two settings.
func always(t *testing.T) proxmox.Grants {
	t.Helper()

	var rows []proxmox.Grants
	for _, row := range privilegeTable(t) {
		if strings.Contains(row.what, "asking the guest agent") {
			return together(rows...)
		}
		if !strings.Contains(row.what, "changes how the host behaves") && !strings.Contains(row.what, "keepOnRebuild") {
			rows = append(rows, row.grants)
		}
	}
	require.Fail(t, "the row of the agent is gone", guide)

	return nil
}

// programsVM returns the inputs of a VM as the program registers it.
func programsVM(t *testing.T) bridge.Tree {
	t.Helper()

	text, err := os.ReadFile(filepath.Join("..", "..", "components", "testdata", "node-dev.json"))
	require.NoError(t, err)
	var all map[string]map[string]any
	require.NoError(t, json.Unmarshal(text, &all))
	args := bridge.TreeOf(resource.NewPropertyMapFromMap(all["ctrl-00-vm"]))
	args["agent"] = bridge.Tree{"enabled": false}
	args["nodeName"] = "alpha"
	args["networkDevices"] = []bridge.Tree{{"bridge": "vmbr0", "macAddress": "BC:24:11:00:08:00"}}

	return args
}

// step returns a provider's call, with what went wrong.
func (e engine) step(typ, name string, args bridge.Tree) (in, out resource.PropertyMap, id string, err error) {
	e.t.Helper()

	in, problems := e.check(urn(typ, name), args.Properties(), nil)
	if len(problems) > 0 {
		return nil, nil, "", errors.New(strings.Join(problems, "; "))
	}
	id, out, err = e.create(urn(typ, name), in, false)

	return in, out, id, err
}

// life returns what happens to an image and a VM of the program from beginning to end.
func life(e engine, web string, vm bridge.Tree) error {
	e.t.Helper()

	fileIn, fileOut, fileID, err := e.step(fileToken, "image", bridge.Tree{
		"nodeName": "alpha", "datastoreId": "local", "contentType": "iso", "url": web + "/talos.iso", "overwrite": false,
	})
	if err != nil {
		return fmt.Errorf("image: %w", err)
	}
	if e.read(urn(fileToken, "image"), fileID, fileIn, fileOut).GetId() == "" {
		return errors.New("image: it is not found again")
	}

	in, out, id, err := e.step(vmToken, "cp1", vm)
	if err != nil {
		return fmt.Errorf("creation: %w", err)
	}
	if e.read(urn(vmToken, "cp1"), id, in, out).GetId() == "" {
		return errors.New("creation: it is not found again")
	}
	for _, edit := range []struct {
		what  string
		value any
	}{
		{"cpu", bridge.Tree{"cores": 4, "type": "host"}},
		{"memory", bridge.Tree{"dedicated": 4096}},
		{"description", "a node"},
		{"tabletDevice", true},
		{"cdrom", bridge.Tree{"enabled": true, "fileId": "none", "interface": "ide0"}},
		{"networkDevices", []bridge.Tree{{"bridge": "vmbr1", "macAddress": "BC:24:11:00:08:00"}}},
		{"disks", []bridge.Tree{with(vm.List("disks")[0], "size", 20)}},
	} {
		vm = with(vm, edit.what, edit.value)
		next, problems := e.check(urn(vmToken, "cp1"), vm.Properties(), in)
		if len(problems) > 0 {
			return errors.New(strings.Join(problems, "; "))
		}
		if out, err = e.update(urn(vmToken, "cp1"), id, in, out, next); err != nil {
			return fmt.Errorf("%s: %w", edit.what, err)
		}
		in = next
	}
	if err := e.remove(urn(vmToken, "cp1"), id, in, out); err != nil {
		return fmt.Errorf("removal: %w", err)
	}
	if err := e.remove(urn(fileToken, "image"), fileID, fileIn, fileOut); err != nil {
		return fmt.Errorf("removal of the image: %w", err)
	}

	return nil
}

// TestTheGuidesRoleIsEnough lets the provider do with a VM of the program whatever the program asks for, by a token
// that may do what docs/proxmox.md says, and then with each privilege taken away.
func TestTheGuidesRoleIsEnough(t *testing.T) {
	t.Parallel()

	granted := always(t)
	e, _, web := onSite(t, granted)
	require.NoError(t, life(e, web, programsVM(t)))

	// The command in the guide grants the same at "/".
	text, err := os.ReadFile(guide)
	require.NoError(t, err)
	command := regexp.MustCompile(`(?s)pveum role add Talos -privs "([^"]+)"`).FindSubmatch(text)
	require.NotNil(t, command)
	role := strings.Fields(strings.ReplaceAll(string(command[1]), "\\\n", " "))
	want := map[string]bool{}
	for _, privileges := range granted {
		for _, p := range privileges {
			want[p] = true
		}
	}
	for _, p := range []string{
		"VM.GuestAgent.Audit", // an agent, which this VM has not
		"VM.Migrate",          // a new host, which it never gets
	} {
		want[p] = true
	}
	slices.Sort(role)
	assert.Equal(t, slices.Sorted(maps.Keys(want)), role)

	// Proxmox VE takes another privilege for these.
	spare := map[string]string{
		"/storage/local-lvm Datastore.Audit": "Datastore.AllocateSpace does", "/vms VM.Config.Cloudinit": "VM.Config.Network does",
	}
	for path, privileges := range granted {
		for _, p := range privileges {
			t.Run(path+" "+p, func(t *testing.T) {
				t.Parallel()

				less := together(granted)
				less[path] = slices.DeleteFunc(less[path], func(have string) bool { return have == p })
				e, _, web := onSite(t, less)
				err := life(e, web, programsVM(t))
				if why, ok := spare[path+" "+p]; ok {
					require.NoError(t, err, why)

					return
				}
				require.Error(t, err, "it is not needed")
				if p != "VM.Audit" { // a VM that may not be seen is none
					assert.Contains(t, err.Error(), "Permission check failed")
				}
				if !slices.Contains([]string{"VM.Audit", "VM.Allocate", "Sys.Audit", "Sys.Modify"}, p) { // there it names none
					assert.Contains(t, err.Error(), p)
				}
			})
		}
	}
}

// row returns the guide's row whose third column has the text.
func row(t *testing.T, text string) proxmox.Grants {
	t.Helper()

	for _, row := range privilegeTable(t) {
		if strings.Contains(row.what, text) {
			return row.grants
		}
	}
	require.Failf(t, "no row", "%s has no row for %s", guide, text)

	return nil
}

// TestTheGuidesPrivilegesOfSettings: what a setting needs beyond the role is what the guide says of it.
func TestTheGuidesPrivilegesOfSettings(t *testing.T) {
	t.Parallel()

	for name, c := range map[string]struct {
		row  string
		want string // without the row
		do   func(e engine, s *site.Site) error
	}{
		"another host": {"a new `host`", "Permission check failed (/vms/800, VM.Migrate)", func(e engine, _ *site.Site) error {
			vm := programsVM(e.t)
			vm["cdrom"] = bridge.Tree{"enabled": true, "fileId": "none", "interface": "ide0"}
			e.ignore = []string{"disks[0].speed"} // as the program does
			in, out, id, err := e.step(vmToken, "cp1", vm)
			if err != nil {
				return err
			}
			next, _ := e.check(urn(vmToken, "cp1"), with(vm, "nodeName", "charlie").Properties(), in)
			_, err = e.update(urn(vmToken, "cp1"), id, in, out, next)

			return err
		}},
		"a pool": {"`pool`", "Permission check failed (/pool/k8s, Pool.Allocate)", func(e engine, _ *site.Site) error {
			_, _, _, err := e.step("proxmoxve:Permission/pool:Pool", "pool", bridge.Tree{"poolId": "k8s"})

			return err
		}},
		"high availability": {"`ha`", "Permission check failed (/, Sys.Console)", func(e engine, _ *site.Site) error {
			vm := programsVM(e.t)
			delete(vm, "cdrom")
			vm["bootOrders"] = []string{"scsi0"}
			if _, _, _, err := e.step(vmToken, "cp1", vm); err != nil {
				return err
			}
			_, _, _, err := e.step("proxmoxve:HA/hAResource:HAResource", "ha", bridge.Tree{"resourceId": "vm:800"})

			return err
		}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()

			e, s, _ := onSite(t, always(t))
			require.ErrorContains(t, c.do(e, s), c.want)
			e, s, _ = onSite(t, together(always(t), row(t, c.row)))
			require.NoError(t, c.do(e, s))
		})
	}
}
