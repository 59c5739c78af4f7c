// SPDX-License-Identifier: Apache-2.0
// Copyright the talos-proxmox authors.

package kubeapply

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/dynamic"
)

// ObjectAccess opens the Kubernetes API of one cluster for objects of any kind.
type ObjectAccess interface {
	// Objects returns the API and a mapper of kinds; Reset of the mapper makes it ask again.
	Objects(ctx context.Context) (dynamic.Interface, meta.ResettableRESTMapper, error)
}

// ObjectID names an object: "apps/v1/DaemonSet/kube-system/cilium". The namespace may be empty.
type ObjectID string

// IDOf returns the ID of an object.
func IDOf(o unstructured.Unstructured) ObjectID {
	return ObjectID(strings.Join([]string{o.GetAPIVersion(), o.GetKind(), o.GetNamespace(), o.GetName()}, "/"))
}

// split returns the kind, the namespace and the name.
func (id ObjectID) split() (kind schema.GroupVersionKind, namespace, name string, err error) {
	parts := strings.Split(string(id), "/")
	n := len(parts)
	if n < 4 {
		return kind, "", "", fmt.Errorf("%q names no object", string(id))
	}
	version, err := schema.ParseGroupVersion(strings.Join(parts[:n-3], "/"))
	if err != nil {
		return kind, "", "", fmt.Errorf("%q names no object: %w", string(id), err)
	}

	return version.WithKind(parts[n-3]), parts[n-2], parts[n-1], nil
}

// String returns "DaemonSet kube-system/cilium".
func (id ObjectID) String() string {
	kind, namespace, name, err := id.split()
	if err != nil {
		return string(id)
	}
	if namespace == "" {
		return kind.Kind + " " + name
	}

	return kind.Kind + " " + namespace + "/" + name
}

// Stays returns why an object stays in the cluster when its manifest goes; empty when it is deleted. These
// kinds hold what users keep in them.
func (id ObjectID) Stays() string {
	kind, _, _, err := id.split()
	if err != nil {
		return err.Error()
	}
	if slices.Contains([]string{
		"CustomResourceDefinition", "Namespace", "PersistentVolume", "PersistentVolumeClaim",
	}, kind.Kind) {
		return "what is in it would go too"
	}

	return ""
}

// clientOf returns the API for the object's kind.
func clientOf(
	api dynamic.Interface, mapper meta.ResettableRESTMapper, id ObjectID,
) (client dynamic.ResourceInterface, name string, err error) {
	kind, namespace, name, err := id.split()
	if err != nil {
		return nil, "", err
	}
	mapping, err := mapper.RESTMapping(kind.GroupKind(), kind.Version)
	if meta.IsNoMatchError(err) {
		mapper.Reset() // its definition may have come since
	}
	if err != nil {
		return nil, "", fmt.Errorf("asking for kind %s: %w", kind.Kind, err)
	}
	if mapping.Scope.Name() != meta.RESTScopeNameNamespace {
		return api.Resource(mapping.Resource), name, nil
	}
	if namespace == "" {
		namespace = "default" // where Talos puts it
	}

	return api.Resource(mapping.Resource).Namespace(namespace), name, nil
}

// otherManager returns who else manages the object, by the names under which they write; empty when nobody
// does.
func otherManager(o *unstructured.Unstructured) string {
	for _, f := range o.GetManagedFields() {
		if f.Subresource != "" {
			continue
		}
		manager, _, _ := strings.Cut(f.Manager, "/")
		if strings.HasPrefix(manager, "pulumi-kubernetes") {
			return manager
		}
		if slices.Contains([]string{
			"helm", "helm-controller", "kustomize-controller", "flux-operator",
			"argocd-controller", "argocd-application-controller",
		}, manager) {
			return manager
		}
	}

	return ""
}

// isNoSuchKind reports whether the API server lacks the kind.
func isNoSuchKind(err error) bool { return meta.IsNoMatchError(err) }

// isPermanent reports whether no further try would help.
func isPermanent(err error) bool {
	var refused *refusal

	return errors.As(err, &refused) || apierrors.IsInvalid(err) || apierrors.IsForbidden(err) || apierrors.IsBadRequest(err)
}

// refusal wraps an error that another try does not fix.
type refusal struct{ error }

func (r *refusal) Unwrap() error { return r.error }
