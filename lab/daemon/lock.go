// SPDX-License-Identifier: Apache-2.0
// Copyright the talos-proxmox authors.

package daemon

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"strings"
	"syscall"
)

// lock makes sure that a site has one lab. The lock goes with the process, however that ends.
func (p SiteDir) lock() (unlock func(), err error) {
	f, err := os.OpenFile(p.Path("lab.lock"), os.O_CREATE|os.O_RDWR, 0o600)
	if err != nil {
		return nil, fmt.Errorf("locking the site: %w", err)
	}
	if err := syscall.Flock(int(f.Fd()), syscall.LOCK_EX|syscall.LOCK_NB); err != nil {
		pid, _ := io.ReadAll(f) // only to name it
		_ = f.Close()

		return nil, fmt.Errorf("a lab already runs on %s (process %s); `lab stop` ends it", p, strings.TrimSpace(string(pid)))
	}
	if err := f.Truncate(0); err == nil {
		_, _ = fmt.Fprintf(f, "%d\n", os.Getpid()) // only to name it
	}

	return func() { _ = f.Close() }, nil
}

// Locked reports whether a lab runs on the site, be it still starting or already stopping.
func (p SiteDir) Locked() bool {
	f, err := os.OpenFile(p.Path("lab.lock"), os.O_RDWR, 0o600)
	if err != nil {
		return false
	}
	defer func() { _ = f.Close() }() // gives the lock back

	return syscall.Flock(int(f.Fd()), syscall.LOCK_EX|syscall.LOCK_NB) != nil
}

// unlocked waits until no lab runs on the site.
func (p SiteDir) unlocked(ctx context.Context) error {
	f, err := os.OpenFile(p.Path("lab.lock"), os.O_RDWR, 0o600)
	if err != nil {
		return nil //nolint:nilerr // no lock, no lab
	}

	got := make(chan error, 1)
	go func() {
		err := syscall.Flock(int(f.Fd()), syscall.LOCK_EX)
		for errors.Is(err, syscall.EINTR) {
			err = syscall.Flock(int(f.Fd()), syscall.LOCK_EX)
		}
		_ = f.Close() // gives the lock back, before anybody hears that it is free
		got <- err
	}()

	select {
	case err := <-got:
		return err
	case <-ctx.Done():
		return ctx.Err()
	}
}
