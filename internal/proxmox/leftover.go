// SPDX-License-Identifier: Apache-2.0
// Copyright the talos-proxmox authors.

package proxmox

import (
	"context"
	"errors"
	"fmt"
	"time"
)

// Leftover removes what an interrupted run left of a VM.
type Leftover struct {
	// Client asks Proxmox VE.
	Client *Client
	// Blank says, with nil, that the machine waits for its first configuration: nothing is on it.
	Blank func(ctx context.Context) error
	// Living reports whether the node itself answers, as a member of its cluster; nil where nobody can tell.
	Living func(ctx context.Context) bool
	// Timeout bounds the whole, and Interval is the pause between two looks.
	Timeout, Interval time.Duration
	// Report gets a line for each step.
	Report func(string)
}

// Clear looks for the VM that is about to be made. Where it is there already, an earlier run was killed
// while it made it, and the state does not know it. It is started, and when it proves to be blank it is
// removed, so that it can be made as a whole. A VM that does not prove to be blank is left alone; the
// error says what to do about it.
func (l Leftover) Clear(ctx context.Context, w Wanted) error {
	found, err := l.Client.Find(ctx, w)
	if err != nil || found == nil {
		return err
	}
	v := *found
	if l.Living != nil && l.Living(ctx) {
		return fmt.Errorf("VM %d on host %s is the living node %s itself, which dropped out of the state, as after a refresh "+
			"during a migration, with a token that does not see it, or after `pulumi state delete`: it is left alone; bring it back "+
			"with `tpx adopt`, and run `pulumi up` again", v.ID, v.Host, w.Name)
	}
	l.Report(fmt.Sprintf("VM %d of %s is on host %s already: an earlier run was interrupted while it made it", v.ID, w.Name, v.Host))

	clearing, cancel := context.WithTimeout(ctx, l.Timeout)
	defer cancel()
	if err := l.provenBlank(clearing, v); err != nil {
		if ctx.Err() != nil {
			return ctx.Err()
		}

		return fmt.Errorf("VM %d of %s is on host %s already and is not part of this stack; it is left alone, since "+
			"it is not known to be empty: %w\n  it may be the living node %s itself, which dropped out of the state, as after a "+
			"refresh during a migration or with a token that does not see it: look at its console or talosctl version, and bring it "+
			"back with `tpx adopt`\n  remove it by hand only when nothing on it is needed, or choose another vmId",
			v.ID, w.Name, v.Host, err, w.Name)
	}
	if err := l.destroy(clearing, v); err != nil {
		return fmt.Errorf("removing VM %d of %s on host %s: %w", v.ID, w.Name, v.Host, err)
	}
	l.Report(fmt.Sprintf("VM %d was blank; it is created again", v.ID))

	return nil
}

// provenBlank has the VM run until it says that it waits for a configuration. A VM that is gone is blank.
func (l Leftover) provenBlank(ctx context.Context, v VM) error {
	if v.Unfinished {
		return nil // it has no disk
	}

	return l.until(ctx, func() error {
		status, err := l.Client.status(ctx, v)
		switch {
		case err != nil:
			return err
		case status == "":
			return nil
		case status == "stopped":
			if err := l.Client.power(ctx, v, "start"); err != nil {
				return err
			}

			return errors.New("it starts")
		default:
			return l.Blank(ctx)
		}
	})
}

// destroy powers the VM off and removes it.
func (l Leftover) destroy(ctx context.Context, v VM) error {
	return l.until(ctx, func() error {
		status, err := l.Client.status(ctx, v)
		switch {
		case err != nil:
			return err
		case status == "":
			return nil
		case status == "running":
			err = l.Client.power(ctx, v, "stop")
		default:
			err = l.Client.remove(ctx, v)
		}
		if err == nil {
			err = errors.New("it is still there")
		}

		return err
	})
}

// until repeats a look until it finds nothing wrong, and returns what it found last.
func (l Leftover) until(ctx context.Context, look func() error) error {
	var last error
	for {
		err := look()
		if err == nil {
			return nil
		}
		if ctx.Err() == nil || last == nil {
			last = err
		}
		timer := time.NewTimer(l.Interval)
		select {
		case <-ctx.Done():
			timer.Stop()

			return last
		case <-timer.C:
		}
	}
}
