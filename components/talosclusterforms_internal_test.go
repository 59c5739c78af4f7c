// SPDX-License-Identifier: Apache-2.0
// Copyright the talos-proxmox authors.

package components

import (
	"testing"

	"github.com/pulumi/pulumi/sdk/v3/go/common/resource"
	"github.com/pulumi/pulumi/sdk/v3/go/pulumi"
	"github.com/stretchr/testify/assert"
)

// formsInput is what a cluster's forms were, or are to be.
func formsInput(contract, talos, encryption string) resource.PropertyMap {
	return resource.PropertyMap{"input": resource.NewPropertyValue(map[string]any{
		formsContract: contract, formsTalos: talos, formsEncryption: encryption,
	})}
}

func TestFormsThatAreRefused(t *testing.T) {
	t.Parallel()

	was := formsInput("v1.11", "v1.11.6", "secretbox")
	for name, c := range map[string]struct {
		now  resource.PropertyMap
		want string
	}{
		"an upgrade of Talos keeps the contract": {now: formsInput("v1.11", "v1.12.4", "secretbox")},
		"contract with the upgrade": {
			now: formsInput("v1.12", "v1.12.4", "secretbox"),
			want: "talos.contract: was v1.11, is now v1.12, and the nodes run Talos v1.11.6: edit talos.version first, " +
				"and talos.contract in a run after that",
		},
		"contract lowered": {now: formsInput("v1.10", "v1.11.6", "secretbox")},
		"another cipher": {
			now: formsInput("v1.11", "v1.11.6", "aescbc"),
			want: "kubernetes.etcdEncryption: was secretbox, is now aescbc: what etcd holds could not be read any more; " +
				"write secretbox again",
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			err := refuseForms(&pulumi.ResourceHookArgs{OldInputs: was, NewInputs: c.now})
			if c.want == "" {
				assert.NoError(t, err)
			} else {
				assert.EqualError(t, err, c.want)
			}
		})
	}
	after := &pulumi.ResourceHookArgs{
		OldInputs: formsInput("v1.11", "v1.12.4", "secretbox"), NewInputs: formsInput("v1.12", "v1.12.4", "secretbox"),
	}
	assert.NoError(t, refuseForms(after), "the contract may follow in an edit of its own")
}

func TestNetworksOfALivingClusterAreKept(t *testing.T) {
	t.Parallel()
	for key, want := range map[string]string{
		formsPods:     "cluster.podSubnets: was one, is now two: nodes and pods keep the addresses that they have; write one again",
		formsServices: "cluster.serviceSubnets: was one, is now two: services keep the addresses that they have, the cluster's own among them; write one again",
		formsDomain:   "cluster.dnsDomain: was one, is now two: what runs keeps asking for the names that it knows; write one again",
		formsInstall:  "cni.cilium.install: was one, is now two: what one way installed the other cannot take over; write one again",
	} {
		input := func(value string) resource.PropertyMap {
			return resource.PropertyMap{"input": resource.NewPropertyValue(map[string]any{key: value})}
		}
		assert.EqualError(t, refuseForms(&pulumi.ResourceHookArgs{OldInputs: input("one"), NewInputs: input("two")}), want)
		assert.NoError(t, refuseForms(&pulumi.ResourceHookArgs{OldInputs: input("one"), NewInputs: input("one")}))
		assert.NoError(t, refuseForms(&pulumi.ResourceHookArgs{NewInputs: input("one")}), "an older state does not say")
	}
}

func TestFlannelStaysOrNeverComes(t *testing.T) {
	t.Parallel()
	edit := func(was, now string) error {
		input := func(value string) resource.PropertyMap {
			return resource.PropertyMap{"input": resource.NewPropertyValue(map[string]any{formsNetwork: value})}
		}

		return refuseForms(&pulumi.ResourceHookArgs{OldInputs: input(was), NewInputs: input(now)})
	}
	const why = ": Talos never takes flannel away, nor does it bring it beside another pod network; write "
	assert.EqualError(t, edit("flannel", "cilium"), "cni.name: was flannel, is now cilium"+why+"flannel again")
	assert.EqualError(t, edit("none", "flannel"), "cni.name: was none, is now flannel"+why+"none again")
	assert.NoError(t, edit("cilium", "none"), "handed over to what git says")
	assert.NoError(t, edit("none", "cilium"))
}
