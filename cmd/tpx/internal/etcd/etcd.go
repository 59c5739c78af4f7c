// SPDX-License-Identifier: Apache-2.0
// Copyright the talos-proxmox authors.

// Package etcd backs up a cluster's etcd into a file, and starts a cluster with one.
package etcd

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"
	"time"

	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	"github.com/talos-proxmox/talos-proxmox/cmd/tpx/internal/state"
	"github.com/talos-proxmox/talos-proxmox/internal/cluster"
	"github.com/talos-proxmox/talos-proxmox/internal/talosapi"
)

// callTimeout bounds a question to a node; a snapshot gets snapshotTimeout.
const (
	callTimeout     = 15 * time.Second
	snapshotTimeout = 10 * time.Minute
)

// Backup writes a snapshot of the cluster's etcd, from the first control plane that gives one, into a file
// that only its owner may read: it holds every secret of the cluster. An empty path is made from the
// cluster's name and the time. A file that is there is never written over.
func Backup(ctx context.Context, c state.Cluster, path string, now time.Time, out io.Writer) error {
	if path == "" {
		path = fmt.Sprintf("%s-%s.snapshot", c.Name, now.UTC().Format("20060102T150405Z"))
	}
	file, err := os.OpenFile(path, os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o600)
	if err != nil {
		return fmt.Errorf("writing the snapshot: %w", err)
	}
	from, err := snapshot(ctx, c, file)
	if err = errors.Join(err, file.Close()); err != nil {
		_ = os.Remove(path) // half a snapshot is of no use

		return err
	}
	info, err := os.Stat(path)
	if err != nil {
		return fmt.Errorf("writing the snapshot: %w", err)
	}
	fmt.Fprintf(out, "%s: %d bytes from %s; it holds every secret of cluster %s: keep it as you keep those\n", path, info.Size(), from, c.Name)

	return nil
}

// snapshot writes one control plane's snapshot and returns which it was.
func snapshot(ctx context.Context, c state.Cluster, file *os.File) (string, error) {
	client, err := talosapi.NewClient(c.Talosconfig)
	if err != nil {
		return "", err
	}
	defer client.Close() //nolint:errcheck // nothing was written

	var errs []error
	for _, m := range controlPlanes(c) {
		if err := asksEtcd(ctx, client, m); err != nil {
			errs = append(errs, fmt.Errorf("%s: %w", m, err))

			continue
		}
		call, cancel := context.WithTimeout(ctx, snapshotTimeout)
		err := client.Snapshot(call, m.Address, file)
		cancel()
		if err == nil {
			return m.String(), nil
		}
		errs = append(errs, fmt.Errorf("%s: %w", m, err))
		if err := rewind(file); err != nil {
			return "", err
		}
	}

	return "", fmt.Errorf("no control plane of cluster %q gives a snapshot: %w", c.Name, errors.Join(errs...))
}

// asksEtcd finds quickly whether etcd of a node answers.
func asksEtcd(ctx context.Context, client *talosapi.Client, m cluster.Member) error {
	call, cancel := context.WithTimeout(ctx, callTimeout)
	defer cancel()
	_, err := client.EtcdMembers(call, m.Address)

	return err
}

func rewind(file *os.File) error {
	if err := file.Truncate(0); err != nil {
		return fmt.Errorf("writing the snapshot: %w", err)
	}
	if _, err := file.Seek(0, io.SeekStart); err != nil {
		return fmt.Errorf("writing the snapshot: %w", err)
	}

	return nil
}

// From says what etcd is restored from, and where.
type From struct {
	// Snapshot is a file that Backup, an upgrade or a scheduled backup wrote.
	Snapshot string
	// AgeKey is a file with the age identity that opens it; empty for one that is not encrypted.
	AgeKey string
	// Node is the control plane that starts, by name or address; the first when empty.
	Node string
	// Lost names control planes whose machines are gone for good, and which are not asked.
	Lost []string
}

// Restore starts the cluster's etcd with a snapshot on one control plane. It is refused while a control
// plane has a working etcd, or does not say that it has none: a snapshot must not replace data that lives.
func Restore(ctx context.Context, c state.Cluster, from From, out io.Writer) error {
	path := from.Snapshot
	file, err := os.Open(path)
	if err != nil {
		return fmt.Errorf("reading the snapshot: %w", err)
	}
	defer file.Close() //nolint:errcheck // only read
	content, err := openSnapshot(path, from.AgeKey, file)
	if err != nil {
		return err
	}
	client, err := talosapi.NewClient(c.Talosconfig)
	if err != nil {
		return err
	}
	defer client.Close() //nolint:errcheck // closing ends all

	on, err := chosen(c, from.Node)
	if err != nil {
		return err
	}
	var errs []error
	for _, m := range controlPlanes(c) {
		if !slices.Contains(from.Lost, m.Name) {
			errs = append(errs, checkLost(ctx, client, m))
		}
	}
	if err := errors.Join(errs...); err != nil {
		return err
	}
	call, cancel := context.WithTimeout(ctx, snapshotTimeout)
	defer cancel()
	switch err := client.Recover(call, on.Address, content); {
	case status.Code(errors.Unwrap(err)) == codes.AlreadyExists || status.Code(err) == codes.AlreadyExists:
		return fmt.Errorf("%s has data of etcd: choose a control plane that was just created, or have this one rebuilt first: %w", on, err)
	case err != nil:
		return fmt.Errorf("%s: %w", on, err)
	}
	fmt.Fprintf(out, "%s starts etcd with %s; run `pulumi up` for the other control planes to join\n", on, filepath.Base(path))

	return nil
}

// checkLost fails unless the control plane itself says that it runs no etcd.
func checkLost(ctx context.Context, client *talosapi.Client, m cluster.Member) error {
	call, cancel := context.WithTimeout(ctx, callTimeout)
	defer cancel()
	services, err := client.Services(call, m.Address)
	if err != nil {
		return fmt.Errorf("%s does not say whether it runs etcd (%w): have its machine replaced first, or name it with --lost "+
			"if the machine is gone for good", m, err)
	}
	if asksEtcd(ctx, client, m) == nil || services["etcd"].State == "Running" {
		return fmt.Errorf("etcd runs on %s: a snapshot is restored only where etcd is lost on every control plane", m)
	}

	return nil
}

// chosen returns the control plane that is named, the first when none is.
func chosen(c state.Cluster, node string) (cluster.Member, error) {
	all := controlPlanes(c)
	for _, m := range all {
		if node == "" || m.Name == node || m.Address == node {
			return m, nil
		}
	}

	return cluster.Member{}, fmt.Errorf("cluster %q has no control plane %q", c.Name, node)
}

func controlPlanes(c state.Cluster) []cluster.Member {
	var all []cluster.Member
	for _, m := range c.Members {
		if m.ControlPlane {
			all = append(all, m)
		}
	}

	return all
}
