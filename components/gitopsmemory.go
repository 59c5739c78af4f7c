// SPDX-License-Identifier: Apache-2.0
// Copyright the talos-proxmox authors.

package components

import (
	"errors"
	"fmt"
	"time"

	"github.com/pulumi/pulumi/sdk/v3/go/common/resource"
	"github.com/pulumi/pulumi/sdk/v3/go/pulumi"

	"github.com/talos-proxmox/talos-proxmox/internal/cluster"
	"github.com/talos-proxmox/talos-proxmox/internal/gitops"
	"github.com/talos-proxmox/talos-proxmox/internal/kubeapply"
	"github.com/talos-proxmox/talos-proxmox/spec"
)

// RememberGitOps registers how a cluster is handed to git, none included, so that a change of it can be
// told in a preview, prepared in the cluster, or refused. It comes after ready, which is there once the
// kubeconfig is known, and whatever installs a controller comes after it.
func RememberGitOps(
	ctx *pulumi.Context, name string, g spec.GitOps, kubeconfig pulumi.StringInput, ready pulumi.Resource,
	opts ...pulumi.ResourceOption,
) (pulumi.Resource, error) {
	known := newLateText(kubeconfig)
	hook, err := ctx.RegisterResourceHook(hookID("talos-proxmox:components:GitOps", name, "change"),
		func(args *pulumi.ResourceHookArgs) error {
			was, is := installedIn(args.OldInputs), installedIn(args.NewInputs)
			text, err := was.Becomes(is)
			if err != nil || text == "" {
				return err
			}
			// A log that cannot be written must not end the work that it is about.
			_ = ctx.Log.Warn(text, &pulumi.LogArgs{Resource: urnResource{urn: args.URN}})
			if ctx.DryRun() || !was.LosesOperator(is) {
				return nil
			}

			return releaseInstance(ctx, known, was.Namespace, reportTo(ctx, args.URN))
		}, &pulumi.ResourceHookOptions{OnDryRun: true})
	if err != nil {
		return nil, fmt.Errorf("registering how cluster %q is handed to git: %w", name, err)
	}

	i := gitops.InstalledBy(g)
	opts = append(opts, pulumi.DependsOn([]pulumi.Resource{ready}),
		pulumi.ResourceHooks(&pulumi.ResourceHookBinding{BeforeUpdate: []*pulumi.ResourceHook{hook}}))
	stash, err := pulumi.NewStash(ctx, name, &pulumi.StashArgs{Input: pulumi.StringMap{
		"how": pulumi.String(i.How), "namespace": pulumi.String(i.Namespace),
	}}, opts...)
	if err != nil {
		return nil, fmt.Errorf("registering how cluster %q is handed to git: %w", name, err)
	}

	return stash, nil
}

// installedIn reads what a run has remembered.
func installedIn(inputs resource.PropertyMap) gitops.Installed {
	input := inputs["input"]
	if input.IsSecret() {
		input = input.SecretValue().Element
	}
	i := gitops.Installed{How: gitops.None}
	if !input.IsObject() {
		return i
	}
	for key, into := range map[resource.PropertyKey]*string{"how": &i.How, "namespace": &i.Namespace} {
		if v := input.ObjectValue()[key]; v.IsString() {
			*into = v.StringValue()
		}
	}

	return i
}

// instanceTimeout bounds the wait for the operator to take its Flux away.
const instanceTimeout = 5 * time.Minute

// releaseInstance has the Flux operator take its Flux away while it still runs: it would leave an
// object behind that nobody can delete any more.
func releaseInstance(ctx *pulumi.Context, known *lateText, namespace string, report func(string)) error {
	kubeconfig, err := known.get()
	if err != nil {
		return err
	}
	api, err := kubeapply.OpenObjects(kubeconfig)
	if err != nil {
		return err
	}
	path := "/apis/" + gitops.FluxInstanceVersion + "/namespaces/" + namespace + "/fluxinstances/" + gitops.FluxInstanceName
	if err := kubeapply.DeleteAndWait(ctx.Context(), api, path, cluster.DefaultPollOptions(instanceTimeout), report); err != nil {
		return errors.Join(errors.New("taking the Flux operator's Flux away"), err)
	}

	return nil
}
