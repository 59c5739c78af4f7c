// SPDX-License-Identifier: Apache-2.0
// Copyright the talos-proxmox authors.

package kubeapply

import (
	"context"
	"encoding/json"
	"fmt"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/kubernetes"

	"github.com/talos-proxmox/talos-proxmox/internal/cluster"
	"github.com/talos-proxmox/talos-proxmox/internal/talosapi"
)

// Objects reads and changes single objects of a cluster's API, by their path there.
type Objects interface {
	// Get returns an object as JSON.
	Get(ctx context.Context, path string) ([]byte, error)
	// Annotate sets an annotation of an object.
	Annotate(ctx context.Context, path, key, value string) error
	// Delete deletes an object.
	Delete(ctx context.Context, path string) error
}

// OpenObjects opens a cluster with an administrator's kubeconfig.
func OpenObjects(kubeconfig string) (Objects, error) {
	config, err := talosapi.RESTConfig([]byte(kubeconfig))
	if err != nil {
		return nil, err
	}
	api, err := kubernetes.NewForConfig(config)
	if err != nil {
		return nil, fmt.Errorf("opening the Kubernetes API: %w", err)
	}

	return liveObjects{api}, nil
}

type liveObjects struct{ kubernetes.Interface }

// Get implements [Objects].
func (o liveObjects) Get(ctx context.Context, path string) ([]byte, error) {
	return o.Discovery().RESTClient().Get().AbsPath(path).DoRaw(ctx)
}

// Annotate implements [Objects].
func (o liveObjects) Annotate(ctx context.Context, path, key, value string) error {
	patch, err := json.Marshal(map[string]any{"metadata": map[string]any{"annotations": map[string]any{key: value}}})
	if err != nil {
		return err
	}

	return o.Discovery().RESTClient().Patch(types.MergePatchType).AbsPath(path).Body(patch).Do(ctx).Error()
}

// Delete implements [Objects].
func (o liveObjects) Delete(ctx context.Context, path string) error {
	return o.Discovery().RESTClient().Delete().AbsPath(path).Do(ctx).Error()
}

// DeleteAndWait deletes an object and waits until it is gone, finalizers included. An object, or a kind, that
// does not exist is gone.
func DeleteAndWait(ctx context.Context, api Objects, path string, p cluster.PollOptions, report func(line string)) error {
	waiting, cancel := context.WithTimeout(ctx, p.Timeout)
	defer cancel()

	if err := api.Delete(waiting, path); err != nil && !apierrors.IsNotFound(err) {
		return fmt.Errorf("deleting %s: %w", path, err)
	}
	report("waiting until " + path + " is gone")
	err := cluster.Poll(waiting, p.Interval, func(ctx context.Context) (bool, error) {
		_, err := api.Get(ctx, path)

		return apierrors.IsNotFound(err), nil
	})
	if err != nil {
		return fmt.Errorf("%s is still there after %s: %w", path, p.Timeout, err)
	}

	return nil
}
