// SPDX-License-Identifier: Apache-2.0
// Copyright the talos-proxmox authors.

package kube

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
)

// Snapshot returns a copy of all that the cluster's etcd holds, for [Config.Restore].
func (c *Cluster) Snapshot(ctx context.Context) ([]byte, error) {
	// Its folder is the process's own, so the name need not be absolute.
	file, err := os.CreateTemp(c.config.Dir, "snapshot-*")
	if err != nil {
		return nil, fmt.Errorf("taking a snapshot of cluster %q: %w", c.config.Name, err)
	}
	defer func() { _ = os.Remove(file.Name()) }() // the cluster's directory goes as a whole

	var raw []byte
	err = errors.Join(file.Close(), c.process.snapshot(ctx, filepath.Base(file.Name())))
	if err == nil {
		raw, err = os.ReadFile(file.Name())
	}
	if err != nil {
		return nil, fmt.Errorf("taking a snapshot of cluster %q: %w", c.config.Name, err)
	}

	return raw, nil
}

// snapshot orders the process to write a snapshot and waits for it. One order runs at a time.
func (p *process) snapshot(ctx context.Context, name string) error {
	p.ordering.Lock()
	defer p.ordering.Unlock()

	select {
	case <-p.answers: // what nobody waited for any more would keep the answer out
	default:
	}
	if _, err := fmt.Fprintln(p.stdin, "snapshot "+name); err != nil {
		return err
	}

	return p.during(ctx, func(ctx context.Context) error {
		for {
			select {
			case a := <-p.answers:
				switch {
				case a.Snapshot != name: // the answer to an order that nobody waits for any more
				case a.Error != "":
					return errors.New(a.Error)
				default:
					return nil
				}
			case <-ctx.Done():
				return context.Cause(ctx)
			}
		}
	})
}
