// SPDX-License-Identifier: Apache-2.0
// Copyright the talos-proxmox authors.

package kube

import (
	"fmt"
	"path/filepath"
	"strings"
	"time"

	"github.com/pulumi/pulumi/sdk/v3/go/pulumi"

	"github.com/talos-proxmox/talos-proxmox/internal/manifests"
	"github.com/talos-proxmox/talos-proxmox/spec"
)

// releaseType is the token of a Helm release.
const releaseType = "kubernetes:helm.sh/v3:Release"

// Release describes a Helm release.
type Release struct {
	pulumi.CustomResourceState
}

// RegisterRelease installs a chart into a namespace that is there, within a time: from the cache, where there is one.
func RegisterRelease(
	ctx *pulumi.Context, resource, name, namespace string, charts manifests.Cache, chart spec.Chart, values map[string]any,
	limit time.Duration, opts ...pulumi.ResourceOption,
) (*Release, error) {
	reference, repository := chartReference(chart)
	if charts.Dir != "" {
		// Helm's own fetch would ask the repository again at every plan.
		var err error
		if reference, err = charts.Reference(ctx.Context(), chart); err != nil {
			return nil, fmt.Errorf("release %q: %w", name, err)
		}
		chart.Username, chart.Password, repository = nil, nil, ""
	}
	args := pulumi.Map{
		"chart":     pulumi.String(reference),
		"name":      pulumi.String(name),
		"namespace": pulumi.String(namespace),
		"values":    pulumi.ToMap(values),
		"timeout":   pulumi.Int(int(limit.Seconds())),
	}
	if chart.Version != nil {
		args["version"] = pulumi.String(*chart.Version)
	}
	options := pulumi.Map{}
	if repository != "" {
		options["repo"] = pulumi.String(repository)
	}
	if chart.Username != nil {
		options["username"] = pulumi.String(*chart.Username)
	}
	if chart.Password != nil {
		options["password"] = pulumi.ToSecret(pulumi.String(chart.Password.Reveal()))
	}
	if len(options) > 0 {
		args["repositoryOpts"] = options
	}

	// Another chart brings objects of the same names, which Helm does not take over from a release.
	opts = append(opts, pulumi.Version(ProviderVersion), pulumi.DeleteBeforeReplace(true))
	r := &Release{}
	if err := ctx.RegisterResource(releaseType, resource, args, r, opts...); err != nil {
		return nil, fmt.Errorf("registering release %q: %w", name, err)
	}

	return r, nil
}

// chartReference returns how Helm names the chart, and its repository where that is given apart.
func chartReference(chart spec.Chart) (reference, repository string) {
	name, from := spec.Value(chart.Name), spec.Value(chart.Repository)
	switch {
	case strings.HasPrefix(from, "http://"), strings.HasPrefix(from, "https://"):
		return name, from
	case strings.HasPrefix(from, "oci://"):
		return strings.TrimSuffix(from, "/") + "/" + name, ""
	default:
		return filepath.Join(from, name), ""
	}
}
