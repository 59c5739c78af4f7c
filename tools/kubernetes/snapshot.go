// SPDX-License-Identifier: Apache-2.0
// Copyright the talos-proxmox authors.

package main

import (
	"compress/gzip"
	"context"
	"encoding/gob"
	"errors"
	"fmt"
	"io"
	"os"

	clientv3 "go.etcd.io/etcd/client/v3"
	"go.etcd.io/etcd/server/v3/embed"
	"go.etcd.io/etcd/server/v3/etcdserver/api/v3client"
)

// entry holds one key of a snapshot. A snapshot is a gzipped gob stream of them, oldest change first.
type entry struct {
	Key, Value []byte
}

// snapshot writes everything that etcd holds for good to a file.
func snapshot(ctx context.Context, etcd *embed.Etcd, file string) (err error) {
	client := v3client.New(etcd.Server)
	defer client.Close()

	all, err := client.Get(ctx, "\x00", clientv3.WithFromKey(),
		clientv3.WithSort(clientv3.SortByModRevision, clientv3.SortAscend))
	if err != nil {
		return fmt.Errorf("reading etcd: %w", err)
	}

	out, err := os.OpenFile(file, os.O_CREATE|os.O_WRONLY|os.O_TRUNC, 0o600)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, out.Close()) }()
	packed := gzip.NewWriter(out)
	defer func() { err = errors.Join(err, packed.Close()) }()

	encoder := gob.NewEncoder(packed)
	for _, kv := range all.Kvs {
		if kv.Lease != 0 {
			continue // it would be gone soon anyway
		}
		if err := encoder.Encode(entry{kv.Key, kv.Value}); err != nil {
			return fmt.Errorf("writing %s: %w", file, err)
		}
	}

	return nil
}

// restore fills an empty etcd from a snapshot.
func restore(ctx context.Context, etcd *embed.Etcd, file string) error {
	in, err := os.Open(file)
	if err != nil {
		return fmt.Errorf("opening the snapshot: %w", err)
	}
	defer in.Close()
	packed, err := gzip.NewReader(in)
	if err != nil {
		return fmt.Errorf("reading the snapshot: %w", err)
	}

	client := v3client.New(etcd.Server)
	defer client.Close()

	decoder := gob.NewDecoder(packed)
	for {
		var e entry
		switch err := decoder.Decode(&e); {
		case errors.Is(err, io.EOF):
			return nil
		case err != nil:
			return fmt.Errorf("reading the snapshot: %w", err)
		}
		if _, err := client.Put(ctx, string(e.Key), string(e.Value)); err != nil {
			return fmt.Errorf("restoring %s: %w", e.Key, err)
		}
	}
}
