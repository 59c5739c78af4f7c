// SPDX-License-Identifier: Apache-2.0
// Copyright the talos-proxmox authors.

package talos

import (
	"github.com/pulumi/pulumi/sdk/v3/go/pulumi"
	"github.com/pulumiverse/pulumi-talos/sdk/go/talos/machine"
)

// Register registers everything of the cluster, in order.
func Register(b *Build) (*Built, error) {
	list, err := persistedManifests(b)
	if err != nil {
		return nil, err
	}
	if b.kubernetes, err = registerKubernetes(b); err != nil {
		return nil, err
	}
	b.permitted = permitted(b, b.kubernetes)
	applies, fingerprints, err := applyConfigurations(b, list)
	if err != nil {
		return nil, err
	}
	joined, err := joinNodes(b, applies)
	if err != nil {
		return nil, err
	}
	members, err := registerMembers(b, joined)
	if err != nil {
		return nil, err
	}
	upgraded, err := registerUpgrades(b, applies, members)
	if err != nil {
		return nil, err
	}
	done := append(append(upgraded, members), joined...)
	edited, objects, err := registerManifests(b, list, done)
	if err != nil {
		return nil, err
	}
	ready, err := registerReady(b, fingerprints, objects, append(done, edited))
	if err != nil {
		return nil, err
	}
	fetched, err := fetchKubeconfig(b, joined)
	if err != nil {
		return nil, err
	}
	kubeconfig := openKubeconfig(b, fetched, ready)

	return &Built{
		Kubeconfig: kubeconfig, Endpoint: retired(b, members, b.Config.Endpoint()), Ready: ready,
		Start: startOf(b, secretString(fetched.KubeconfigRaw), fetched, ready),
	}, storeCredentials(b, kubeconfig)
}

// joinNodes returns what is there once every node has its configuration and etcd runs, the latter last.
func joinNodes(b *Build, applies map[string]*machine.ConfigurationApply) ([]pulumi.Resource, error) {
	joined := make([]pulumi.Resource, 0, len(applies)+1)
	for _, n := range b.Config.Nodes {
		joined = append(joined, applies[n.Name])
	}
	if b.adopted() {
		return joined, nil
	}
	started, err := bootstrap(b, applies)
	if err != nil {
		return nil, err
	}

	return append(joined, started), nil
}
