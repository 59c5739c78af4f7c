// SPDX-License-Identifier: Apache-2.0
// Copyright the talos-proxmox authors.

package proxmoxve

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"strconv"
	"strings"

	"github.com/talos-proxmox/talos-proxmox/lab/standin/bridge"
)

// clone copies a VM or template, then gives the copy its own settings and disks.
func (m machine) clone(ctx context.Context, in bridge.Tree) error {
	ctx, cancel := context.WithTimeout(ctx, seconds(in, "timeoutClone"))
	defer cancel()

	source := machine{api: m.api, node: in.Str("clone.nodeName"), id: in.Int("clone.vmId")}
	form := url.Values{"newid": {strconv.Itoa(m.id)}, "full": {bit(in.Bool("clone.full"))}}
	text("name", "name")(in, m.id, form)
	text("poolId", "pool")(in, m.id, form)
	text("clone.datastoreId", "storage")(in, m.id, form)

	if source.node == "" {
		source.node = m.node
	} else if source.node != m.node {
		form.Set("target", m.node)
	}

	var err error
	for range max(in.Int("clone.retries"), 1) {
		if err = m.run(ctx, http.MethodPost, source.path("/clone"), form); err == nil {
			break
		}
	}
	if err != nil {
		return fmt.Errorf("error waiting for VM clone: %w", err)
	}

	if err := m.awaitUnlocked(ctx); err != nil {
		return err
	}

	return m.settleClone(ctx, in)
}

func (m machine) awaitUnlocked(ctx context.Context) error {
	return poll(ctx, taskPoll, func() error {
		s := struct {
			Lock string `json:"lock"`
		}{}
		err := m.get(ctx, m.path("/status/current"), &s)
		if err == nil && s.Lock != "" {
			return errRunning
		}
		return err
	})
}

// settleClone writes the settings of the program over those of the source.
func (m machine) settleClone(ctx context.Context, in bridge.Tree) error {
	config, err := m.config(ctx)
	if err != nil {
		return err
	}

	form := url.Values{}
	for _, encode := range sections() {
		encode(in, m.id, form)
	}
	form.Del("template")
	if order := in.Strs("bootOrders"); len(order) > 0 {
		form.Set("boot", "order="+strings.Join(order, ";"))
	}
	if in.Bool("cdrom.enabled") {
		form.Set(in.Str("cdrom.interface"), cdrom(in))
	}
	if in.Has("initialization") {
		encodeInitialization(in, form)
		if config.cloudInit() == "" {
			form.Set(cloudInitInterface(in), in.Str("initialization.datastoreId")+":cloudinit,media=cdrom")
		}
	}
	for _, d := range in.List("disks") {
		if config[d.Str("interface")] == "" {
			form.Set(d.Str("interface"), encodeNewDisk(d))
		}
	}

	if err := m.do(ctx, http.MethodPut, m.path("/config"), form, nil); err != nil {
		return fmt.Errorf("error updating VM: %w", err)
	}

	for _, d := range in.List("disks") {
		if have, ok := config[d.Str("interface")]; ok {
			if err := m.fitClonedDisk(ctx, d, have); err != nil {
				return err
			}
		}
	}

	return nil
}

func (m machine) fitClonedDisk(ctx context.Context, d bridge.Tree, have string) error {
	size := int(sizeOf(have) / gibibyte)
	if d.Int("size") < size {
		return fmt.Errorf("disk resize fails requests size (%dG) is lower than current size (%d)", d.Int("size"), size)
	}

	if store := d.Str("datastoreId"); store != "" && store != datastoreOf(have) {
		if err := m.moveDisk(ctx, d.Str("interface"), store); err != nil {
			return fmt.Errorf("disk move fails: %w", err)
		}
	}
	if d.Int("size") > size {
		if err := m.resizeDisk(ctx, d.Str("interface"), d.Int("size")); err != nil {
			return fmt.Errorf("disk resize fails: %w", err)
		}
	}

	return nil
}

func (m machine) moveDisk(ctx context.Context, iface, store string) error {
	return m.run(ctx, http.MethodPost, m.path("/move_disk"),
		url.Values{"disk": {iface}, "storage": {store}, "delete": {"1"}})
}

// resizeDisk grows a disk to a size in GiB.
func (m machine) resizeDisk(ctx context.Context, iface string, size int) error {
	return m.run(ctx, http.MethodPut, m.path("/resize"),
		url.Values{"disk": {iface}, "size": {strconv.Itoa(size * gibibyte)}})
}

func deleteVM(ctx context.Context, op *bridge.Op) error {
	a, err := apiOf(op)
	if err != nil {
		return err
	}

	id, err := strconv.Atoi(op.ID)
	if err != nil {
		return fmt.Errorf("the id %q is no VM id", op.ID)
	}

	in := op.State
	m := machine{api: a, node: in.Str("nodeName"), id: id}

	ctx, cancel := context.WithTimeout(ctx, max(seconds(in, "timeoutStopVm"), seconds(in, "timeoutShutdownVm")))
	defer cancel()

	status, err := m.status(ctx)
	if err != nil {
		return err
	}

	if status != "stopped" {
		if in.Bool("stopOnDestroy") {
			err = m.stop(ctx, in)
		} else {
			err = m.shutdown(ctx, in)
		}
		if err != nil {
			return err
		}
	}

	err = m.run(ctx, http.MethodDelete, m.path("/"),
		url.Values{"destroy-unreferenced-disks": {"1"}, "purge": {"1"}})
	if errors.Is(err, errNotFound) {
		return nil
	}
	if err != nil {
		return fmt.Errorf("error waiting for VM deletion: %w", err)
	}

	// Only that it cannot be asked any more says that it is gone.
	if _, err := m.status(ctx); err == nil {
		return fmt.Errorf("failed to delete VM \"%d\"", id)
	}

	return nil
}
