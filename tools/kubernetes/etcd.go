// SPDX-License-Identifier: Apache-2.0
// Copyright the talos-proxmox authors.

package main

import (
	"context"
	"errors"
	"fmt"
	"net/url"
	"os"

	"go.etcd.io/etcd/server/v3/embed"
)

const (
	etcdDir    = "etcd"
	etcdSocket = "etcd.sock"
	peerSocket = "etcd-peer.sock"
)

// startEtcd starts the only member of the cluster's etcd, on a socket that only this user can open.
func startEtcd(ctx context.Context) (*embed.Etcd, error) {
	for _, socket := range []string{etcdSocket, peerSocket} {
		if err := os.Remove(socket); err != nil && !errors.Is(err, os.ErrNotExist) {
			return nil, fmt.Errorf("removing an old etcd socket: %w", err)
		}
	}

	client := url.URL{Scheme: "unix", Host: etcdSocket}
	peer := url.URL{Scheme: "unix", Host: peerSocket}

	c := embed.NewConfig()
	c.Name = "lab"
	c.Dir = etcdDir
	c.ListenClientUrls, c.AdvertiseClientUrls = []url.URL{client}, []url.URL{client}
	c.ListenPeerUrls, c.AdvertisePeerUrls = []url.URL{peer}, []url.URL{peer}
	c.InitialCluster = c.InitialClusterFromName(c.Name)
	c.LogLevel = "warn"
	c.LogOutputs = []string{"stderr"}
	// A killed process loses nothing without fsync; only a crash of the machine may.
	c.UnsafeNoFsync = true

	etcd, err := embed.StartEtcd(c)
	if err != nil {
		return nil, fmt.Errorf("starting etcd: %w", err)
	}

	select {
	case <-etcd.Server.ReadyNotify():
		return etcd, nil
	case err := <-etcd.Err():
		return nil, fmt.Errorf("starting etcd: %w", err)
	case <-ctx.Done():
		etcd.Close()

		return nil, ctx.Err()
	}
}
