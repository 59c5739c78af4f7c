// SPDX-License-Identifier: Apache-2.0
// Copyright the talos-proxmox authors.

package components

import (
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/pulumi/pulumi/sdk/v3/go/common/resource"
	"github.com/pulumi/pulumi/sdk/v3/go/pulumi"

	"github.com/talos-proxmox/talos-proxmox/internal/operations"
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
			text, err := was.becomes(is)
			if err != nil || text == "" {
				return err
			}
			// A log that cannot be written must not end the work that it is about.
			_ = ctx.Log.Warn(text, &pulumi.LogArgs{Resource: urnResource{urn: args.URN}})
			if ctx.DryRun() || was.how != "flux/operator" || is.how != "flux/chart" {
				return nil
			}

			return releaseInstance(ctx, known, was.namespace, reportTo(ctx, args.URN))
		}, &pulumi.ResourceHookOptions{OnDryRun: true})
	if err != nil {
		return nil, fmt.Errorf("registering how cluster %q is handed to git: %w", name, err)
	}

	i := installed{how: howInstalled(g), namespace: spec.Or(g.Namespace, "")}
	opts = append(opts, pulumi.DependsOn([]pulumi.Resource{ready}),
		pulumi.ResourceHooks(&pulumi.ResourceHookBinding{BeforeUpdate: []*pulumi.ResourceHook{hook}}))
	stash, err := pulumi.NewStash(ctx, name, &pulumi.StashArgs{Input: pulumi.StringMap{
		"how": pulumi.String(i.how), "namespace": pulumi.String(i.namespace),
	}}, opts...)
	if err != nil {
		return nil, fmt.Errorf("registering how cluster %q is handed to git: %w", name, err)
	}

	return stash, nil
}

// installed is a controller in a cluster.
type installed struct{ how, namespace string }

// howInstalled is "none", or the controller and the way that it comes.
func howInstalled(g spec.GitOps) string {
	provider := spec.Or(g.Provider, "none")
	switch {
	case provider == "none":
		return provider
	case provider == argoProvider && spec.Or(g.DayZero, false):
		return provider + "/dayZero"
	case provider == argoProvider:
		return provider + "/chart"
	default:
		return provider + "/" + spec.Or(g.Method, "chart")
	}
}

// installedIn reads what a run has remembered.
func installedIn(inputs resource.PropertyMap) installed {
	input := inputs["input"]
	if input.IsSecret() {
		input = input.SecretValue().Element
	}
	i := installed{how: "none"}
	if !input.IsObject() {
		return i
	}
	for key, into := range map[resource.PropertyKey]*string{"how": &i.how, "namespace": &i.namespace} {
		if v := input.ObjectValue()[key]; v.IsString() {
			*into = v.StringValue()
		}
	}

	return i
}

// controller is how people call it; empty when there is none.
func (i installed) controller() string {
	switch {
	case i.how == "none":
		return ""
	case strings.HasPrefix(i.how, argoProvider):
		return "Argo CD"
	default:
		return "Flux"
	}
}

// atDayZero says whether Talos installed the controller.
func (i installed) atDayZero() bool {
	return i.how == "flux/inline" || i.how == argoProvider+"/dayZero"
}

// instanceTimeout bounds the wait for the operator to take its Flux away.
const instanceTimeout = 5 * time.Minute

const (
	errBecomesDayZero = "gitops: %s at day 0 is for a cluster that is yet to be made: Talos applies such manifests at " +
		"bootstrap. Choose gitops.method chart or operator, or gitops.dayZero false"
	errWasDayZero = "gitops: Talos installed %s at day 0 and Helm does not take over what it has not installed: keep " +
		"gitops as it was. Or set gitops.provider to none, remove %s by its own tool, and choose again"
)

// becomes says what a change means for what runs in the cluster, or why it is refused.
func (i installed) becomes(to installed) (string, error) {
	was, is := i.controller(), to.controller()
	switch {
	case i.how == to.how:
		return "", nil
	case to.atDayZero():
		return "", fmt.Errorf(errBecomesDayZero, is)
	case i.atDayZero() && was == is:
		return "", fmt.Errorf(errWasDayZero, was, was)
	case was == "":
		return "", nil
	case is == "" && i.atDayZero():
		return fmt.Sprintf("gitops is turned off: %s, which Talos installed at day 0, keeps running and keeps what it "+
			"applied; only its credentials go", was), nil
	case is == "":
		return fmt.Sprintf("gitops is turned off: %s goes, and everything that it applied keeps running. Its "+
			"namespace %s and its objects stay there, without effect. A generated deploy key goes; the age key "+
			"stays in the stack and opens what was encrypted for it when gitops is turned on again", was, i.namespace), nil
	case was == is:
		return fmt.Sprintf("gitops: %s is installed anew, by another method (%s after %s); everything that it applied "+
			"keeps running meanwhile", was, to.how, i.how), nil
	default:
		return fmt.Sprintf("gitops: %s gives way to %s: everything that %s applied keeps running, and %s takes care of "+
			"what it finds in git", was, is, was, is), nil
	}
}

// releaseInstance has the Flux operator take its Flux away while it still runs: it would leave an
// object behind that nobody can delete any more.
func releaseInstance(ctx *pulumi.Context, known *lateText, namespace string, report func(string)) error {
	kubeconfig, err := known.get()
	if err != nil {
		return err
	}
	api, err := operations.OpenObjects(kubeconfig)
	if err != nil {
		return err
	}
	path := "/apis/" + fluxInstanceVersion + "/namespaces/" + namespace + "/fluxinstances/" + fluxInstanceName
	if err := operations.DeleteAndWait(ctx.Context(), api, path, operations.DefaultPatience(instanceTimeout), report); err != nil {
		return errors.Join(errors.New("taking the Flux operator's Flux away"), err)
	}

	return nil
}
