// SPDX-License-Identifier: Apache-2.0
// Copyright the talos-proxmox authors.

package components

import (
	"fmt"
	"path/filepath"
	"strings"

	"github.com/pulumi/pulumi-kubernetes/sdk/v4/go/kubernetes"
	"github.com/pulumi/pulumi-kubernetes/sdk/v4/go/kubernetes/apiextensions"
	metav1 "github.com/pulumi/pulumi-kubernetes/sdk/v4/go/kubernetes/meta/v1"
	"github.com/pulumi/pulumi/sdk/v3/go/pulumi"

	"github.com/talos-proxmox/talos-proxmox/spec"
)

// Objects are registered as custom resources whatever their kind, and releases by their token: the
// packages that have them typed are so large that they would take minutes to compile.

// object is one Kubernetes object.
type object struct {
	apiVersion, kind, namespace, name string
	labels                            pulumi.StringMap
	fields                            kubernetes.UntypedArgs
}

func (o object) register(
	ctx *pulumi.Context, resource string, opts ...pulumi.ResourceOption,
) (*apiextensions.CustomResource, error) {
	meta := metav1.ObjectMetaArgs{Name: pulumi.String(o.name)}
	if o.namespace != "" {
		meta.Namespace = pulumi.String(o.namespace)
	}
	if len(o.labels) > 0 {
		meta.Labels = o.labels
	}
	if !strings.Contains(o.apiVersion, "/") {
		return o.registerCore(ctx, resource, meta, opts...)
	}
	made, err := apiextensions.NewCustomResource(ctx, resource, &apiextensions.CustomResourceArgs{
		ApiVersion: pulumi.String(o.apiVersion), Kind: pulumi.String(o.kind), Metadata: meta, OtherFields: o.fields,
	}, append(opts, pulumi.Version(KubernetesProviderVersion))...)
	if err != nil {
		return nil, fmt.Errorf("registering %s %q: %w", o.kind, o.name, err)
	}

	return made, nil
}

// registerCore registers an object of Kubernetes' first group, which has no name in API versions; the
// provider calls it core, and takes no other.
func (o object) registerCore(
	ctx *pulumi.Context, resource string, meta metav1.ObjectMetaArgs, opts ...pulumi.ResourceOption,
) (*apiextensions.CustomResource, error) {
	args := pulumi.Map{"apiVersion": pulumi.String(o.apiVersion), "kind": pulumi.String(o.kind), "metadata": meta}
	for name, value := range o.fields {
		args[name] = pulumi.Any(value)
	}

	made := &apiextensions.CustomResource{}
	err := ctx.RegisterResource("kubernetes:core/"+o.apiVersion+":"+o.kind, resource, args, made,
		append(opts, pulumi.Version(KubernetesProviderVersion))...)
	if err != nil {
		return nil, fmt.Errorf("registering %s %q: %w", o.kind, o.name, err)
	}

	return made, nil
}

// namespaceObject is a namespace.
func namespaceObject(name string) object {
	return object{apiVersion: "v1", kind: "Namespace", name: name}
}

// registerSecret registers a Kubernetes Secret; every value is secret in the state.
func registerSecret(
	ctx *pulumi.Context, resource string, o object, data map[string]pulumi.StringInput, opts ...pulumi.ResourceOption,
) (*apiextensions.CustomResource, error) {
	values := pulumi.StringMap{}
	for key, value := range data {
		values[key] = secretString(value)
	}
	o.apiVersion, o.kind = "v1", "Secret"
	o.fields = kubernetes.UntypedArgs{"type": pulumi.String("Opaque"), "stringData": pulumi.ToSecret(values)}

	return o.register(ctx, resource, append(opts, pulumi.AdditionalSecretOutputs([]string{"stringData", "data"}))...)
}

// releaseType is the token of a Helm release.
const releaseType = "kubernetes:helm.sh/v3:Release"

// helmRelease is a Helm release as its resource.
type helmRelease struct {
	pulumi.CustomResourceState
}

// registerRelease installs a chart into a namespace that is there: from the cache, where there is one.
func registerRelease(
	ctx *pulumi.Context, resource, name, namespace string, charts ChartCache, chart spec.Chart, values map[string]any,
	opts ...pulumi.ResourceOption,
) (*helmRelease, error) {
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
		"timeout":   pulumi.Int(releaseTimeout),
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
	opts = append(opts, pulumi.Version(KubernetesProviderVersion), pulumi.DeleteBeforeReplace(true))
	r := &helmRelease{}
	if err := ctx.RegisterResource(releaseType, resource, args, r, opts...); err != nil {
		return nil, fmt.Errorf("registering release %q: %w", name, err)
	}

	return r, nil
}

// releaseTimeout bounds the wait for what a release installs, in seconds.
const releaseTimeout = 600

// chartReference is how Helm names the chart, and the repository it is in where that is told apart.
func chartReference(chart spec.Chart) (reference, repository string) {
	name, from := spec.Or(chart.Name, ""), spec.Or(chart.Repository, "")
	switch {
	case strings.HasPrefix(from, "http://"), strings.HasPrefix(from, "https://"):
		return name, from
	case strings.HasPrefix(from, "oci://"):
		return strings.TrimSuffix(from, "/") + "/" + name, ""
	default:
		return filepath.Join(from, name), ""
	}
}
