// SPDX-License-Identifier: Apache-2.0
// Copyright the talos-proxmox authors.

package kubeapply

import (
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes/fake"

	"github.com/talos-proxmox/talos-proxmox/internal/cluster"
)

func TestNotesOfAnEarlierReleaseGoAndNothingElse(t *testing.T) {
	t.Parallel()
	note := func(name, release string) *corev1.Secret {
		return &corev1.Secret{ObjectMeta: metav1.ObjectMeta{
			Namespace: "flux-system", Name: name, Labels: map[string]string{"owner": "helm", "name": release, "status": "pending-install"},
		}}
	}
	other := &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Namespace: "flux-system", Name: "flux-system"}}
	api := fake.NewClientset(note("sh.helm.release.v1.flux2.v1", "flux2"), note("sh.helm.release.v1.other.v1", "other"), other)
	var said []string
	poll := cluster.PollOptions{Timeout: time.Second, Interval: time.Millisecond, Call: time.Second}

	require.NoError(t, forgetRelease(t.Context(), api, "flux-system", "flux2", poll, func(line string) { said = append(said, line) }))
	assert.Equal(t, []string{"release flux2 was left pending-install by an earlier run: it is installed again, over what is there"}, said)
	left, err := api.CoreV1().Secrets("flux-system").List(t.Context(), metav1.ListOptions{})
	require.NoError(t, err)
	assert.Len(t, left.Items, 2)
	require.NoError(t, forgetRelease(t.Context(), api, "flux-system", "flux2", poll, func(string) { t.Error("there is nothing to say") }))
}
