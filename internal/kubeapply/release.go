// SPDX-License-Identifier: Apache-2.0
// Copyright the talos-proxmox authors.

package kubeapply

import (
	"context"
	"fmt"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"

	"github.com/talos-proxmox/talos-proxmox/internal/cluster"
	"github.com/talos-proxmox/talos-proxmox/internal/talosapi"
)

// ForgetRelease deletes what Helm has noted of a release, and leaves its objects: a run that was killed in the
// middle of an installation leaves a note that Helm takes for an installation which still runs, and a state that
// was lost leaves one that it takes for somebody else's. Without a note Helm installs the release again, and
// takes over the objects that bear its name.
func ForgetRelease(ctx context.Context, kubeconfig, namespace, name string, p cluster.PollOptions, report func(string)) error {
	config, err := talosapi.RESTConfig([]byte(kubeconfig))
	if err != nil {
		return err
	}
	api, err := kubernetes.NewForConfig(config)
	if err != nil {
		return fmt.Errorf("opening the Kubernetes API: %w", err)
	}

	return forgetRelease(ctx, api, namespace, name, p, report)
}

func forgetRelease(
	ctx context.Context, api kubernetes.Interface, namespace, name string, p cluster.PollOptions, report func(string),
) error {
	waiting, cancel := context.WithTimeout(ctx, p.Timeout)
	defer cancel()
	var last error
	err := cluster.Poll(waiting, p.Interval, func(ctx context.Context) (bool, error) {
		err := deleteReleaseNotes(ctx, api, namespace, name, report)
		if err != nil {
			cluster.Remember(ctx, &last, err)
		}

		return err == nil, nil
	})
	if err != nil {
		return fmt.Errorf("release %s in namespace %s: %w (%w)", name, namespace, err, last)
	}

	return nil
}

// deleteReleaseNotes deletes the secrets in which Helm notes the revisions of a release.
func deleteReleaseNotes(ctx context.Context, api kubernetes.Interface, namespace, name string, report func(string)) error {
	secrets := api.CoreV1().Secrets(namespace)
	notes, err := secrets.List(ctx, metav1.ListOptions{LabelSelector: "owner=helm,name=" + name})
	if err != nil {
		return fmt.Errorf("looking for an earlier release: %w", err)
	}
	for _, note := range notes.Items {
		err := secrets.Delete(ctx, note.Name, metav1.DeleteOptions{})
		if err != nil && !apierrors.IsNotFound(err) {
			return fmt.Errorf("deleting %s: %w", note.Name, err)
		}
		report(fmt.Sprintf("release %s was left %s by an earlier run: it is installed again, over what is there",
			name, note.Labels["status"]))
	}

	return nil
}
