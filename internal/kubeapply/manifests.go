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
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/sets"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/util/csaupgrade"

	"github.com/talos-proxmox/talos-proxmox/internal/cluster"
)

// Who writes objects: this package, and Talos, which creates what is missing and never edits.
const (
	fieldManager      = "talos-proxmox"
	talosFieldManager = "talos"
)

// ManifestObject holds an object as it should be.
type ManifestObject struct {
	// ID of the object.
	ID ObjectID
	// JSON is the object.
	JSON []byte
}

// Manifests brings objects of a living cluster in line with its day-0 manifests. Talos creates what such a
// manifest holds and never edits or deletes it.
type Manifests struct {
	// Access opens the cluster.
	Access ObjectAccess
	// Poll bounds each object.
	Poll cluster.PollOptions
	// Report gets a line for each object.
	Report func(string)
}

// Run applies objects, and then deletes those that left the manifests. Namespaces and kinds come first, the
// rest in the given order. Objects that something else manages by now are left to it, and those whose deletion
// would take users' data along stay. Running it again continues where it stopped.
func (m Manifests) Run(ctx context.Context, apply []ManifestObject, remove []ObjectID) error {
	apply = slices.Clone(apply)
	slices.SortStableFunc(apply, func(a, b ManifestObject) int { return applyRank(a.ID) - applyRank(b.ID) })
	for _, o := range apply {
		if err := m.retry(ctx, o.ID, func(ctx context.Context) error { return m.apply(ctx, o) }); err != nil {
			return fmt.Errorf("applying %s: %w", o.ID, err)
		}
	}
	for _, id := range slices.Backward(remove) {
		if err := m.retry(ctx, id, func(ctx context.Context) error { return m.remove(ctx, id) }); err != nil {
			return fmt.Errorf("deleting %s: %w", id, err)
		}
	}

	return nil
}

// applyRank orders objects so that others can rely on them.
func applyRank(id ObjectID) int {
	kind, _, _, _ := id.split()
	switch kind.Kind {
	case "Namespace":
		return 0
	case "CustomResourceDefinition":
		return 1
	default:
		return 2
	}
}

// retry tries until it works, no further try would help or the time is up: an API server restarts, and a
// definition takes a moment to be known.
func (m Manifests) retry(ctx context.Context, id ObjectID, try func(context.Context) error) error {
	waiting, cancel := context.WithTimeout(ctx, m.Poll.Timeout)
	defer cancel()
	last := errors.New("not tried yet")
	said := ""
	err := cluster.Poll(waiting, m.Poll.Interval, func(ctx context.Context) (bool, error) {
		err := try(ctx)
		if err == nil || isPermanent(err) {
			return true, err
		}
		cluster.Remember(ctx, &last, err)
		if line := fmt.Sprintf("waiting: %s: %v", id, last); line != said {
			said = line
			m.Report(line)
		}

		return false, nil
	})
	if errors.Is(err, context.DeadlineExceeded) && ctx.Err() == nil {
		return fmt.Errorf("it could not be done in %s: %w", m.Poll.Timeout, last)
	}

	return err
}

// apply brings one object in line with its manifest.
func (m Manifests) apply(ctx context.Context, o ManifestObject) error {
	api, mapper, err := m.Access.Objects(ctx)
	if err != nil {
		return err
	}
	client, name, err := clientOf(api, mapper, o.ID)
	if err != nil {
		return err
	}
	wanted := &unstructured.Unstructured{}
	if err := wanted.UnmarshalJSON(o.JSON); err != nil {
		return &refusal{fmt.Errorf("reading the manifest: %w", err)}
	}
	live, err := client.Get(ctx, name, metav1.GetOptions{})
	switch {
	case apierrors.IsNotFound(err):
		err = applyTo(ctx, client, wanted)
	case err != nil:
		return fmt.Errorf("looking at it: %w", err)
	default:
		if other := otherManager(live); other != "" {
			m.Report(fmt.Sprintf("%s is left to %s, which manages it", o.ID, other))

			return nil
		}
		err = m.update(ctx, client, live, wanted, o.ID)
	}
	if err == nil {
		m.Report(fmt.Sprintf("%s is as its manifest says", o.ID))
	}

	return err
}

// update changes an existing object. It takes over the fields that Talos wrote first, so that what left the
// manifest leaves the object. A Job cannot be changed: it is recreated, and runs again.
func (m Manifests) update(
	ctx context.Context, client dynamic.ResourceInterface, live, wanted *unstructured.Unstructured, id ObjectID,
) error {
	patch, err := csaupgrade.UpgradeManagedFieldsPatch(live, sets.New(talosFieldManager), fieldManager)
	if err != nil {
		return fmt.Errorf("reading who wrote it: %w", err)
	}
	if patch != nil {
		if _, err := client.Patch(ctx, live.GetName(), types.JSONPatchType, patch, metav1.PatchOptions{}); err != nil {
			return fmt.Errorf("taking it over from Talos: %w", err)
		}
	}
	err = applyTo(ctx, client, wanted)
	if err == nil || !apierrors.IsInvalid(err) {
		return err
	}
	if live.GetKind() != "Job" {
		return &refusal{fmt.Errorf("%w\n  it cannot be changed in place; to recreate it: kubectl delete %s %s -n %q, then `pulumi up` again",
			err, strings.ToLower(live.GetKind()), live.GetName(), live.GetNamespace())}
	}

	return m.runAgain(ctx, client, live, wanted, id)
}

// applyTo applies on the server, which leaves fields alone that the manifest does not have.
func applyTo(ctx context.Context, client dynamic.ResourceInterface, wanted *unstructured.Unstructured) error {
	_, err := client.Apply(ctx, wanted.GetName(), wanted, metav1.ApplyOptions{FieldManager: fieldManager, Force: true})
	if err != nil {
		return fmt.Errorf("the Kubernetes API: %w", err)
	}

	return nil
}

// remove deletes one object that left the manifests.
func (m Manifests) remove(ctx context.Context, id ObjectID) error {
	if why := id.Stays(); why != "" {
		m.Report(fmt.Sprintf("%s stays, since %s: delete it yourself when it is no longer needed", id, why))

		return nil
	}
	api, mapper, err := m.Access.Objects(ctx)
	if err != nil {
		return err
	}
	client, name, err := clientOf(api, mapper, id)
	if isNoSuchKind(err) {
		return nil // nor is there anything of it
	}
	if err != nil {
		return err
	}
	live, err := client.Get(ctx, name, metav1.GetOptions{})
	if apierrors.IsNotFound(err) {
		return nil
	}
	if err != nil {
		return fmt.Errorf("looking at it: %w", err)
	}
	switch other := otherManager(live); {
	case other != "":
		m.Report(fmt.Sprintf("%s stays: %s manages it by now", id, other))

		return nil
	case len(live.GetFinalizers()) > 0:
		m.Report(fmt.Sprintf("%s stays, since %s must clean up behind it: delete it yourself",
			id, strings.Join(live.GetFinalizers(), ", ")))

		return nil
	}
	background := metav1.DeletePropagationBackground
	err = client.Delete(ctx, name, metav1.DeleteOptions{PropagationPolicy: &background})
	if err != nil && !apierrors.IsNotFound(err) {
		return fmt.Errorf("the Kubernetes API: %w", err)
	}
	m.Report(fmt.Sprintf("%s is deleted, since its manifest is gone", id))

	return nil
}
