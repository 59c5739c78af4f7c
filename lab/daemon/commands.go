// SPDX-License-Identifier: Apache-2.0
// Copyright the talos-proxmox authors.

package daemon

import (
	"encoding/json"
	"net/http"
	"strings"
	"sync"
	"time"

	"github.com/talos-proxmox/talos-proxmox/lab/fault"
)

// killLimit bounds how long an operation waits for the commands that it ends.
const killLimit = 10 * time.Second

// commands tracks what runs under `lab exec`. Each command holds a request open and hears on it
// when it is to die; the request ends when it has.
type commands struct {
	mu     sync.Mutex
	runs   map[*command]bool
	closed chan struct{}
	close  func()
}

func newCommands() *commands {
	c := &commands{runs: map[*command]bool{}, closed: make(chan struct{})}
	c.close = sync.OnceFunc(func() { close(c.closed) })

	return c
}

type command struct {
	kill chan order
	gone chan struct{}
}

// order tells `lab exec` to kill its command.
type order struct {
	Reason string `json:"reason"`
}

func (c *commands) serve(w http.ResponseWriter, r *http.Request) {
	run := &command{kill: make(chan order, 1), gone: make(chan struct{})}
	c.mu.Lock()
	c.runs[run] = true
	c.mu.Unlock()
	defer func() {
		c.mu.Lock()
		delete(c.runs, run)
		c.mu.Unlock()
		close(run.gone)
	}()

	flush := http.NewResponseController(w).Flush
	w.WriteHeader(http.StatusOK)
	_ = flush() // the command is gone when this fails, and the request with it

	select {
	case o := <-run.kill:
		_ = json.NewEncoder(w).Encode(o)
		_ = flush()
		select {
		case <-r.Context().Done():
		case <-c.closed:
		}
	case <-r.Context().Done():
	case <-c.closed:
	}
}

// any returns how many commands run.
func (c *commands) any() int {
	c.mu.Lock()
	defer c.mu.Unlock()

	return len(c.runs)
}

// end kills every command and waits until they are dead.
func (c *commands) end(o order) {
	c.mu.Lock()
	var gone []chan struct{}
	for run := range c.runs {
		select {
		case run.kill <- o:
		default: // it is dying already
		}
		gone = append(gone, run.gone)
	}
	c.mu.Unlock()

	limit := time.NewTimer(killLimit)
	defer limit.Stop()
	for _, g := range gone {
		select {
		case <-g:
		case <-limit.C:
			return
		}
	}
}

// Commands returns how many commands run in the lab, as far as they told it ([SiteDir.Watch]).
func (d *Daemon) Commands() int { return d.commands.any() }

// killAt ends the running commands when a fault wants them dead at this operation.
func (d *Daemon) killAt(op, object string) {
	if strings.HasPrefix(op, "fault.") || d.commands.any() == 0 {
		return
	}
	f, strikes := d.faults.Strike(fault.Kill, op+" "+object, fault.About{"op": {op}})
	if !strikes {
		return
	}
	d.opts.Log.Info("killing the command", "at", op, "object", object, "fault", f.ID)
	d.commands.end(order{Reason: "at " + op + " of " + object + ", as a fault asks (" + f.String() + ")"})
}
