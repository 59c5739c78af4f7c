// SPDX-License-Identifier: Apache-2.0
// Copyright the talos-proxmox authors.

package versions_test

import (
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/talos-proxmox/talos-proxmox/internal/versions"
)

func talos(t *testing.T, text string) versions.Talos {
	t.Helper()
	v, err := versions.ParseTalos(text)
	require.NoError(t, err)

	return v
}

func kubernetes(t *testing.T, text string) versions.Kubernetes {
	t.Helper()
	v, err := versions.ParseKubernetes(text)
	require.NoError(t, err)

	return v
}

// message returns the error's text, empty for none.
func message(err error) string {
	if err == nil {
		return ""
	}

	return err.Error()
}

func TestParse(t *testing.T) {
	t.Parallel()
	assert.Equal(t, "v1.12.4", talos(t, "1.12.4").String())
	assert.Equal(t, "v1.12.0-beta.1", talos(t, "v1.12.0-beta.1").String())
	assert.Equal(t, "1.35.0", kubernetes(t, "v1.35.0").Bare())
	assert.Equal(t, "v1.35", kubernetes(t, "v1.35.2").Minor())

	_, err := versions.ParseTalos("v1.12")
	assert.EqualError(t, err, `"v1.12" is not a Talos version: write all three numbers, such as "v1.12.4"`)
	_, err = versions.ParseKubernetes("latest")
	assert.EqualError(t, err, `"latest" is not a Kubernetes version: write all three numbers, such as "v1.35.0"`)
}

func TestKubernetesFitsTalos(t *testing.T) {
	t.Parallel()
	for _, c := range []struct{ kubernetes, talos, want string }{
		{"v1.35.0", "v1.12.4", ""},
		{"v1.30.0", "v1.12.4", ""},
		{"v1.29.9", "v1.12.4", "Talos v1.12.4 supports Kubernetes v1.30 to v1.35, not v1.29.9"},
		{"v1.36.0", "v1.12.4", "Talos v1.12.4 supports Kubernetes v1.30 to v1.35, not v1.36.0"},
		{"v1.34.0", "v1.11.6", ""},
		{"v1.35.0", "v1.11.6", "Talos v1.11.6 supports Kubernetes v1.29 to v1.34, not v1.35.0"},
		{"v1.33.2", "v1.10.0", ""},
		{"v1.33.2", "v1.9.0", "Talos v1.9 is not supported: use a version from v1.10 to v1.14"},
		{"v1.36.0", "v1.13.0", ""},
		{"v1.31.0", "v1.13.0", ""},
		{"v1.30.0", "v1.13.0", "Talos v1.13.0 supports Kubernetes v1.31 to v1.36, not v1.30.0"},
		{"v1.37.2", "v1.14.1", ""},
		{"v1.32.0", "v1.14.1", ""},
		{"v1.31.9", "v1.14.1", "Talos v1.14.1 supports Kubernetes v1.32 to v1.37, not v1.31.9"},
		{"v1.37.0", "v1.13.9", "Talos v1.13.9 supports Kubernetes v1.31 to v1.36, not v1.37.0"},
		{"v1.37.0", "v1.15.0", "Talos v1.15 is not supported: use a version from v1.10 to v1.14"},
	} {
		assert.Equal(t, c.want, message(kubernetes(t, c.kubernetes).FitsTalos(talos(t, c.talos))), c.kubernetes+" on "+c.talos)
	}
}

func TestTalosStep(t *testing.T) {
	t.Parallel()
	for _, c := range []struct{ from, to, want string }{
		{"v1.12.4", "v1.12.4", ""},
		{"v1.12.0", "v1.12.4", ""},
		{"v1.12.4", "v1.12.0", ""},
		{"v1.11.6", "v1.12.4", ""},
		{"v1.10.0", "v1.12.4", ""},
		{"v1.12.4", "v1.11.0", ""},
		{"v1.9.5", "v1.12.4", "Talos v1.9.5 cannot be upgraded to v1.12.4 in one step: go to v1.11 first"},
		{"v1.8.0", "v1.12.4", "Talos v1.8.0 cannot be upgraded to v1.12.4 in one step: go to v1.10 first"},
		{"v1.12.4", "v1.13.0", ""},
		{"v1.13.0", "v1.12.4", ""},
		{"v1.11.0", "v1.13.0", ""},
		{"v1.10.9", "v1.13.0", "Talos v1.10.9 cannot be upgraded to v1.13.0 in one step: go to v1.12 first"},
		{"v1.13.0", "v1.11.6", "Talos v1.13.0 cannot be taken back to v1.11.6 in one step: go to v1.12 first"},
		{"v1.13.0", "v1.14.1", ""},
		{"v1.14.1", "v1.13.9", ""},
		{"v1.12.4", "v1.14.1", ""},
		{"v1.11.6", "v1.14.1", "Talos v1.11.6 cannot be upgraded to v1.14.1 in one step: go to v1.13 first"},
		{"v1.14.1", "v1.12.4", "Talos v1.14.1 cannot be taken back to v1.12.4 in one step: go to v1.13 first"},
		{"v1.14.0", "v1.15.0", "Talos v1.15 is not supported: use a version from v1.10 to v1.14"},
		{"v1.12.4", "v1.10.0", "Talos v1.12.4 cannot be taken back to v1.10.0 in one step: go to v1.11 first"},
	} {
		assert.Equal(t, c.want, message(versions.TalosStep(talos(t, c.from), talos(t, c.to))), c.from+" to "+c.to)
	}
}

func TestKubernetesStep(t *testing.T) {
	t.Parallel()
	for _, c := range []struct{ from, to, want string }{
		{"v1.33.2", "v1.33.3", ""},
		{"v1.33.3", "v1.33.2", ""},
		{"v1.34.1", "v1.35.0", ""},
		{"v1.33.2", "v1.35.0", "Kubernetes v1.33.2 cannot skip to v1.35.0: go to v1.34 first"},
		{"v1.35.0", "v1.34.1", "Kubernetes v1.35.0 cannot go back to v1.34.1: only to another patch of v1.35"},
		{"v1.35.0", "v2.0.0", "Kubernetes v1.35.0 cannot go to v2.0.0: the major version differs"},
	} {
		got := versions.KubernetesStep(kubernetes(t, c.from), kubernetes(t, c.to))
		assert.Equal(t, c.want, message(got), c.from+" to "+c.to)
	}
}

func TestKubeletSkew(t *testing.T) {
	t.Parallel()
	for _, c := range []struct{ api, kubelet, want string }{
		{"v1.35.0", "v1.35.0", ""},
		{"v1.35.0", "v1.32.0", ""},
		{"v1.35.0", "v1.31.0", "kubelet v1.31.0 is more than three minor versions older than API server v1.35.0"},
		{"v1.34.0", "v1.35.0", "kubelet v1.35.0 is newer than API server v1.34.0: upgrade the API server first"},
	} {
		got := versions.KubeletSkew(kubernetes(t, c.api), kubernetes(t, c.kubelet))
		assert.Equal(t, c.want, message(got), c.kubelet+" at "+c.api)
	}
}

func TestContract(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		contract                                  string
		network, registry, encryption, kubernetes bool
	}{
		{"v1.10", false, false, false, false},
		{"1.11", false, false, true, false},
		{"v1.12", true, true, true, false},
		{"v1.13", true, true, true, false},
		{"v1.14", true, true, true, true},
	} {
		got, err := versions.ParseContract(c.contract)
		require.NoError(t, err)
		assert.NoError(t, got.Supported())
		assert.Equal(t, c.network, got.NetworkDocuments(), c.contract)
		assert.Equal(t, c.registry, got.RegistryDocuments(), c.contract)
		assert.Equal(t, c.encryption, got.VolumeEncryption(), c.contract)
		assert.Equal(t, c.kubernetes, got.KubernetesDocuments(), c.contract)
	}
	_, err := versions.ParseContract("v1.12.4")
	assert.EqualError(t, err, `"v1.12.4" is not a contract: write a Talos minor version, such as "v1.14"`)
	assert.Equal(t, versions.Newest, talos(t, "v1.14.1").Contract())
	assert.EqualError(t, versions.Newest.UnderstoodBy(talos(t, "v1.11.6")),
		"contract v1.14 is newer than Talos v1.11.6: upgrade every node first, then raise the contract")
	assert.NoError(t, versions.Oldest.UnderstoodBy(talos(t, "v1.13.0")))
}
