// SPDX-License-Identifier: Apache-2.0
// Copyright the talos-proxmox authors.

package talos

import (
	"errors"
	"fmt"

	"github.com/pulumi/pulumi/sdk/v3/go/pulumi"
	"github.com/siderolabs/talos/pkg/machinery/config/generate/secrets"

	"github.com/talos-proxmox/talos-proxmox/components/internal/hook"
	"github.com/talos-proxmox/talos-proxmox/internal/rollout"
	"github.com/talos-proxmox/talos-proxmox/internal/talossecrets"
	"github.com/talos-proxmox/talos-proxmox/internal/versions"
	"github.com/talos-proxmox/talos-proxmox/spec"
)

// refuseImmutable refuses edits of settings that a living cluster cannot change: the cipher of etcd, the networks of pods
// and services, the cluster's domain, how Cilium is installed, and flannel or another pod network.
func refuseImmutable(was, now kubernetesState) error {
	for _, setting := range []struct{ path, was, now, why string }{
		{"kubernetes.etcdEncryption", was.EtcdEncryption, now.EtcdEncryption, "what etcd holds could not be read any more"},
		{"cluster.podSubnets", was.PodSubnets, now.PodSubnets, "nodes and pods keep the addresses that they have"},
		{
			"cluster.serviceSubnets", was.ServiceSubnets, now.ServiceSubnets,
			"services keep the addresses that they have, the cluster's own among them",
		},
		{"cluster.dnsDomain", was.DNSDomain, now.DNSDomain, "what runs keeps asking for the names that it knows"},
		{"cni.cilium.install", was.CiliumInstall, now.CiliumInstall, "what one way installed the other cannot take over"},
	} {
		if err := refuseOther(setting.path, setting.was, setting.now, setting.why); err != nil {
			return err
		}
	}
	if was.CNI != "flannel" && now.CNI != "flannel" {
		return nil // Cilium may be handed over, and may take over from none
	}

	return refuseOther("cni.name", was.CNI, now.CNI,
		"Talos never takes flannel away, nor does it bring it beside another pod network")
}

func refuseOther(setting, was, now, why string) error {
	if was == "" || now == "" || was == now {
		return nil
	}

	return fmt.Errorf("%s: was %s, is now %s: %s; write %s again", setting, was, now, why, was)
}

// contract returns the contract that the stack names, else the one that was pinned when the cluster was made.
func contract(b *Build) pulumi.StringOutput {
	if given := spec.Value(b.Config.Talos.Contract); given != "" {
		return pulumi.String(given).ToStringOutput()
	}

	return b.Secrets.Contract
}

// refuseContract refuses to raise the contract while a node runs an older Talos: also where the same edit
// raises talos.version, since configurations are applied before nodes are upgraded.
func refuseContract(was, now kubernetesState) error {
	old, raised, ok := raisedContract(was, now)
	if !ok {
		return nil
	}
	runs, err := versions.ParseTalos(was.Talos)
	if err == nil && raised.NewerThan(runs.Contract()) {
		return fmt.Errorf("talos.contract: was %s, is now %s, and the nodes run Talos %s: edit talos.version first, "+
			"and talos.contract in a run after that", old, raised, runs)
	}

	return nil
}

// raisedContract returns from where to where the edit raises the contract, and reports whether it does.
func raisedContract(was, now kubernetesState) (from, to versions.Contract, raised bool) {
	from, errFrom := versions.ParseContract(was.Contract)
	to, errTo := versions.ParseContract(now.Contract)

	return from, to, errFrom == nil && errTo == nil && to.NewerThan(from)
}

// checkContractSupported asks the nodes themselves, at up, before their configurations take new forms.
func checkContractSupported(b *Build, was, now kubernetesState) error {
	_, to, raised := raisedContract(was, now)
	if !raised {
		return nil
	}
	remote, err := b.APIs.open(b.Ctx.Context())
	if err != nil {
		return err
	}
	limit := pollOptions(b.Config.Lifecycle, b.Config.Lifecycle.ReadyTimeout)
	if err := rollout.CheckContractSupported(b.Ctx.Context(), remote, b.Cluster, to, limit.Call); err != nil {
		return fmt.Errorf("talos.contract: %w", err)
	}

	return nil
}

// ClusterName holds what a program remembers of a cluster under a name that no setting changes.
type ClusterName struct {
	Cluster string `json:"cluster"`
}

// RefuseRename refuses another name of the cluster: every resource is named after it, so that all VMs would
// be replaced.
func RefuseRename(_ hook.Step, was, now ClusterName) error {
	if was.Cluster == "" || now.Cluster == "" || was == now {
		return nil
	}

	return fmt.Errorf("cluster.name: was %s, is now %s: every machine would be recreated under the new name; "+
		"write %s again, or make a stack of its own for the new cluster", was.Cluster, now.Cluster, was.Cluster)
}

// kubernetesState holds what the state remembers of a cluster's Kubernetes: the version that it runs, and
// settings that a living cluster keeps.
type kubernetesState struct {
	Kubernetes string `json:"kubernetes"`
	Edit       string `json:"edit"`
	// Contract is the form in which configurations are written; Talos is the version that nodes run.
	Contract string `json:"contract"`
	Talos    string `json:"talos"`

	EtcdEncryption string `json:"etcdEncryption"`
	PodSubnets     string `json:"podSubnets"`
	ServiceSubnets string `json:"serviceSubnets"`
	DNSDomain      string `json:"dnsDomain"`
	CNI            string `json:"cni"`
	CiliumInstall  string `json:"ciliumInstall"`

	Authorities talossecrets.Authorities `json:"authorities"`
}

// authorities resolves to the fingerprints of the cluster's authorities, a [talossecrets.Authorities].
func authorities(b *Build) pulumi.AnyOutput {
	found := b.Secrets.Bundle.ApplyT(func(v any) (any, error) {
		bundle, ok := v.(*secrets.Bundle)
		if !ok {
			return nil, errors.New("the cluster's secrets are missing")
		}

		return talossecrets.AuthoritiesOf(bundle, b.Config.Cluster)
	}).(pulumi.AnyOutput)

	return pulumi.Unsecret(found).(pulumi.AnyOutput)
}

// authoritiesInState resolves to the authorities in the shape in which kubernetesState has them as JSON.
func authoritiesInState(b *Build) pulumi.StringMapOutput {
	return authorities(b).ApplyT(func(v any) map[string]string {
		now, _ := v.(talossecrets.Authorities)

		return map[string]string{
			"talos": now.Talos, "kubernetes": now.Kubernetes, "others": now.Others,
			"acceptedTalos": now.AcceptedTalos, "acceptedKubernetes": now.AcceptedKubernetes,
		}
	}).(pulumi.StringMapOutput)
}
