// SPDX-License-Identifier: Apache-2.0
// Copyright the talos-proxmox authors.

package site

import (
	"context"
	"fmt"
	"strconv"
	"time"

	"github.com/talos-proxmox/talos-proxmox/lab/site/pve"
)

// lockSuspended holds a VM whose memory lies on a disk; starting it resumes it.
const lockSuspended = "suspended"

// Start powers a VM on and returns the task's UPID.
func (c *Cluster) Start(host string, id int, user string) (string, error) {
	h, err := c.hostNamed(host)
	if err != nil {
		return "", err
	}

	if upid, managed := c.askHA(h.Name, id, "start", haStarted, user); managed {
		return upid, nil
	}

	return c.startTask(h.Name, id, user), nil
}

func (c *Cluster) startTask(host string, id int, user string) string {
	return c.s.spawn(host, "qmstart", strconv.Itoa(id), user, func(ctx context.Context, _ sayf) error {
		v, err := c.findLocked(host, id)
		if err != nil {
			return err
		}

		return c.start(ctx, v)
	})
}

func (c *Cluster) hostNamed(name string) (HostDef, error) {
	c.s.mu.Lock()
	defer c.s.mu.Unlock()

	return c.host(name)
}

func (c *Cluster) findLocked(host string, id int) (*vm, error) {
	c.s.mu.Lock()
	defer c.s.mu.Unlock()

	return c.find(host, id)
}

// known finds a VM for a call that acts on what runs.
func (c *Cluster) known(host string, id int) (*vm, error) {
	v, err := c.findLocked(host, id)
	if err != nil {
		return nil, pve.Errorf("unable to find configuration file for VM %d on node '%s'", id, host)
	}

	return v, nil
}

// held fails when a lock holds a VM that runs.
func (c *Cluster) held(v *vm) error {
	c.s.mu.Lock()
	defer c.s.mu.Unlock()

	if c.s.running[vmKey{c.c.Name, v.ID}] == nil {
		return nil
	}

	return v.unlocked()
}

func (c *Cluster) start(ctx context.Context, v *vm) error {
	defer c.lockVM(v.ID)()
	if err := c.s.opts.Clock.Sleep(ctx, startTime); err != nil {
		return err
	}

	c.s.mu.Lock()
	defer c.s.mu.Unlock()

	return c.switchOn(v)
}

// PowerOn switches a VM on behind the API's back, whatever holds it.
func (c *Cluster) PowerOn(id int) error {
	c.s.mu.Lock()
	defer c.s.mu.Unlock()

	v, ok := c.c.VMs[id]
	if !ok {
		return pve.Errorf("unable to find configuration file for VM %d", id)
	}
	if c.s.running[vmKey{c.c.Name, id}] != nil {
		return nil
	}
	held := v.Lock
	v.Lock = ""
	err := c.switchOn(v)
	v.Lock = held

	return err
}

// switchOn returns what a start does. The caller holds the lock.
func (c *Cluster) switchOn(v *vm) error {
	switch {
	case c.s.down(v.Host): // a task that was under way when the power went
		return pve.Errorf("host %s has no power", v.Host)
	case c.c.VMs[v.ID] != v:
		return pve.Errorf("Configuration file 'nodes/%s/qemu-server/%d.conf' does not exist", v.Host, v.ID)
	case v.Lock == "backup" && c.s.running[vmKey{c.c.Name, v.ID}] != nil: // a backup started it to read its disks
		return nil
	case v.Lock != "" && v.Lock != lockSuspended:
		return v.unlocked()
	case pve.IsTrue(v.Config["template"]):
		return pve.Errorf("you can't start a vm if it's a template")
	case c.s.running[vmKey{c.c.Name, v.ID}] != nil:
		return pve.Errorf("VM %d already running", v.ID)
	}
	v.applyPending()
	if err := c.s.powerOn(c.c, v); err != nil {
		return err
	}
	v.On, v.Started, v.Lock = true, time.Now().Unix(), ""

	return c.s.save()
}

// Stop cuts a VM's power and returns the task's UPID. Stopping one that is off is no error.
func (c *Cluster) Stop(host string, id int, user string) (string, error) {
	h, err := c.hostNamed(host)
	if err != nil {
		return "", err
	}

	if upid, managed := c.askHA(h.Name, id, "stop", haStopped, user); managed {
		return upid, nil
	}

	return c.s.spawn(h.Name, "qmstop", strconv.Itoa(id), user, func(ctx context.Context, _ sayf) error {
		defer c.lockVM(id)()
		v, err := c.known(h.Name, id)
		if err == nil {
			err = c.held(v)
		}
		if err != nil {
			return err
		}

		return c.cut(ctx, id)
	}), nil
}

func (c *Cluster) process(id int) *process {
	c.s.mu.Lock()
	defer c.s.mu.Unlock()

	return c.s.running[vmKey{c.c.Name, id}]
}

func (c *Cluster) cut(ctx context.Context, id int) error {
	p := c.process(id)
	if p == nil {
		return nil
	}
	p.cancel()

	select {
	case <-p.done:
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}

// Shutdown asks a VM's guest to power off and returns the task's UPID. After timeout (of the site's
// time; 0 means a minute) it fails, or cuts the power when force is set.
func (c *Cluster) Shutdown(host string, id int, timeout time.Duration, force bool, user string) (string, error) {
	h, err := c.hostNamed(host)
	if err != nil {
		return "", err
	}

	if upid, managed := c.askHA(h.Name, id, "stop", haStopped, user); managed {
		return upid, nil
	}

	return c.shutdownTask(h.Name, id, timeout, force, user), nil
}

func (c *Cluster) shutdownTask(host string, id int, timeout time.Duration, force bool, user string) string {
	return c.s.spawn(host, "qmshutdown", strconv.Itoa(id), user, func(ctx context.Context, say sayf) error {
		defer c.lockVM(id)()
		v, err := c.known(host, id)
		if err == nil {
			err = c.held(v)
		}
		if err != nil {
			return err
		}
		err = c.powerDown(ctx, id, timeout)
		if err == nil || !force {
			return err
		}
		say("VM still running - terminating now with SIGTERM")

		return c.cut(ctx, id)
	})
}

func (c *Cluster) powerDown(ctx context.Context, id int, timeout time.Duration) error {
	p := c.process(id)
	if p == nil {
		return nil
	}
	if timeout == 0 {
		timeout = time.Minute
	}
	c.s.mu.Lock()
	ask := p.ask
	c.s.mu.Unlock()
	ask()

	limit := time.NewTimer(c.s.opts.Clock.Scale(timeout))
	defer limit.Stop()

	select {
	case <-p.done:
		return nil
	case <-limit.C:
		return fmt.Errorf("VM quit/powerdown failed - got timeout")
	case <-ctx.Done():
		return ctx.Err()
	}
}

// Reboot shuts a VM down and starts it with its pending changes; it returns the task's UPID.
func (c *Cluster) Reboot(host string, id int, timeout time.Duration, user string) (string, error) {
	v, err := c.known(host, id)
	if err != nil {
		return "", err
	}
	if c.process(id) == nil {
		return "", pve.Errorf("VM %d not running", id)
	}

	return c.s.spawn(v.Host, "qmreboot", strconv.Itoa(id), user, func(ctx context.Context, _ sayf) error {
		unlock := c.lockVM(id)
		err := c.held(v)
		if err == nil {
			err = c.powerDown(ctx, id, timeout)
		}
		unlock()
		if err != nil {
			return err
		}

		return c.start(ctx, v)
	}), nil
}

// Reset restarts a VM as its reset button does: pending changes stay pending. It returns the task's UPID.
func (c *Cluster) Reset(host string, id int, user string) (string, error) {
	v, err := c.known(host, id)
	if err != nil {
		return "", err
	}

	if c.process(id) == nil {
		return "", pve.Errorf("VM %d not running", id)
	}

	return c.s.spawn(v.Host, "qmreset", strconv.Itoa(id), user, func(context.Context, sayf) error {
		if err := c.held(v); err != nil {
			return err
		}
		p := c.process(id)
		if p == nil {
			return pve.Errorf("VM %d not running", id)
		}
		select {
		case p.reset <- struct{}{}:
		default: // one is on its way
		}

		return nil
	}), nil
}
