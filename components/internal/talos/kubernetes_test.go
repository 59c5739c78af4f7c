// SPDX-License-Identifier: Apache-2.0
// Copyright the talos-proxmox authors.

package talos

import (
	"testing"

	"github.com/stretchr/testify/assert"
)

func TestRefuseKubernetesStep(t *testing.T) {
	t.Parallel()

	for name, test := range map[string]struct{ from, to, want string }{
		"the next minor version":        {"v1.34.1", "v1.35.0", ""},
		"another patch":                 {"v1.35.0", "v1.35.2", ""},
		"an older patch":                {"v1.35.2", "v1.35.0", ""},
		"nothing known":                 {"", "v1.35.0", ""},
		"a skipped minor version":       {"v1.33.4", "v1.35.0", "kubernetes.version: Kubernetes v1.33.4 cannot skip to v1.35.0: go to v1.34 first"},
		"back to another minor version": {"v1.35.0", "v1.34.1", "kubernetes.version: Kubernetes v1.35.0 cannot go back to v1.34.1: only to another patch of v1.35"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()

			err := refuseKubernetesStep(kubernetesState{Kubernetes: test.from}, kubernetesState{Kubernetes: test.to})

			if test.want == "" {
				assert.NoError(t, err)
			} else {
				assert.EqualError(t, err, test.want)
			}
		})
	}
}
