// SPDX-License-Identifier: Apache-2.0
// Copyright the talos-proxmox authors.

package versions

import "slices"

var (
	// EmptyFlagsLeftOutSince is the first minor of Talos that leaves out flags whose text is empty. (Lists,
	// where an empty text could stand, are read since 1.13.6 only.)
	EmptyFlagsLeftOutSince = Contract{Major: 1, Minor: 13}
	// installsSeparatelySince is the first minor of Talos whose API installs and reboots in two steps.
	installsSeparatelySince = Contract{Major: 1, Minor: 13}
)

// LeavesOutEmptyFlags reports whether Talos t leaves out a component's flag whose text is empty.
func (t Talos) LeavesOutEmptyFlags() bool { return !EmptyFlagsLeftOutSince.NewerThan(t.Contract()) }

// InstallsSeparately reports whether Talos t installs an image and boots it in two steps.
func (t Talos) InstallsSeparately() bool { return !installsSeparatelySince.NewerThan(t.Contract()) }

// Introduced returns the minor of Talos that brought a kind of configuration document; the oldest one
// for all that are as old.
func Introduced(kind string) Contract {
	for minor, kinds := range kindsByMinor() {
		if slices.Contains(kinds, kind) {
			return Contract{Major: 1, Minor: minor}
		}
	}

	return Oldest
}

// kindsByMinor returns the kinds of configuration documents that each minor of Talos 1 brought.
func kindsByMinor() map[int][]string {
	return map[int][]string{
		11: {"RawVolumeConfig", "SwapVolumeConfig", "ExistingVolumeConfig", "ZswapConfig"},
		12: {
			"HostnameConfig", "LinkConfig", "LinkAliasConfig", "DummyLinkConfig", "BondConfig", "BridgeConfig",
			"VLANConfig", "WireguardConfig", "DHCPv4Config", "DHCPv6Config", "Layer2VIPConfig", "HCloudVIPConfig",
			"ResolverConfig", "StaticHostConfig", "TimeSyncConfig", "OOMConfig", "RegistryMirrorConfig",
			"RegistryAuthConfig", "RegistryTLSConfig",
		},
		13: {
			"BlackholeRouteConfig", "EnvironmentConfig", "ExternalVolumeConfig", "ImageVerificationConfig", "KubeSpanConfig",
			"RoutingRuleConfig", "TCPProbeConfig", "VRFConfig",
		},
		14: {
			"BGPInstanceConfig", "CRIBaseRuntimeSpecConfig", "CRICustomizationConfig", "ContainerConfig",
			"DiscoveryIdentityConfig", "DiscoveryServiceConfig", "EtcFileConfig", "FilesystemScrubConfig",
			"FilesystemTrimConfig", "HTTPProbeConfig", "ImageCacheConfig", "KernelModuleConfig", "KubeAPIServerCAConfig",
			"KubeAPIServerConfig", "KubeAdmissionControlConfig", "KubeAggregatorCAConfig", "KubeAuditPolicyConfig",
			"KubeAuthenticationConfig", "KubeAuthorizerConfig", "KubeClusterConfig", "KubeControllerManagerConfig",
			"KubeCoreDNSConfig", "KubeCredentialProviderConfig", "KubeEtcdEncryptionConfig", "KubeExternalManifestConfig",
			"KubeFlannelCNIConfig", "KubeInlineManifestConfig", "KubeNetworkConfig", "KubeNodeConfig", "KubePrismConfig",
			"KubeProxyConfig", "KubeSchedulerConfig", "KubeServiceAccountConfig", "KubeStaticPodConfig",
			"KubeTalosAPIAccessConfig", "KubeletConfig", "LVMLogicalVolumeConfig", "LVMVolumeGroupConfig",
			"RAIDArrayConfig", "SecurityProfileConfig", "SysctlConfig", "SysfsConfig", "UdevRulesConfig",
			"UnattendedInstallConfig", "VethConfig",
		},
	}
}
