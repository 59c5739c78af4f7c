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

// Start powers a VM on and returns the task's UPID.
func (c *Cluster) Start(host string, id int, user string) (string, error) {
	v, err := c.findLocked(host, id)
	if err != nil {
		return "", err
	}

	return c.s.spawn(v.Host, "qmstart", strconv.Itoa(id), user, func(ctx context.Context, _ sayf) error {
		return c.start(ctx, v)
	}), nil
}

func (c *Cluster) findLocked(host string, id int) (*vm, error) {
	c.s.mu.Lock()
	defer c.s.mu.Unlock()

	return c.find(host, id)
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

// switchOn returns what a start does. The caller holds the lock.
func (c *Cluster) switchOn(v *vm) error {
	switch {
	case c.s.down(v.Host): // a task that was under way when the power went
		return pve.Errorf("host %s has no power", v.Host)
	case c.c.VMs[v.ID] != v:
		return pve.Errorf("Configuration file 'nodes/%s/qemu-server/%d.conf' does not exist", v.Host, v.ID)
	case v.Lock != "":
		return pve.Errorf("VM is locked (%s)", v.Lock)
	case pve.IsTrue(v.Config["template"]):
		return pve.Errorf("you can't start a vm if it's a template")
	case c.s.running[vmKey{c.c.Name, v.ID}] != nil:
		return pve.Errorf("VM %d already running", v.ID)
	}
	v.applyPending()
	if err := c.s.powerOn(c.c, v); err != nil {
		return err
	}
	v.On, v.Started = true, time.Now().Unix()

	return c.s.save()
}

// Stop cuts a VM's power and returns the task's UPID. Stopping one that is off is no error.
func (c *Cluster) Stop(host string, id int, user string) (string, error) {
	v, err := c.findLocked(host, id)
	if err != nil {
		return "", err
	}

	return c.s.spawn(v.Host, "qmstop", strconv.Itoa(id), user, func(ctx context.Context, _ sayf) error {
		defer c.lockVM(id)()

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
	v, err := c.findLocked(host, id)
	if err != nil {
		return "", err
	}

	return c.s.spawn(v.Host, "qmshutdown", strconv.Itoa(id), user, func(ctx context.Context, say sayf) error {
		defer c.lockVM(id)()
		err := c.powerDown(ctx, id, timeout)
		if err == nil || !force {
			return err
		}
		say("VM still running - terminating now with SIGTERM")

		return c.cut(ctx, id)
	}), nil
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
	v, err := c.findLocked(host, id)
	if err != nil {
		return "", err
	}
	if c.process(id) == nil {
		return "", pve.Errorf("VM %d not running", id)
	}

	return c.s.spawn(v.Host, "qmreboot", strconv.Itoa(id), user, func(ctx context.Context, _ sayf) error {
		unlock := c.lockVM(id)
		err := c.powerDown(ctx, id, timeout)
		unlock()
		if err != nil {
			return err
		}

		return c.start(ctx, v)
	}), nil
}

// Reset restarts a VM as its reset button does: pending changes stay pending. It returns the task's UPID.
func (c *Cluster) Reset(host string, id int, user string) (string, error) {
	v, err := c.findLocked(host, id)
	if err != nil {
		return "", err
	}

	return c.s.spawn(v.Host, "qmreset", strconv.Itoa(id), user, func(context.Context, sayf) error {
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
