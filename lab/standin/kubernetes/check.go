// SPDX-License-Identifier: Apache-2.0
// Copyright the talos-proxmox authors.

package kubernetes

import (
	"context"
	"fmt"

	"github.com/pulumi/pulumi/sdk/v3/go/common/resource"
	"github.com/pulumi/pulumi/sdk/v3/go/common/resource/plugin"
	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/talos-proxmox/talos-proxmox/lab/standin/bridge"
)

// Check completes an object: kind, name, namespace.
func (p *provider) Check(ctx context.Context, req plugin.CheckRequest) (plugin.CheckResponse, error) {
	c, err := p.configured()
	if err != nil {
		return plugin.CheckResponse{}, err
	}
	if string(req.Type) == releaseToken {
		return p.checkRelease(ctx, c, req)
	}

	apiVersion, kind, err := kindOf(string(req.Type))
	if err != nil {
		return plugin.CheckResponse{}, err
	}

	in := req.News.Copy()
	var failures []plugin.CheckFailure
	for key, want := range map[resource.PropertyKey]string{"apiVersion": apiVersion, "kind": kind} {
		if v := opened(in[key]); v.IsString() && v.StringValue() != want {
			failures = append(failures, plugin.CheckFailure{
				Property: key, Reason: fmt.Sprintf("expected %q, got %q", want, v.StringValue()),
			})
		}
		in[key] = resource.NewProperty(want)
	}

	metadata := opened(in["metadata"])
	switch {
	case metadata.IsObject():
	case metadata.IsNull():
		metadata = resource.NewProperty(resource.PropertyMap{})
	case metadata.IsComputed(), metadata.IsOutput():
		return plugin.CheckResponse{Properties: in, Failures: failures}, nil
	default:
		failures = append(failures, plugin.CheckFailure{
			Property: "metadata", Reason: "expected object type, got " + metadata.TypeString() + " type",
		})
		return plugin.CheckResponse{Properties: in, Failures: failures}, nil
	}

	m := metadata.ObjectValue().Copy()
	if err := autoname(m, req); err != nil {
		return plugin.CheckResponse{}, err
	}
	if _, have := m["namespace"]; !have && c.namespaced(apiVersion, kind) {
		m["namespace"] = resource.NewProperty(c.defaultNamespace())
	}
	if in["metadata"].IsSecret() {
		in["metadata"] = resource.MakeSecret(resource.NewProperty(m))
	} else {
		in["metadata"] = resource.NewProperty(m)
	}

	if apiVersion == "v1" && kind == "Secret" {
		encodeStringData(in)
		in = bridge.MarkSecrets(in, []string{"data", "stringData"})
	}

	return plugin.CheckResponse{Properties: in, Failures: failures}, nil
}

func (c *cluster) defaultNamespace() string {
	if c.namespace == "" {
		return "default"
	}

	return c.namespace
}

// namespaced asks the cluster; where it does not answer, well-known kinds are known.
func (c *cluster) namespaced(apiVersion, kind string) bool {
	if clusterScoped(kind) {
		return false
	}

	gv, err := schema.ParseGroupVersion(apiVersion)
	if c.unreachable != "" || err != nil {
		return knownGroup(gv.Group)
	}

	m, err := c.resourceOf(gv.WithKind(kind))
	if err != nil {
		return knownGroup(gv.Group)
	}

	return m.Scope.Name() == meta.RESTScopeNameNamespace
}

// knownGroup returns the groups of Kubernetes itself; of others' kinds nobody knows the scope.
func knownGroup(group string) bool {
	if group == "" || group == "apps" || group == "batch" || group == "autoscaling" || group == "policy" {
		return true
	}
	for _, full := range shortGroups() {
		if group == full {
			return true
		}
	}

	return false
}

// autoname gives an object without a name "<logical name>-<8 hex>", and keeps the one it got.
func autoname(metadata resource.PropertyMap, req plugin.CheckRequest) error {
	if name := opened(metadata["name"]); !name.IsNull() && (!name.IsString() || name.StringValue() != "") {
		return nil
	}
	if _, generated := metadata["generateName"]; generated {
		return nil
	}

	old := opened(req.Olds["metadata"])
	if old.IsObject() {
		annotations := opened(old.ObjectValue()["annotations"])
		if annotations.IsObject() && opened(annotations.ObjectValue()[annotationAutonamed]).IsString() {
			metadata["name"] = old.ObjectValue()["name"]
			annotate(metadata)
			return nil
		}
	}

	if a := req.Autonaming; a != nil && a.ProposedName != "" && a.Mode != plugin.AutonamingModePropose {
		metadata["name"] = resource.NewProperty(a.ProposedName)
	} else {
		name, err := resource.NewUniqueName(req.RandomSeed, req.URN.Name()+"-", 8, 253, nil)
		if err != nil {
			return fmt.Errorf("naming %s: %w", req.URN.Name(), err)
		}
		metadata["name"] = resource.NewProperty(name)
	}
	annotate(metadata)

	return nil
}

func annotate(metadata resource.PropertyMap) {
	annotations := resource.PropertyMap{}
	if have := opened(metadata["annotations"]); have.IsObject() {
		annotations = have.ObjectValue().Copy()
	}
	annotations[annotationAutonamed] = resource.NewProperty("true")
	metadata["annotations"] = resource.NewProperty(annotations)
}
