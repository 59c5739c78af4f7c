// SPDX-License-Identifier: Apache-2.0
// Copyright the talos-proxmox authors.

package controlplane

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"slices"
	"time"

	"github.com/siderolabs/talos/pkg/machinery/config"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/client-go/discovery"
	"k8s.io/client-go/discovery/cached/memory"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/restmapper"

	"github.com/talos-proxmox/talos-proxmox/lab/talos/machineconfig"
)

const (
	// manifestRetry is between attempts to apply what could not be applied yet.
	manifestRetry = 10 * time.Second
	// manifestPause is the least between attempts, in real time.
	manifestPause = 500 * time.Millisecond
)

// applyManifests brings the bootstrap manifests into the cluster whenever the API server or the set
// of manifests changes. As Talos does, it only creates what is missing: nothing is updated or
// deleted.
func (k *Runner) applyManifests(ctx context.Context) {
	applied, failure := "", ""
	for ctx.Err() == nil {
		api, changed := k.API()
		nodes := k.group.RunningNodes()
		if api == nil || len(nodes) == 0 || !k.group.Quorum() {
			k.pause(ctx, changed, manifestRetry)

			continue
		}

		node := nodes[0]
		cfg := node.Config()
		digest := manifestDigest(cfg)
		if digest != applied {
			end := k.trace.Begin("kube.manifests", "cluster/"+machineconfig.ClusterName(cfg), nil)
			err := k.applyOnce(ctx, api.AdminConfig(), node, cfg)
			switch {
			case err == nil:
				applied, failure = digest, ""
				end(nil)
			case ctx.Err() == nil && err.Error() != failure: // the same again is no news
				failure = err.Error()
				end(err)
				k.log.Warn("applying bootstrap manifests", "cluster", machineconfig.ClusterName(cfg), "error", err)
			}
		}
		if err := answerServiceAccounts(ctx, api.AdminConfig(), cfg); err != nil && ctx.Err() == nil {
			k.log.Warn("answering Talos service accounts", "cluster", machineconfig.ClusterName(cfg), "error", err)
		}
		k.pause(ctx, changed, manifestRetry)
	}
}

func (k *Runner) pause(ctx context.Context, changed <-chan struct{}, d time.Duration) {
	t := time.NewTimer(max(k.clock.Scale(d), manifestPause))
	defer t.Stop()

	select {
	case <-ctx.Done():
	case <-changed:
	case <-t.C:
	}
}

// manifestDigest changes when a configuration asks for other manifests.
func manifestDigest(cfg config.Provider) string {
	inline, err := bootstrapManifests(cfg)
	if err != nil {
		return ""
	}
	var list []any
	for _, m := range inline {
		list = append(list, m.name, string(m.content))
	}

	for _, m := range cfg.K8sExternalManifestConfigs() {
		list = append(list, m.URL(), m.Headers())
	}

	return ConfigDigestOf(list)
}

func (k *Runner) applyOnce(ctx context.Context, admin *rest.Config, n Node, cfg config.Provider) error {
	all, err := bootstrapManifests(cfg)
	if err != nil {
		return err
	}
	client := k.opts.HTTPClient
	if client == nil {
		client = &http.Client{Transport: &http.Transport{DialContext: n.Network().DialContext}}
	}
	extra, downloadErr := extraManifests(ctx, client, cfg)

	var objects []*unstructured.Unstructured
	errs := []error{downloadErr}
	for _, m := range append(all, extra...) {
		list, err := m.objects()
		errs = append(errs, err)
		objects = append(objects, list...)
	}
	slices.SortStableFunc(objects, func(a, b *unstructured.Unstructured) int { return rank(a) - rank(b) })

	return errors.Join(append(errs, createMissing(ctx, admin, objects))...)
}

// rank puts namespaces first and CRDs second.
func rank(o *unstructured.Unstructured) int {
	switch o.GetKind() {
	case "Namespace":
		return 0
	case "CustomResourceDefinition":
		return 1
	}

	return 2
}

func createMissing(ctx context.Context, admin *rest.Config, objects []*unstructured.Unstructured) error {
	dc, err := discovery.NewDiscoveryClientForConfig(admin)
	if err != nil {
		return fmt.Errorf("error building discovery client: %w", err)
	}
	dyn, err := dynamic.NewForConfig(admin)
	if err != nil {
		return fmt.Errorf("error building dynamic client: %w", err)
	}
	mapper := restmapper.NewDeferredDiscoveryRESTMapper(memory.NewMemCacheClient(dc))

	var errs []error
	for _, o := range objects {
		err := createObject(ctx, mapper, dyn, o)
		if err == nil {
			continue
		}
		errs = append(errs, err)
		if !isObjectsFault(err) {
			break // the API server is the problem, the others would meet it too
		}
	}

	return errors.Join(errs...)
}

func isObjectsFault(err error) bool {
	return meta.IsNoMatchError(err) || apierrors.IsNotFound(err) || apierrors.IsInvalid(err) ||
		apierrors.IsBadRequest(err) || apierrors.IsMethodNotSupported(err) || apierrors.IsForbidden(err)
}

func createObject(
	ctx context.Context, mapper meta.RESTMapper, dyn dynamic.Interface, o *unstructured.Unstructured,
) error {
	gvk := o.GroupVersionKind()
	name := fmt.Sprintf("%s/%s/%s/%s", gvk.Group, gvk.Version, gvk.Kind, o.GetName())

	mapping, err := mapper.RESTMapping(gvk.GroupKind(), gvk.Version)
	if err != nil {
		return fmt.Errorf("error creating mapping for object %s: %w", name, err)
	}
	var client dynamic.ResourceInterface = dyn.Resource(mapping.Resource)
	if mapping.Scope.Name() == meta.RESTScopeNameNamespace {
		if o.GetNamespace() == "" {
			o.SetNamespace(metav1.NamespaceDefault)
		}
		client = dyn.Resource(mapping.Resource).Namespace(o.GetNamespace())
	}

	_, err = client.Get(ctx, o.GetName(), metav1.GetOptions{})
	if err == nil {
		return nil
	}
	if !apierrors.IsNotFound(err) {
		return fmt.Errorf("error checking resource existence: %w", err)
	}
	_, err = client.Create(ctx, o, metav1.CreateOptions{FieldManager: "talos"})
	if err != nil && !apierrors.IsAlreadyExists(err) {
		return fmt.Errorf("error creating %s: %w", name, err)
	}

	return nil
}
