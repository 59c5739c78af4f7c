// SPDX-License-Identifier: Apache-2.0
// Copyright the talos-proxmox authors.

package main

import (
	"context"
	"encoding/json"
	"fmt"
	"strings"
	"time"
)

// event decodes an operation of the lab's trace.
type event struct {
	Op     string            `json:"op"`
	Object string            `json:"object"`
	Start  time.Time         `json:"start"`
	End    time.Time         `json:"end"`
	Error  string            `json:"error"`
	Attrs  map[string]string `json:"attrs"`
}

// trace returns the operations that the lab remembers.
func (b *bench) trace(ctx context.Context) ([]event, error) {
	out, err := b.lab(ctx, "trace", "--json")
	if err != nil {
		return nil, err
	}
	var events []event
	decoder := json.NewDecoder(strings.NewReader(out))
	for decoder.More() {
		var e event
		if err := decoder.Decode(&e); err != nil {
			return nil, fmt.Errorf("reading the trace: %w", err)
		}
		events = append(events, e)
	}

	return events, nil
}

// readTrace reads from the lab's trace when the first VM started, and the longest chain of waits.
func (b *bench) readTrace(ctx context.Context, began time.Time, into *row) error {
	events, err := b.trace(ctx)
	if err != nil {
		return err
	}
	for _, e := range events {
		if strings.HasPrefix(e.Op, "pve.") || strings.HasPrefix(e.Op, "talos.") {
			into.Calls++
		}
		if e.Op == "pve.qmstart" && (into.FirstVM == 0 || e.Start.Sub(began) < into.FirstVM) {
			into.FirstVM = e.Start.Sub(began)
		}
	}
	into.Waits = chain(events)

	return nil
}

// chain returns the longest chain of waits: the image's download, then what one node goes through from its VM's
// creation until it serves, one after the other, and for the cluster the start of Kubernetes behind the first control
// plane. Only the site's own operations count, so that what is between them is ours.
func chain(events []event) time.Duration {
	var download, kubernetes time.Duration
	perVM := map[string]time.Duration{}
	for _, e := range events {
		took := e.End.Sub(e.Start)
		if e.Error != "" || e.End.IsZero() {
			continue
		}
		switch e.Op {
		case "pve.download":
			download = max(download, took)
		case "kubernetes.start":
			kubernetes = max(kubernetes, took)
		case "pve.qmcreate", "pve.qmstart", "talos.boot":
			perVM[e.Object[strings.LastIndex(e.Object, "/")+1:]] += took
		case "talos.install", "etcd.join":
			perVM[e.Attrs["vm"]] += took
		}
	}
	longest := time.Duration(0)
	for _, took := range perVM {
		longest = max(longest, took)
	}

	return download + longest + kubernetes
}
