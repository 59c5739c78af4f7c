// SPDX-License-Identifier: Apache-2.0
// Copyright the talos-proxmox authors.

// Package kube registers Kubernetes objects and Helm releases.
package kube

import (
	"fmt"
	"strings"

	"github.com/pulumi/pulumi-kubernetes/sdk/v4/go/kubernetes"
	"github.com/pulumi/pulumi-kubernetes/sdk/v4/go/kubernetes/apiextensions"
	metav1 "github.com/pulumi/pulumi-kubernetes/sdk/v4/go/kubernetes/meta/v1"
	"github.com/pulumi/pulumi/sdk/v3/go/pulumi"
)

// Objects are registered as custom resources whatever their kind, and releases by their token: the
// packages that have them typed are so large that they would take minutes to compile.

// Object describes one Kubernetes object.
type Object struct {
	APIVersion, Kind, Namespace, Name string
	Labels                            pulumi.StringMap
	// Fields are those beside metadata.
	Fields kubernetes.UntypedArgs
}

// Register registers the object under a resource name.
func (o Object) Register(
	ctx *pulumi.Context, resource string, opts ...pulumi.ResourceOption,
) (*apiextensions.CustomResource, error) {
	meta := metav1.ObjectMetaArgs{Name: pulumi.String(o.Name)}
	if o.Namespace != "" {
		meta.Namespace = pulumi.String(o.Namespace)
	}
	if len(o.Labels) > 0 {
		meta.Labels = o.Labels
	}
	if !strings.Contains(o.APIVersion, "/") {
		return o.registerCore(ctx, resource, meta, opts...)
	}
	made, err := apiextensions.NewCustomResource(ctx, resource, &apiextensions.CustomResourceArgs{
		ApiVersion: pulumi.String(o.APIVersion), Kind: pulumi.String(o.Kind), Metadata: meta, OtherFields: o.Fields,
	}, append(opts, pulumi.Version(ProviderVersion))...)
	if err != nil {
		return nil, fmt.Errorf("registering %s %q: %w", o.Kind, o.Name, err)
	}

	return made, nil
}

// registerCore registers an object of Kubernetes' first group, which has no name in API versions; the
// provider calls it core, and takes no other.
func (o Object) registerCore(
	ctx *pulumi.Context, resource string, meta metav1.ObjectMetaArgs, opts ...pulumi.ResourceOption,
) (*apiextensions.CustomResource, error) {
	args := pulumi.Map{"apiVersion": pulumi.String(o.APIVersion), "kind": pulumi.String(o.Kind), "metadata": meta}
	for name, value := range o.Fields {
		args[name] = pulumi.Any(value)
	}

	made := &apiextensions.CustomResource{}
	err := ctx.RegisterResource("kubernetes:core/"+o.APIVersion+":"+o.Kind, resource, args, made,
		append(opts, pulumi.Version(ProviderVersion))...)
	if err != nil {
		return nil, fmt.Errorf("registering %s %q: %w", o.Kind, o.Name, err)
	}

	return made, nil
}

// Namespace returns a namespace.
func Namespace(name string) Object {
	return Object{APIVersion: "v1", Kind: "Namespace", Name: name}
}

// RegisterSecret registers a Kubernetes Secret; every value is secret in the state.
func RegisterSecret(
	ctx *pulumi.Context, resource string, o Object, data map[string]pulumi.StringInput, opts ...pulumi.ResourceOption,
) (*apiextensions.CustomResource, error) {
	values := pulumi.StringMap{}
	for key, value := range data {
		values[key] = Secret(value)
	}
	o.APIVersion, o.Kind = "v1", "Secret"
	o.Fields = kubernetes.UntypedArgs{"type": pulumi.String("Opaque"), "stringData": pulumi.ToSecret(values)}

	return o.Register(ctx, resource, append(opts, pulumi.AdditionalSecretOutputs([]string{"stringData", "data"}))...)
}
