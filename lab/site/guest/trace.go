// SPDX-License-Identifier: Apache-2.0
// Copyright the talos-proxmox authors.

package guest

import (
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"maps"
	"os"
	"sync"
	"time"
)

// Event records one operation of the site, with its start and end.
type Event struct {
	Op     string            `json:"op"`     // "vm.start", "talos.apply", …
	Object string            `json:"object"` // whom it concerns: "vm/800", "node/10.0.0.1", "cluster/dev"
	Start  time.Time         `json:"start"`
	End    time.Time         `json:"end"`
	Error  string            `json:"error,omitempty"`
	Attrs  map[string]string `json:"attrs,omitempty"`
}

// Trace keeps every operation, one JSON object a line.
type Trace struct {
	mu    sync.Mutex
	out   io.Writer
	watch func(op, object string)
}

// NewTrace writes to out; a nil out keeps nothing.
func NewTrace(out io.Writer) *Trace { return &Trace{out: out} }

// Watch calls watch before each operation that begins from now on; the operation waits for it. Set it
// before the trace is in use.
func (t *Trace) Watch(watch func(op, object string)) { t.watch = watch }

// Begin starts an operation; calling the result ends it. Attrs are copied.
func (t *Trace) Begin(op, object string, attrs map[string]string) (end func(error)) {
	if t != nil && t.watch != nil {
		t.watch(op, object)
	}
	e := Event{Op: op, Object: object, Start: time.Now(), Attrs: maps.Clone(attrs)}

	return func(err error) {
		e.End = time.Now()
		if err != nil {
			e.Error = err.Error()
		}
		t.write(e)
	}
}

func (t *Trace) write(e Event) {
	if t == nil || t.out == nil {
		return
	}

	line, err := json.Marshal(e)
	if err != nil {
		return
	}

	t.mu.Lock()
	defer t.mu.Unlock()
	_, _ = t.out.Write(append(line, '\n')) // the trace is a witness; losing a line must not stop the site
}

// ReadTrace reads the operations of a trace's file, in the order in which they ended.
func ReadTrace(path string) ([]Event, error) {
	content, err := os.ReadFile(path) // G304: a site's own file
	if err != nil {
		return nil, fmt.Errorf("reading the trace: %w", err)
	}

	var events []Event
	for line := range bytes.Lines(content) {
		var e Event
		if json.Unmarshal(line, &e) != nil {
			continue // the last line of a lab that was killed, or that is being written
		}
		events = append(events, e)
	}

	return events, nil
}
