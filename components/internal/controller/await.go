// SPDX-License-Identifier: Apache-2.0
// Copyright the talos-proxmox authors.

package controller

import (
	"fmt"
	"time"

	"github.com/pulumi/pulumi/sdk/v3/go/pulumi"

	"github.com/talos-proxmox/talos-proxmox/components/internal/hook"
	"github.com/talos-proxmox/talos-proxmox/components/internal/kube"
	"github.com/talos-proxmox/talos-proxmox/components/internal/stash"
	"github.com/talos-proxmox/talos-proxmox/internal/cluster"
	"github.com/talos-proxmox/talos-proxmox/internal/gitops"
	"github.com/talos-proxmox/talos-proxmox/internal/kubeapply"
)

// appliedState holds what Flux had applied when somebody waited for it.
type appliedState struct {
	Settings string `json:"settings"`
	Key      string `json:"key"`
}

// await registers what is done when Flux has applied the path, where somebody wants to wait for that. Its
// input is what must be applied, so that any change of it is awaited again.
func (b *builder) await(
	kubeconfig pulumi.StringInput, credentials []pulumi.StringOutput, key pulumi.StringOutput, before []pulumi.Resource,
) error {
	if b.g.Await == nil || b.g.Git.URL == nil {
		return nil
	}
	known := hook.FutureOf("the kubeconfig of cluster "+b.clusterName, kubeconfig)
	wait := func(step hook.Step) error {
		text, err := known.Get(b.ctx.Context())
		if err != nil {
			return err
		}
		api, err := kubeapply.OpenObjects(text)
		if err != nil {
			return err
		}
		limit := cluster.DefaultPollOptions(time.Duration(*b.g.Await))

		return kubeapply.WaitFluxSync(b.ctx.Context(), api, b.fluxSync(), limit, step.Report)
	}
	repository, kustomization := gitops.GitRepository(b.g).Spec, gitops.Kustomization(b.g).Spec
	values := make([]any, 0, len(credentials))
	for _, c := range credentials {
		values = append(values, c)
	}
	settings := pulumi.All(values...).ApplyT(func(v []any) (string, error) {
		return stash.Fingerprint(repository, kustomization, v)
	}).(pulumi.StringOutput)
	_, err := stash.RememberInputs(b.ctx, b.name+"-applied", pulumi.StringMap{"settings": kube.Secret(settings), "key": key},
		stash.On[appliedState]{
			Create: func(step hook.Step, _ appliedState) error { return wait(step) },
			Update: func(step hook.Step, _, _ appliedState) error { return wait(step) },
		}, b.after(before...)...)

	return err
}

// fluxSync returns the API paths of the objects that must become Ready.
func (b *builder) fluxSync() kubeapply.FluxSync {
	at := func(api, kind string) string {
		return fmt.Sprintf("/apis/%s/namespaces/%s/%s", api, *b.g.Namespace, kind)
	}

	return kubeapply.FluxSync{
		Repository:     at(gitops.GitRepositoryVersion, "gitrepositories") + "/" + gitops.FluxObject,
		Kustomizations: at(gitops.KustomizationVersion, "kustomizations"), Name: gitops.FluxObject,
	}
}
