// SPDX-License-Identifier: Apache-2.0
// Copyright the talos-proxmox authors.

package node

import (
	"context"

	"github.com/talos-proxmox/talos-proxmox/lab/site/guest"
)

// Sequences that end a power cycle, as Talos names them.
const (
	SequenceReboot       = "reboot"
	SequenceReset        = "reset"
	SequenceShutdown     = "shutdown"
	SequenceStageUpgrade = "stageUpgrade"
	SequenceUpgrade      = "upgrade"
)

// Request asks the node to run a sequence.
type Request struct {
	Sequence string
	Actor    string
	// Takeover runs the sequence whatever else runs.
	Takeover bool
	Run      func(ctx context.Context, actor string) (guest.Exit, error)
}

// takesOver reports whether a sequence may stop the one that runs. One that may not is dropped: the caller was told
// that it began, and the events say that it did not.
func (r Request) takesOver(running string) bool {
	return r.Takeover || r.Sequence == SequenceReboot && (running == SequenceReboot || running == SequenceReset)
}

// Ask hands a request to the node's main loop.
func (n *Node) Ask(r Request) {
	go func() {
		select {
		case n.requests <- r:
		case <-n.off:
		}
	}()
}

// outcome tells how a sequence ended.
type outcome struct {
	exit guest.Exit
	err  error
}

// serve runs until something ends the power cycle.
func (n *Node) serve(ctx context.Context) (guest.Exit, error) {
	for {
		select {
		case <-ctx.Done():
			return guest.ExitPowerOff, ctx.Err()
		case r := <-n.requests:
			o := n.runSequence(ctx, r)
			if o.err == nil {
				return o.exit, nil
			}
			if ctx.Err() != nil {
				return guest.ExitPowerOff, ctx.Err()
			}
			n.Console("sequence", "error", o.err)
			if o.exit != stays {
				return o.exit, o.err
			}
		}
	}
}

// runSequence runs a sequence, and those that take over from it.
func (n *Node) runSequence(ctx context.Context, r Request) outcome {
	start := func(r Request) (<-chan outcome, context.CancelFunc) {
		ctx, cancel := context.WithCancel(ctx)
		done := make(chan outcome, 1)
		go func() {
			exit, err := r.Run(ctx, r.Actor)
			done <- outcome{exit, err}
		}()

		return done, cancel
	}

	done, cancel := start(r)
	defer func() { cancel() }()
	for {
		select {
		case o := <-done:
			return o
		case next := <-n.requests:
			if !next.takesOver(r.Sequence) {
				n.Events.Locked(next.Sequence)

				continue
			}
			cancel()
			<-done
			r = next
			done, cancel = start(r)
		}
	}
}

// stays is the exit of a sequence that failed and left the node running.
const stays = guest.Exit(-1)
