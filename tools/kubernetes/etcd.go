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

// startEtcd starts the only member of the cluster's etcd, on a socket in a folder that only this user
// can enter. A snapshot, if one is named, replaces its data.
func startEtcd(ctx context.Context, from string) (*embed.Etcd, error) {
	if from != "" {
		if err := os.RemoveAll(etcdDir); err != nil {
			return nil, fmt.Errorf("removing the data to restore others: %w", err)
		}
	}

	etcd, err := launchEtcd(ctx)
	if err != nil {
		return nil, fmt.Errorf("starting etcd: %w", err)
	}
	if from != "" {
		if err := restore(ctx, etcd, from); err != nil {
			etcd.Close()

			return nil, err
		}
	}

	return etcd, nil
}

func launchEtcd(ctx context.Context) (*embed.Etcd, error) {
	for _, socket := range []string{etcdSocket, peerSocket} {
		if err := os.Remove(socket); err != nil && !errors.Is(err, os.ErrNotExist) {
			return nil, fmt.Errorf("removing an old socket: %w", err)
		}
	}

	client := url.URL{Scheme: "unix", Host: etcdSocket}
	peer := url.URL{Scheme: "unix", Host: peerSocket}

	c := embed.NewConfig()
	c.Name = "lab"
	c.Dir = etcdDir
	c.ListenClientUrls, c.ListenPeerUrls = []url.URL{client}, []url.URL{peer}
	// Nobody dials what the only member advertises, but etcd wants a host and a port there.
	c.AdvertiseClientUrls = []url.URL{{Scheme: "http", Host: "localhost:2379"}}
	c.AdvertisePeerUrls = []url.URL{{Scheme: "http", Host: "localhost:2380"}}
	c.InitialCluster = c.InitialClusterFromName(c.Name)
	c.LogLevel = "warn"
	c.LogOutputs = []string{"stderr"}
	c.WarningUnaryRequestDuration = embed.DefaultWarningUnaryRequestDuration
	// A killed process loses nothing without fsync; only a crash of the machine may.
	c.UnsafeNoFsync = true

	etcd, err := embed.StartEtcd(c)
	if err != nil {
		return nil, err
	}

	select {
	case <-etcd.Server.ReadyNotify():
		return etcd, nil
	case err := <-etcd.Err():
		return nil, err
	case <-ctx.Done():
		etcd.Close()

		return nil, ctx.Err()
	}
}
