// SPDX-License-Identifier: Apache-2.0
// Copyright the talos-proxmox authors.

package machineconfig_test

import (
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/talos-proxmox/talos-proxmox/internal/machineconfig"
)

const applied = `version: v1alpha1
machine:
  type: worker
  token: abcdef.secret
  nodeLabels: {tier: gold}
  sysctls: {vm.max_map_count: "262144"}
  env: {http_proxy: "http://user:secret@proxy"}
  certSANs: [10.0.0.1]
cluster:
  secret: c2VjcmV0
  controlPlane: {endpoint: "https://10.0.0.10:6443"}
---
apiVersion: v1alpha1
kind: HostnameConfig
hostname: work-00
auto: "off"
`

func TestDifferencesNameEverySettingAndNoSecret(t *testing.T) {
	t.Parallel()

	has := strings.NewReplacer(
		"abcdef.secret", "abcdef.another", "gold", "silver", `sysctls: {vm.max_map_count: "262144"}`, "sysctls: {}",
		"user:secret", "user:other", "[10.0.0.1]", "[10.0.0.1, 10.0.0.2]", "hostname: work-00", "hostname: work-01",
	).Replace(applied) + "---\napiVersion: v1alpha1\nkind: KmsgLogConfig\nname: remote\nurl: tcp://10.0.0.9:514\n"

	found, err := machineconfig.Differences([]byte(applied), []byte(has))
	require.NoError(t, err)

	assert.Equal(t, []string{
		"HostnameConfig hostname is work-01; it was work-00",
		"KmsgLogConfig/remote apiVersion was added: v1alpha1",
		"KmsgLogConfig/remote kind was added: KmsgLogConfig",
		"KmsgLogConfig/remote name was added: remote",
		"KmsgLogConfig/remote url was added: tcp://10.0.0.9:514",
		"machine.certSANs[1] was added: 10.0.0.2",
		"machine.env.http_proxy is (not shown); it was (not shown)",
		"machine.nodeLabels.tier is silver; it was gold",
		"machine.sysctls.vm.max_map_count was removed; it was 262144",
		"machine.token is (not shown); it was (not shown)",
	}, found)

	same, err := machineconfig.Differences([]byte(applied), []byte("# a comment\n"+applied))
	require.NoError(t, err)
	assert.Empty(t, same)
	_, err = machineconfig.Differences([]byte(applied), []byte("machine: ["))
	require.ErrorContains(t, err, "reading the node's configuration: ")
}
