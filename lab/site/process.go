// SPDX-License-Identifier: Apache-2.0
// Copyright the talos-proxmox authors.

package site

import (
	"context"
	"maps"
	"strconv"
	"sync"
	"time"

	"github.com/talos-proxmox/talos-proxmox/lab/site/guest"
	"github.com/talos-proxmox/talos-proxmox/lab/site/pve"
)

// States of what is inside a VM.
const (
	stateOff    = "off"
	stateGuest  = "guest"
	stateNoBoot = "no boot device"
	stateHalted = "halted"
	stateLost   = "hangs"
)

// process runs a powered-on VM.
type process struct {
	cancel   context.CancelFunc
	done     chan struct{} // closed when it is off
	shutdown chan struct{} // closed by an ACPI shutdown
	ask      func()        // closes shutdown, once
	reset    chan struct{}
	hardware map[string]string
	pid      int
	started  time.Time
	state    string
	agent    func() []guest.Interface
	lost     <-chan struct{} // set when what runs inside was killed: it boots again when this closes
	cut      func()          // kills what runs inside; nil when nothing does
}

// listen makes a guest that boots hear of shutdowns that are asked for from now on: what was asked of
// one that hung is lost. The caller holds the site's lock, or nobody else knows p yet.
func (p *process) listen() {
	asked := make(chan struct{})
	p.shutdown = asked
	p.ask = sync.OnceFunc(func() { close(asked) })
}

// powerOn starts the process of a VM. The caller holds the lock.
func (s *Site) powerOn(cc *cluster, v *vm) error {
	c := &Cluster{s: s, c: cc}
	if err := c.checkHardware(v); err != nil {
		return err
	}

	ctx, cancel := context.WithCancel(s.ctx)
	s.pid++
	p := &process{
		cancel: cancel, done: make(chan struct{}), reset: make(chan struct{}, 1),
		hardware: maps.Clone(v.Config), pid: int(s.pid), started: time.Now(), state: stateNoBoot,
	}
	p.listen()
	s.running[vmKey{cc.Name, v.ID}] = p
	s.work.Go(func() { c.run(ctx, v, p) })

	return nil
}

// run lives the life of a process: one guest after the other until the power goes.
func (c *Cluster) run(ctx context.Context, v *vm, p *process) {
	object := "vm/" + strconv.Itoa(v.ID)
	end := c.s.opts.Trace.Begin("vm.run", object, map[string]string{"host": v.Host})

	for ctx.Err() == nil {
		boot, cut := context.WithCancel(ctx)
		finished := make(chan struct{})
		go func() {
			select {
			case <-p.reset:
				cut()
			case <-finished:
			}
		}()
		exit := c.bootOnce(boot, cut, v, p)
		close(finished)
		again := boot.Err() != nil && ctx.Err() == nil // a reset, or it was lost
		cut()
		c.awaitReturn(ctx, p)
		if exit == guest.ExitPowerOff && !again {
			break
		}
	}

	c.s.mu.Lock()
	delete(c.s.running, vmKey{c.c.Name, v.ID})
	if c.s.ctx.Err() == nil { // else the whole site goes down, and the VM comes back with it
		v.On = false
		if err := c.s.save(); err != nil {
			c.s.opts.Log.Error("saving the site", "error", err)
		}
		c.haLook(v.ID, haRound) // one that went off by itself is started again
	}
	c.s.mu.Unlock()

	p.cancel()
	close(p.done)
	end(nil)
}

// bootOnce runs what boots, until it ends or the power goes.
func (c *Cluster) bootOnce(ctx context.Context, cut context.CancelFunc, v *vm, p *process) guest.Exit {
	m := c.machine(v, p)
	if m == nil || c.s.opts.Guest == nil {
		c.s.setState(p, stateNoBoot)
		<-ctx.Done()

		return guest.ExitPowerOff
	}

	m.SetAgent = func(report func() []guest.Interface) {
		if m.AgentEnabled {
			c.s.mu.Lock()
			p.agent = report
			c.s.mu.Unlock()
		}
	}
	m.Lose = c.s.killer(cut, p)
	if !c.returns(ctx, m, p) {
		return guest.ExitReboot
	}
	c.s.setState(p, stateGuest)
	exit := c.s.opts.Guest(m).Run(ctx, m)

	if exit == guest.ExitHalt {
		c.s.setState(p, stateHalted)
		<-ctx.Done()

		return guest.ExitPowerOff
	}
	c.s.setState(p, stateNoBoot)

	return exit
}

// setState records the state of a machine whose guest, and with it the guest agent, does not run.
func (s *Site) setState(p *process, state string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	p.state, p.agent = state, nil
}

// AgentInterfaces returns what a VM's guest agent reports.
func (c *Cluster) AgentInterfaces(host string, id int) ([]guest.Interface, error) {
	c.s.mu.Lock()
	v, err := c.find(host, id)
	if err != nil {
		c.s.mu.Unlock()

		return nil, err
	}
	p := c.s.running[vmKey{c.c.Name, id}]
	enabled := agentEnabled(v.Config["agent"])
	var report func() []guest.Interface
	if p != nil {
		report = p.agent
	}
	c.s.mu.Unlock()

	switch {
	case !enabled:
		return nil, pve.Errorf("No QEMU guest agent configured")
	case p == nil:
		return nil, pve.Errorf("VM %d is not running", id)
	case report == nil:
		return nil, pve.Errorf("QEMU guest agent is not running")
	}

	return report(), nil
}

func agentEnabled(s string) bool {
	p := pve.ParseProperties("enabled", s)

	return p.On("enabled")
}
