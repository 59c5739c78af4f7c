// SPDX-License-Identifier: Apache-2.0
// Copyright the talos-proxmox authors.

package talos

import (
	"errors"
	"testing"

	"github.com/stretchr/testify/assert"
)

// state returns what a cluster was, or is to be.
func state(contract, talos, encryption string) kubernetesState {
	return kubernetesState{Contract: contract, Talos: talos, EtcdEncryption: encryption}
}

// refuse returns why an edit is refused.
func refuse(was, now kubernetesState) error {
	return errors.Join(refuseImmutable(was, now), refuseContract(was, now))
}

func TestEditsOfWhatAClusterKeepsAreRefused(t *testing.T) {
	t.Parallel()

	was := state("v1.11", "v1.11.6", "secretbox")
	for name, c := range map[string]struct {
		now  kubernetesState
		want string
	}{
		"an upgrade of Talos keeps the contract": {now: state("v1.11", "v1.12.4", "secretbox")},
		"contract with the upgrade": {
			now: state("v1.12", "v1.12.4", "secretbox"),
			want: "talos.contract: was v1.11, is now v1.12, and the nodes run Talos v1.11.6: edit talos.version first, " +
				"and talos.contract in a run after that",
		},
		"contract lowered": {now: state("v1.10", "v1.11.6", "secretbox")},
		"another cipher": {
			now: state("v1.11", "v1.11.6", "aescbc"),
			want: "kubernetes.etcdEncryption: was secretbox, is now aescbc: what etcd holds could not be read any more; " +
				"write secretbox again",
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			err := refuse(was, c.now)
			if c.want == "" {
				assert.NoError(t, err)
			} else {
				assert.EqualError(t, err, c.want)
			}
		})
	}
	assert.NoError(t, refuse(state("v1.11", "v1.12.4", "secretbox"), state("v1.12", "v1.12.4", "secretbox")), "the contract may follow in an edit of its own")
}

func TestNetworksOfALivingClusterAreKept(t *testing.T) {
	t.Parallel()
	for want, of := range map[string]func(string) kubernetesState{
		"cluster.podSubnets: was one, is now two: nodes and pods keep the addresses that they have; write one again": func(v string) kubernetesState { return kubernetesState{PodSubnets: v} },
		"cluster.serviceSubnets: was one, is now two: services keep the addresses that they have, the cluster's own among them; write one again": func(v string) kubernetesState {
			return kubernetesState{ServiceSubnets: v}
		},
		"cluster.dnsDomain: was one, is now two: what runs keeps asking for the names that it knows; write one again": func(v string) kubernetesState { return kubernetesState{DNSDomain: v} },
		"cni.cilium.install: was one, is now two: what one way installed the other cannot take over; write one again": func(v string) kubernetesState { return kubernetesState{CiliumInstall: v} },
	} {
		assert.EqualError(t, refuse(of("one"), of("two")), want)
		assert.NoError(t, refuse(of("one"), of("one")))
		assert.NoError(t, refuse(kubernetesState{}, of("one")), "nothing was remembered")
	}
}

func TestFlannelStaysOrNeverComes(t *testing.T) {
	t.Parallel()
	edit := func(was, now string) error { return refuse(kubernetesState{CNI: was}, kubernetesState{CNI: now}) }
	const why = ": Talos never takes flannel away, nor does it bring it beside another pod network; write "
	assert.EqualError(t, edit("flannel", "cilium"), "cni.name: was flannel, is now cilium"+why+"flannel again")
	assert.EqualError(t, edit("none", "flannel"), "cni.name: was none, is now flannel"+why+"none again")
	assert.NoError(t, edit("cilium", "none"), "handed over to what git says")
	assert.NoError(t, edit("none", "cilium"))
}
