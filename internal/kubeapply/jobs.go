// SPDX-License-Identifier: Apache-2.0
// Copyright the talos-proxmox authors.

package kubeapply

import (
	"context"
	"encoding/json"
	"fmt"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/client-go/dynamic"

	"github.com/talos-proxmox/talos-proxmox/internal/cluster"
)

// Rerun describes what a Job runs when it is recreated after an edit: what installs at first, upgrades later.
type Rerun struct {
	// When is the object by which it is known that the Job's work was done before.
	When ObjectID `json:"when"`
	// Command is what the first container then runs.
	Command []string `json:"command"`
}

// runAgain recreates a Job, which cannot be changed.
func (m Manifests) runAgain(
	ctx context.Context, client dynamic.ResourceInterface, live, wanted *unstructured.Unstructured, id ObjectID,
) error {
	if err := m.chooseCommand(ctx, wanted); err != nil {
		return err
	}
	background := metav1.DeletePropagationBackground
	err := client.Delete(ctx, live.GetName(), metav1.DeleteOptions{PropagationPolicy: &background})
	if err != nil && !apierrors.IsNotFound(err) {
		return fmt.Errorf("recreating it: %w", err)
	}
	m.Report(fmt.Sprintf("%s is recreated and runs again", id))

	return applyTo(ctx, client, wanted)
}

// chooseCommand sets the command for the case that the Job's work was done before.
func (m Manifests) chooseCommand(ctx context.Context, job *unstructured.Unstructured) error {
	text := job.GetAnnotations()[cluster.RerunAnnotation]
	if text == "" {
		return nil
	}
	var again Rerun
	if err := json.Unmarshal([]byte(text), &again); err != nil {
		return &refusal{fmt.Errorf("reading its annotation %s: %w", cluster.RerunAnnotation, err)}
	}
	api, mapper, err := m.Access.Objects(ctx)
	if err != nil {
		return err
	}
	client, name, err := clientOf(api, mapper, again.When)
	if err != nil {
		return err
	}
	_, err = client.Get(ctx, name, metav1.GetOptions{})
	if apierrors.IsNotFound(err) {
		return nil
	}
	if err != nil {
		return fmt.Errorf("looking at %s: %w", again.When, err)
	}
	containers, _, err := unstructured.NestedSlice(job.Object, "spec", "template", "spec", "containers")
	if err != nil || len(containers) == 0 {
		return &refusal{fmt.Errorf("the Job has no container: %w", err)}
	}
	first, ok := containers[0].(map[string]any)
	if !ok {
		return &refusal{fmt.Errorf("the Job has no container")}
	}
	command := make([]any, 0, len(again.Command))
	for _, word := range again.Command {
		command = append(command, word)
	}
	first["command"] = command

	return unstructured.SetNestedSlice(job.Object, containers, "spec", "template", "spec", "containers")
}
