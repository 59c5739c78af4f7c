// SPDX-License-Identifier: Apache-2.0
// Copyright the talos-proxmox authors.

package goldens_test

import (
	"testing"

	"github.com/talos-proxmox/talos-proxmox/tests/goldens/check"
)

func TestRecordedConfigurationsAreValid(t *testing.T) {
	t.Parallel()
	check.Recorded(t, "v1.13")
}

func TestKindsOfDocuments(t *testing.T) {
	t.Parallel()
	check.Kinds(t,
		[]string{
			"BlackholeRouteConfig", "EnvironmentConfig", "ExternalVolumeConfig", "ImageVerificationConfig",
			"KubeSpanConfig", "RoutingRuleConfig", "TCPProbeConfig", "VRFConfig",
		},
		[]string{
			"DiscoveryIdentityConfig", "KubeAPIServerConfig", "KubeletConfig", "KubeNodeConfig", "SecurityProfileConfig",
			"SysctlConfig", "UnattendedInstallConfig",
		})
}
