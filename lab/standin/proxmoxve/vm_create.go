// SPDX-License-Identifier: Apache-2.0
// Copyright the talos-proxmox authors.

package proxmoxve

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"regexp"
	"strconv"
	"strings"
	"time"

	"github.com/talos-proxmox/talos-proxmox/lab/standin/bridge"
)

// machine names a VM and the API that has it.
type machine struct {
	*api
	node string
	id   int
}

func (m machine) path(rest string) string {
	return fmt.Sprintf("nodes/%s/qemu/%d%s", m.node, m.id, rest)
}

func seconds(in bridge.Tree, path string) time.Duration {
	return time.Duration(in.Int(path)) * time.Second
}

var diskInterface = regexp.MustCompile(`^(ide|sata|scsi|virtio)\d+$`)

func createVM(ctx context.Context, op *bridge.Op) (string, bridge.Tree, error) {
	a, err := apiOf(op)
	if err != nil {
		return "", nil, err
	}

	ctx, cancel := context.WithTimeout(ctx, seconds(op.In, "timeoutCreate"))
	defer cancel()

	for _, d := range op.In.List("disks") {
		if iface := d.Str("interface"); !diskInterface.MatchString(iface) {
			return "", nil, fmt.Errorf("Defined disk interface not supported. Interface was %s, "+ // the provider's words
				"but only [ide sata scsi virtio] are supported", iface)
		}
	}

	m := machine{api: a, node: op.In.Str("nodeName"), id: op.In.Int("vmId")}
	release, err := m.claimID(ctx)
	if err != nil {
		return "", nil, err
	}

	if op.In.Has("clone") {
		err = m.clone(ctx, op.In)
	} else {
		err = m.create(ctx, op.In)
	}
	release()
	if err != nil {
		return "", nil, err
	}

	id, out := strconv.Itoa(m.id), bridge.Tree{"vmId": m.id}
	if !op.In.Has("clone") {
		if err := m.importDisks(ctx, op.In); err != nil {
			return id, out, err
		}
	}
	if err := m.firstStart(ctx, op); err != nil {
		return id, out, err
	}

	seen, err := m.observe(ctx, op, op.In)
	if err != nil {
		return id, out, err
	}

	return id, merge(seen, out), nil
}

// claimID finds a free id where none was given; nobody else of this provider gets it meanwhile.
func (m *machine) claimID(ctx context.Context) (release func(), err error) {
	if m.id > 0 {
		return func() {}, nil
	}

	m.ids.Lock()

	var next any
	if err := m.get(ctx, "cluster/nextid", &next); err != nil {
		m.ids.Unlock()
		return nil, fmt.Errorf("unable to retrieve the next available VM identifier: %w", err)
	}
	m.id = number(next)

	return m.ids.Unlock, nil
}

// create makes the VM; a call that is refused is tried three times, as the provider does.
func (m machine) create(ctx context.Context, in bridge.Tree) error {
	const attempts = 3

	form := url.Values{"vmid": {strconv.Itoa(m.id)}}
	for name, encode := range sections() {
		if name == "tags" && len(in.Strs("tags")) == 0 {
			continue
		}
		encode(in, m.id, form)
	}
	text("name", "name")(in, m.id, form)
	text("poolId", "pool")(in, m.id, form)
	if order := bootOrder(in); len(order) > 0 {
		form.Set("boot", "order="+strings.Join(order, ";"))
	}
	encodeDrives(in, form)
	encodeInitialization(in, form)

	upid, err := m.submit(ctx, form, attempts)
	if err != nil {
		return fmt.Errorf("error creating VM: %w", err)
	}
	exit, err := m.await(ctx, upid)
	if err == nil && exit != "OK" {
		err = fmt.Errorf("task %q failed to complete with exit code: %s", upid, exit)
	}
	if err != nil {
		return fmt.Errorf("error waiting for VM creation: %w", err)
	}

	return nil
}

// submit asks for the VM and returns the task's id.
func (m machine) submit(ctx context.Context, form url.Values, attempts int) (string, error) {
	all := errors.New("All attempts fail:") // the provider's words
	for i := 1; i <= attempts; i++ {
		var upid string
		err := m.do(ctx, http.MethodPost, "nodes/"+m.node+"/qemu", form, &upid)
		if err == nil {
			return upid, nil
		}
		if ctx.Err() != nil {
			return "", err
		}
		all = fmt.Errorf("%w\n#%d: %w", all, i, err)
	}

	return "", all
}

// firstStart starts a new VM unless it is to stay off.
func (m machine) firstStart(ctx context.Context, op *bridge.Op) error {
	if !op.In.Bool("started") || op.In.Bool("template") {
		return nil
	}

	if err := m.start(ctx, op); err != nil {
		return err
	}
	if op.In.Bool("reboot") {
		return m.reboot(ctx, op.In)
	}

	return nil
}

// start waits until the VM runs; warnings of the task are shown.
func (m machine) start(ctx context.Context, op *bridge.Op) error {
	limit := op.In.Int("timeoutStartVm")
	ctx, cancel := context.WithTimeout(ctx, time.Duration(limit)*time.Second)
	defer cancel()

	log, err := m.runLogged(ctx, http.MethodPost, m.path("/status/start"),
		url.Values{"timeout": {strconv.Itoa(limit)}}, true)
	if err != nil {
		return fmt.Errorf("error waiting for VM start: %w", err)
	}
	if len(log) > 0 {
		op.Warn("the VM startup task finished with a warning, task log:\n\n\t| %s", strings.Join(log, "\n\t| "))
	}

	return m.awaitStatus(ctx, "running")
}

func (m machine) reboot(ctx context.Context, in bridge.Tree) error {
	form := url.Values{"timeout": {strconv.Itoa(in.Int("timeoutReboot"))}}
	if err := m.run(ctx, http.MethodPost, m.path("/status/reboot"), form); err != nil {
		return fmt.Errorf("error waiting for VM reboot: %w", err)
	}

	return nil
}

func (m machine) shutdown(ctx context.Context, in bridge.Tree) error {
	limit := in.Int("timeoutShutdownVm")
	ctx, cancel := context.WithTimeout(ctx, time.Duration(limit)*time.Second)
	defer cancel()

	form := url.Values{"forceStop": {"1"}, "timeout": {strconv.Itoa(limit)}}
	if err := m.run(ctx, http.MethodPost, m.path("/status/shutdown"), form); err != nil {
		return fmt.Errorf("error waiting for VM shutdown: %w", err)
	}

	return m.awaitStatus(ctx, "stopped")
}

func (m machine) stop(ctx context.Context, in bridge.Tree) error {
	ctx, cancel := context.WithTimeout(ctx, seconds(in, "timeoutStopVm"))
	defer cancel()

	if err := m.run(ctx, http.MethodPost, m.path("/status/stop"), nil); err != nil {
		return fmt.Errorf("error waiting for VM stop: %w", err)
	}

	return m.awaitStatus(ctx, "stopped")
}

func (m machine) status(ctx context.Context) (string, error) {
	s := struct {
		Status string `json:"status"`
	}{}
	err := m.get(ctx, m.path("/status/current"), &s)

	return s.Status, err
}

func (m machine) awaitStatus(ctx context.Context, want string) error {
	err := poll(ctx, taskPoll, func() error {
		have, err := m.status(ctx)
		if err == nil && have != want {
			return errRunning
		}
		return err
	})

	switch {
	case errors.Is(err, context.DeadlineExceeded):
		return fmt.Errorf("timeout while waiting for VM %d to enter the status %q", m.id, want)
	case err != nil:
		return fmt.Errorf("error waiting for VM %d to enter the status %q: %w", m.id, want, err)
	}

	return nil
}
