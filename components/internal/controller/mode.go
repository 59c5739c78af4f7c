// SPDX-License-Identifier: Apache-2.0
// Copyright the talos-proxmox authors.

package controller

import (
	"errors"
	"time"

	"github.com/pulumi/pulumi/sdk/v3/go/pulumi"

	"github.com/talos-proxmox/talos-proxmox/components/internal/hook"
	"github.com/talos-proxmox/talos-proxmox/components/internal/stash"
	"github.com/talos-proxmox/talos-proxmox/components/internal/talos"
	"github.com/talos-proxmox/talos-proxmox/internal/cluster"
	"github.com/talos-proxmox/talos-proxmox/internal/gitops"
	"github.com/talos-proxmox/talos-proxmox/internal/kubeapply"
	"github.com/talos-proxmox/talos-proxmox/spec"
)

// modeState holds what the state remembers of how a cluster follows git.
type modeState struct {
	How       string `json:"how"`
	Namespace string `json:"namespace"`
}

func (m modeState) installed() gitops.Installed {
	if m.How == "" {
		m.How = gitops.None
	}

	return gitops.Installed{How: m.How, Namespace: m.Namespace}
}

// RecordMode registers which GitOps controller a cluster has, none included, so that a change of it can be
// announced in a preview, prepared in the cluster, or refused. It comes when something may be installed there, and
// whatever installs a controller comes after it. It returns the kubeconfig too, known from then on.
func RecordMode(
	ctx *pulumi.Context, name string, g spec.GitOps, start talos.Start, opts ...pulumi.ResourceOption,
) (pulumi.Resource, pulumi.StringOutput, error) {
	known := hook.FutureOf("the cluster's kubeconfig", start.Kubeconfig)
	wanted := gitops.InstalledBy(g)

	made, err := stash.Remember(ctx, name, modeState{How: wanted.How, Namespace: wanted.Namespace}, stash.On[modeState]{
		Create: func(step hook.Step, now modeState) error {
			if now.installed().How == gitops.None {
				return nil
			}

			return start.Await(step)
		},
		Plan: func(step hook.Step, was, now modeState) error {
			text, err := was.installed().Becomes(now.installed())
			if text != "" {
				step.Warn(text)
			}

			return err
		},
		Update: func(step hook.Step, was, now modeState) error {
			if !was.installed().LosesOperator(now.installed()) {
				return nil
			}
			text, err := known.Get(ctx.Context())
			if err != nil {
				return err
			}

			return deleteInstance(step, text, was.Namespace, time.Duration(*g.InstallTimeout))
		},
	}, append(opts, start.After)...)
	if err != nil {
		return nil, pulumi.StringOutput{}, err
	}
	kubeconfig := pulumi.All(start.Kubeconfig, made.ID()).ApplyT(func(v []any) string { return v[0].(string) })

	return made, pulumi.ToSecret(kubeconfig).(pulumi.StringOutput), nil
}

// deleteInstance has the Flux operator take its Flux away while it still runs: it would leave an object
// behind that nobody can delete any more.
func deleteInstance(step hook.Step, kubeconfig, namespace string, timeout time.Duration) error {
	api, err := kubeapply.OpenObjects(kubeconfig)
	if err != nil {
		return err
	}
	path := "/apis/" + gitops.FluxInstanceVersion + "/namespaces/" + namespace + "/fluxinstances/" + gitops.FluxInstanceName
	limit := cluster.DefaultPollOptions(timeout)
	if err := kubeapply.DeleteAndWait(step.Ctx.Context(), api, path, limit, step.Report); err != nil {
		return errors.Join(errors.New("taking the Flux operator's Flux away"), err)
	}

	return nil
}
