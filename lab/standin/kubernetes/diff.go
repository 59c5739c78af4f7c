// SPDX-License-Identifier: Apache-2.0
// Copyright the talos-proxmox authors.

package kubernetes

import (
	"context"

	"github.com/pulumi/pulumi/sdk/v3/go/common/resource"
	"github.com/pulumi/pulumi/sdk/v3/go/common/resource/plugin"

	"github.com/talos-proxmox/talos-proxmox/lab/standin/bridge"
)

// Diff compares the last inputs with the new ones.
func (p *provider) Diff(_ context.Context, req plugin.DiffRequest) (plugin.DiffResponse, error) {
	c, err := p.configured()
	if err != nil {
		return plugin.DiffResult{}, err
	}
	if c.unreachable != "" && c.skipUpdateUnreachable {
		return plugin.DiffResult{Changes: plugin.DiffNone}, nil
	}

	found := bridge.Compare(resource.NewProperty(req.OldInputs), resource.NewProperty(req.NewInputs), nil)

	var replaces []string
	if string(req.Type) == releaseToken {
		replaces = []string{"name", "namespace"}
	} else {
		_, kind, err := kindOf(string(req.Type))
		if err != nil {
			return plugin.DiffResult{}, err
		}
		replaces = c.immutable(kind)
	}

	replacing := false
	r := bridge.Result(found, func(change bridge.Change) bool {
		for _, pattern := range replaces {
			if change.Path.Covers(pattern) {
				replacing = true
				return true
			}
		}
		return false
	})

	// Two objects cannot have one name: unless the new one gets another, the old one goes first.
	r.DeleteBeforeReplace = replacing && sameName(req.OldInputs, req.NewInputs)

	return r, nil
}

func sameName(was, now resource.PropertyMap) bool {
	a, b := bridge.TreeOf(was), bridge.TreeOf(now)
	if a.Has("chart") || b.Has("chart") {
		return a.Str("name") == b.Str("name") && a.Str("namespace") == b.Str("namespace")
	}

	annotations := b.Sub("metadata.annotations")
	if _, auto := annotations[annotationAutonamed]; auto {
		return false
	}

	return a.Str("metadata.name") == b.Str("metadata.name") && a.Str("metadata.namespace") == b.Str("metadata.namespace")
}

// immutable returns the fields of a kind that the API does not change.
func (c *cluster) immutable(kind string) []string {
	fields := []string{"apiVersion", "kind", "metadata.name", "metadata.namespace"}

	switch kind {
	case "ConfigMap":
		if !c.configMapMutable {
			fields = append(fields, "data", "binaryData")
		}
	case "Secret":
		fields = append(fields, "type")
		if !c.secretMutable {
			fields = append(fields, "data", "stringData")
		}
	case "Deployment", "DaemonSet", "ReplicaSet":
		fields = append(fields, "spec.selector")
	case "StatefulSet":
		fields = append(fields, "spec.selector", "spec.serviceName", "spec.podManagementPolicy",
			"spec.volumeClaimTemplates", "spec.revisionHistoryLimit")
	case "Job":
		fields = append(fields, "spec.selector", "spec.template", "spec.completions")
	case "Pod":
		fields = append(fields, "spec")
	case "PersistentVolumeClaim":
		fields = append(fields, "spec.accessModes", "spec.storageClassName", "spec.selector", "spec.volumeName")
	case "Service":
		fields = append(fields, "spec.clusterIP", "spec.type")
	case "StorageClass":
		fields = append(fields, "parameters", "provisioner", "reclaimPolicy", "volumeBindingMode")
	case "RoleBinding", "ClusterRoleBinding":
		fields = append(fields, "roleRef")
	case "RuntimeClass":
		fields = append(fields, "handler")
	}

	return fields
}
