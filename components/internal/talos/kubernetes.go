// SPDX-License-Identifier: Apache-2.0
// Copyright the talos-proxmox authors.

package talos

import (
	"context"
	"fmt"
	"strings"
	"time"

	"github.com/pulumi/pulumi/sdk/v3/go/pulumi"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/talos-proxmox/talos-proxmox/components/internal/hook"
	"github.com/talos-proxmox/talos-proxmox/components/internal/stash"
	"github.com/talos-proxmox/talos-proxmox/internal/kubeapply"
	"github.com/talos-proxmox/talos-proxmox/internal/rollout"
	"github.com/talos-proxmox/talos-proxmox/internal/talosapi"
	"github.com/talos-proxmox/talos-proxmox/internal/talossecrets"
	"github.com/talos-proxmox/talos-proxmox/internal/versions"
	"github.com/talos-proxmox/talos-proxmox/spec"
)

// registerKubernetes registers the version of Kubernetes that the cluster runs, with the settings that never
// change. When the version changes the cluster is upgraded component by component, node by node. The
// configurations depend on it: they name the version too, are applied to all nodes at the same time, and then
// find it running. The nodes' versions of Talos depend on the configurations, so that both upgrades never run
// at the same time. A new cluster does not wait for it. An upgrade that fails keeps the old value in the
// state, so that the next run goes on; when the edit is taken back instead, the nodes are brought back.
func registerKubernetes(b *Build) (*pulumi.Stash, error) {
	cfg := b.Config
	version := pulumi.String(*cfg.Kubernetes.Version)
	edit, err := stash.EditToken(b.Ctx, b.Name+"-kubernetes-edit", version, pulumi.Parent(b.Parent))
	if err != nil {
		return nil, err
	}
	on := stash.On[kubernetesState]{
		Create: func(step hook.Step, _ kubernetesState) error {
			b.isNew.Store(true)
			if !b.adopted() {
				return nil
			}

			return upgradeKubernetes(b, step) // nobody knows what a cluster runs that was made elsewhere
		},
		Plan: func(_ hook.Step, was, now kubernetesState) error {
			if err := refuseImmutable(was, now); err != nil {
				return err
			}
			if err := talossecrets.RefuseRotation(was.Authorities, now.Authorities); err != nil {
				return err
			}
			if err := refuseContract(was, now); err != nil {
				return err
			}

			return refuseKubernetesStep(was, now)
		},
		Update: func(step hook.Step, was, now kubernetesState) error {
			if err := checkContractSupported(b, was, now); err != nil {
				return err
			}
			if was.Kubernetes == now.Kubernetes && was.Edit == now.Edit {
				return nil
			}

			return upgradeKubernetes(b, step)
		},
	}

	wanted := wantedKubernetes(cfg)

	return stash.RememberInputs(b.Ctx, b.Name+"-kubernetes", pulumi.Map{
		"kubernetes": version, "edit": edit,
		"contract": contract(b), "talos": pulumi.String(wanted.Talos),
		"etcdEncryption": pulumi.String(wanted.EtcdEncryption),
		"podSubnets":     pulumi.String(wanted.PodSubnets),
		"serviceSubnets": pulumi.String(wanted.ServiceSubnets),
		"dnsDomain":      pulumi.String(wanted.DNSDomain),
		"cni":            pulumi.String(wanted.CNI),
		"ciliumInstall":  pulumi.String(wanted.CiliumInstall),
		"authorities":    authoritiesInState(b),
	}, on, pulumi.Parent(b.Parent), pulumi.DependsOn([]pulumi.Resource{b.Secrets.Resource}))
}

// wantedKubernetes returns what the stack file says, without what becomes known during the run.
func wantedKubernetes(cfg spec.Config) kubernetesState {
	return kubernetesState{
		Kubernetes: *cfg.Kubernetes.Version, Talos: *cfg.Talos.Version, EtcdEncryption: *cfg.Kubernetes.EtcdEncryption,
		PodSubnets:     strings.Join(cfg.Cluster.PodSubnets, ", "),
		ServiceSubnets: strings.Join(cfg.Cluster.ServiceSubnets, ", "),
		DNSDomain:      *cfg.Cluster.DNSDomain, CNI: *cfg.CNI.Name, CiliumInstall: ciliumInstall(cfg),
	}
}

// permitted resolves once the cluster runs what the configurations are written for. A run that leaves Kubernetes out
// fails where an edit of it waits, before a configuration reaches a node.
func permitted(b *Build, kubernetes *pulumi.Stash) pulumi.StringOutput {
	wanted := wantedKubernetes(b.Config)
	outcome := stash.OutcomeOf[kubernetesState](kubernetes)

	return authorities(b).ApplyT(func(v any) pulumi.StringOutput {
		now, _ := v.(talossecrets.Authorities)

		return outcome.After("", func(current kubernetesState) error {
			if err := refuseImmutable(current, wanted); err != nil {
				return err
			}
			if current.Kubernetes != wanted.Kubernetes {
				return fmt.Errorf("kubernetes.version: the cluster was not brought from %s to %s", current.Kubernetes, wanted.Kubernetes)
			}

			return talossecrets.RefuseRotation(current.Authorities, now)
		})
	}).(pulumi.StringOutput)
}

// upgradeKubernetes brings the cluster to the version that the stack names.
func upgradeKubernetes(b *Build, step hook.Step) error {
	remote, err := b.APIs.openLiving(b.Ctx.Context(), b.reporting(step))
	if err != nil {
		return err
	}
	// Members that leave do so later in the run.
	cluster := b.Cluster
	cluster.Leaving = true

	began := time.Now()
	err = rollout.KubernetesUpgrade{
		Access: remote, Cluster: cluster, Gate: b.Gate, Poll: pollOptions(b.Config.Lifecycle, b.Config.Lifecycle.UpgradeTimeout),
		Report: b.reporting(step), Snapshots: snapshotsOf(b.Session, remote), Metrics: remote.Metrics,
		Bootstrapped: b.wasBootstrapped, Force: b.Config.Lifecycle.Force,
		Sync: func(ctx context.Context) error { return syncBootstrapManifests(ctx, b, remote, step) },
	}.Run(b.Ctx.Context(), *b.Config.Kubernetes.Version)
	if err != nil {
		return err
	}
	for _, n := range b.Config.Nodes {
		b.work.Did("Kubernetes "+*b.Config.Kubernetes.Version, n.Name, began, time.Now())
	}

	return nil
}

// syncBootstrapManifests applies what Talos creates at bootstrap, in the versions that it brings now. Talos leaves that
// to its command for upgrades. Jobs ran once.
func syncBootstrapManifests(ctx context.Context, b *Build, remote *talosapi.Remote, step hook.Step) error {
	objects, err := remote.BootstrapManifests(ctx)
	if err != nil {
		return err
	}
	var apply []kubeapply.ManifestObject
	for _, o := range objects {
		object := unstructured.Unstructured{Object: o}
		text, err := object.MarshalJSON()
		if err != nil {
			return fmt.Errorf("reading what Talos brings to Kubernetes: %w", err)
		}
		if object.GetKind() != "Job" {
			apply = append(apply, kubeapply.ManifestObject{ID: kubeapply.IDOf(object), JSON: text})
		}
	}
	err = kubeapply.Manifests{
		Access: remote, Poll: pollOptions(b.Config.Lifecycle, b.Config.Lifecycle.UpgradeTimeout), Report: func(string) {},
	}.Run(ctx, apply, nil)
	if err != nil {
		return fmt.Errorf("syncing the bootstrap manifests: %w", err)
	}
	step.Report(fmt.Sprintf("%d bootstrap manifests of Talos are applied", len(apply)))

	return nil
}

// ciliumInstall returns how Cilium is installed, empty where there is none.
func ciliumInstall(cfg spec.Config) string {
	if !cfg.UsesCilium() {
		return ""
	}

	return spec.Value(cfg.CNI.Cilium.Install)
}

// refuseKubernetesStep refuses, in the preview already, a step that Kubernetes does not take.
func refuseKubernetesStep(was, now kubernetesState) error {
	from, errFrom := versions.ParseKubernetes(was.Kubernetes)
	to, errTo := versions.ParseKubernetes(now.Kubernetes)
	if errFrom != nil || errTo != nil {
		return nil //nolint:nilerr // the nodes themselves say what they run, at up
	}
	if err := versions.KubernetesStep(from, to); err != nil {
		return fmt.Errorf("kubernetes.version: %w", err)
	}

	return nil
}
