// SPDX-License-Identifier: Apache-2.0
// Copyright the talos-proxmox authors.

package machineconfig

import (
	"errors"
	"fmt"
	"reflect"
	"slices"
	"strings"

	"github.com/blang/semver/v4"
	"github.com/siderolabs/talos/pkg/machinery/config"
	"github.com/siderolabs/talos/pkg/machinery/config/configdiff"
	"github.com/siderolabs/talos/pkg/machinery/config/configloader"
	"github.com/siderolabs/talos/pkg/machinery/config/container"
	"github.com/siderolabs/talos/pkg/machinery/config/types/v1alpha1"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
)

// kindsSince112 returns the documents that Talos 1.12 brought; an older node does not know them.
func kindsSince112() []string {
	return []string{
		"HostnameConfig", "LinkConfig", "LinkAliasConfig", "DummyLinkConfig", "BondConfig", "BridgeConfig",
		"VLANConfig", "WireguardConfig", "DHCPv4Config", "DHCPv6Config", "Layer2VIPConfig", "HCloudVIPConfig",
		"ResolverConfig", "StaticHostConfig", "TimeSyncConfig", "OOMConfig",
		"RegistryMirrorConfig", "RegistryAuthConfig", "RegistryTLSConfig",
	}
}

// kindsSince114 returns the documents that Talos 1.14 brought.
func kindsSince114() []string {
	return []string{
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
	}
}

// kindsSince113 returns the documents that Talos 1.13 brought.
func kindsSince113() []string {
	return []string{
		"BlackholeRouteConfig", "EnvironmentConfig", "ExternalVolumeConfig", "ImageVerificationConfig",
		"KubeSpanConfig", "RoutingRuleConfig", "TCPProbeConfig", "VRFConfig",
	}
}

// Load parses a configuration as a node of the given Talos version does.
func Load(data []byte, talos string) (config.Provider, error) {
	cfg, err := configloader.NewFromBytes(data)
	if err != nil {
		return nil, err // the node answers with machinery's own words
	}

	var unknown []string
	if !AtLeast(talos, 1, 14) {
		unknown = append(unknown, kindsSince114()...)
	}
	if !AtLeast(talos, 1, 13) {
		unknown = append(unknown, kindsSince113()...)
	}
	if !AtLeast(talos, 1, 12) {
		unknown = append(unknown, kindsSince112()...)
	}
	for _, d := range cfg.Documents() {
		if slices.Contains(unknown, d.Kind()) {
			return nil, fmt.Errorf("%q %q: not registered", d.Kind(), d.APIVersion())
		}
	}

	return cfg, nil
}

// AtLeast reports whether a version is major.minor or newer; one that cannot be read counts as new.
func AtLeast(version string, major, minor uint64) bool {
	v, err := semver.ParseTolerant(version)
	if err != nil {
		return true
	}

	return v.Major > major || v.Major == major && v.Minor >= minor
}

// RunMode holds what validation asks of a platform.
type RunMode struct {
	Platform  string
	Installed bool
}

func (m RunMode) String() string {
	if m.Platform == PlatformNocloud {
		return "cloud"
	}

	return "metal"
}

// RequiresInstall reports whether the configuration must name an install disk.
func (m RunMode) RequiresInstall() bool { return m.Platform != PlatformNocloud && !m.Installed }

// InContainer returns false: a VM is no container.
func (m RunMode) InContainer() bool { return false }

// CheckLive reports whether a running node can take a configuration without a reboot. Only these
// parts may differ: debug, cluster, and of machine ca, acceptedCAs, certSANs, controlPlane, features
// {kubernetesTalosAPIAccess, kubePrism, hostDNS, imageCache, nodeAddressSortAlgorithm}, install,
// kernel, kubelet, logging, network, node{Annotations,Labels,Taints}, pods, registries,
// seccompProfiles, sysctls, sysfs and time. Other documents never ask for a reboot.
func CheckLive(current, next config.Provider) error {
	have, want := current.RawV1Alpha1(), next.RawV1Alpha1()
	if have == nil {
		return errors.New("current config is not v1alpha1")
	}
	if want == nil {
		return errors.New("new config is not v1alpha1")
	}

	rest := want.DeepCopy()
	rest.ConfigDebug, rest.ClusterConfig = have.ConfigDebug, have.ClusterConfig
	if rest.MachineConfig != nil && have.MachineConfig != nil {
		keepLiveMachineParts(rest.MachineConfig, have.MachineConfig)
	}
	if reflect.DeepEqual(have, rest) {
		return nil
	}

	diff, err := configdiff.DiffConfigs(container.NewV1Alpha1(have), container.NewV1Alpha1(rest))
	if err != nil {
		return fmt.Errorf("error calculating diff: %w", err)
	}

	return fmt.Errorf("this config change can't be applied in immediate mode\ndiff:\n%s", diff)
}

// keepLiveMachineParts sets aside what a running node can change by copying it from have.
func keepLiveMachineParts(rest, have *v1alpha1.MachineConfig) {
	live := []string{
		"MachineCA", "MachineAcceptedCAs", "MachineTime", "MachineCertSANs", "MachineInstall", "MachineNetwork",
		"MachineSysfs", "MachineSysctls", "MachineLogging", "MachineControlPlane", "MachineKubelet",
		"MachineKernel", "MachineRegistries", "MachinePods", "MachineSeccompProfiles",
		"MachineNodeAnnotations", "MachineNodeLabels", "MachineNodeTaints",
	}
	copyFields(reflect.ValueOf(rest).Elem(), reflect.ValueOf(have).Elem(), live)

	if rest.MachineFeatures != nil && have.MachineFeatures != nil {
		copyFields(reflect.ValueOf(rest.MachineFeatures).Elem(), reflect.ValueOf(have.MachineFeatures).Elem(), []string{
			"KubernetesTalosAPIAccessConfig", "KubePrismSupport", "HostDNSSupport", "ImageCacheSupport",
			"FeatureNodeAddressSortAlgorithm",
		})
	}
}

func copyFields(to, from reflect.Value, names []string) {
	for _, name := range names {
		to.FieldByName(name).Set(from.FieldByName(name))
	}
}

func Invalid(err error) error { return status.Error(codes.InvalidArgument, err.Error()) }

func IsControlPlane(cfg config.Provider) bool {
	return cfg != nil && cfg.Machine() != nil && cfg.Machine().Type().IsControlPlane()
}

// ImageVersion returns the version in an image's tag, "v1.35.0".
func ImageVersion(image string) string {
	image, _, _ = strings.Cut(image, "@")
	i := strings.LastIndex(image, ":")
	if i < 0 || strings.Contains(image[i:], "/") {
		return ""
	}

	return image[i+1:]
}

const PlatformNocloud = "nocloud"
