// SPDX-License-Identifier: Apache-2.0
// Copyright the talos-proxmox authors.

package talossecrets_test

import (
	"testing"

	"github.com/siderolabs/talos/pkg/machinery/config"
	"github.com/siderolabs/talos/pkg/machinery/config/generate/secrets"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/talos-proxmox/talos-proxmox/internal/talossecrets"
	"github.com/talos-proxmox/talos-proxmox/spec"
)

// TestAuthoritiesAreRotatedInThreeRuns goes the one way on which no node is cut off, and finds every short cut refused.
func TestAuthoritiesAreRotatedInThreeRuns(t *testing.T) {
	t.Parallel()
	bundle := func() *secrets.Bundle {
		b, err := secrets.NewBundle(secrets.NewClock(), config.TalosVersion1_12)
		require.NoError(t, err)

		return b
	}
	before, other := bundle(), bundle()
	next := *before
	certs := *before.Certs
	certs.OS, certs.K8s = other.Certs.OS, other.Certs.K8s
	next.Certs = &certs
	state := func(b, accepted *secrets.Bundle) talossecrets.Authorities {
		var c spec.Cluster
		if accepted != nil {
			c.AcceptedCAs = &spec.AcceptedCAs{
				Talos: []spec.Text{spec.Text(accepted.Certs.OS.Crt)}, Kubernetes: []spec.Text{spec.Text(accepted.Certs.K8s.Crt)},
			}
		}
		found, err := talossecrets.AuthoritiesOf(b, c)
		require.NoError(t, err)

		return found
	}
	first, accepting, issuing, last := state(before, nil), state(before, &next), state(&next, before), state(&next, nil)

	require.NoError(t, talossecrets.RefuseRotation(first, accepting))
	require.NoError(t, talossecrets.RefuseRotation(accepting, issuing))
	require.NoError(t, talossecrets.RefuseRotation(issuing, last))
	require.NoError(t, talossecrets.RefuseRotation(issuing, accepting), "and back")
	require.NoError(t, talossecrets.RefuseRotation(talossecrets.Authorities{}, last), "an earlier state does not say")

	require.ErrorContains(t, talossecrets.RefuseRotation(first, issuing), "certs.os is an authority that the nodes do not accept yet")
	require.ErrorContains(t, talossecrets.RefuseRotation(accepting, last), "write the certificate of the one before under cluster.acceptedCAs.talos")
	kubernetesOnly := issuing
	kubernetesOnly.Talos, kubernetesOnly.AcceptedKubernetes = accepting.Talos, ""
	require.ErrorContains(t, talossecrets.RefuseRotation(accepting, kubernetesOnly), "certs.k8s is another authority")
	require.ErrorContains(t, talossecrets.RefuseRotation(first, state(other, nil)), "only certs.os and certs.k8s can be rotated")
	assert.NotEqual(t, first.Talos, last.Talos)
}
