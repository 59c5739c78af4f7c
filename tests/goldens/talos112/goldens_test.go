// SPDX-License-Identifier: Apache-2.0
// Copyright the talos-proxmox authors.

package goldens_test

import (
	"testing"

	"github.com/talos-proxmox/talos-proxmox/tests/goldens/check"
)

func TestRecordedConfigurationsAreValid(t *testing.T) {
	t.Parallel()
	check.Recorded(t, "v1.12")
}

func TestKindsOfDocuments(t *testing.T) {
	t.Parallel()
	check.Kinds(t,
		[]string{
			"HostnameConfig", "LinkConfig", "LinkAliasConfig", "Layer2VIPConfig", "ResolverConfig", "TimeSyncConfig",
			"StaticHostConfig", "OOMConfig", "RegistryMirrorConfig", "RegistryAuthConfig", "RegistryTLSConfig",
			"DHCPv4Config",
		},
		[]string{
			"BlackholeRouteConfig", "EnvironmentConfig", "ExternalVolumeConfig", "ImageVerificationConfig",
			"KubeSpanConfig", "RoutingRuleConfig", "TCPProbeConfig", "VRFConfig",
		})
}
