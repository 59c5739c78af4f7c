// SPDX-License-Identifier: Apache-2.0
// Copyright the talos-proxmox authors.

package talos

import (
	"context"
	"errors"
	"fmt"
	"reflect"
	"slices"

	"github.com/blang/semver/v4"
	"github.com/siderolabs/talos/pkg/machinery/config"
	"github.com/siderolabs/talos/pkg/machinery/config/configdiff"
	"github.com/siderolabs/talos/pkg/machinery/config/configloader"
	"github.com/siderolabs/talos/pkg/machinery/config/container"
	"github.com/siderolabs/talos/pkg/machinery/config/types/v1alpha1"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
)

// kindsSince112 are the documents that Talos 1.12 brought; an older node does not know them.
func kindsSince112() []string {
	return []string{
		"HostnameConfig", "LinkConfig", "LinkAliasConfig", "DummyLinkConfig", "BondConfig", "BridgeConfig",
		"VLANConfig", "WireguardConfig", "DHCPv4Config", "DHCPv6Config", "Layer2VIPConfig", "HCloudVIPConfig",
		"ResolverConfig", "StaticHostConfig", "TimeSyncConfig", "OOMConfig",
		"RegistryMirrorConfig", "RegistryAuthConfig", "RegistryTLSConfig",
	}
}

// kindsSince113 are the documents that Talos 1.13 brought.
func kindsSince113() []string {
	return []string{
		"BlackholeRouteConfig", "EnvironmentConfig", "ExternalVolumeConfig", "ImageVerificationConfig",
		"KubeSpanConfig", "RoutingRuleConfig", "TCPProbeConfig", "VRFConfig",
	}
}

// loadConfig parses a configuration as a node of the given Talos version does.
func loadConfig(data []byte, talos string) (config.Provider, error) {
	cfg, err := configloader.NewFromBytes(data)
	if err != nil {
		return nil, err //nolint:wrapcheck // the node answers with machinery's own words
	}

	var unknown []string
	if !atLeast(talos, 1, 13) {
		unknown = append(unknown, kindsSince113()...)
	}
	if !atLeast(talos, 1, 12) {
		unknown = append(unknown, kindsSince112()...)
	}
	for _, d := range cfg.Documents() {
		if slices.Contains(unknown, d.Kind()) {
			return nil, fmt.Errorf("%q %q: not registered", d.Kind(), d.APIVersion())
		}
	}

	return cfg, nil
}

// atLeast tells whether a version is major.minor or newer; one that cannot be read counts as new.
func atLeast(version string, major, minor uint64) bool {
	v, err := semver.ParseTolerant(version)
	if err != nil {
		return true
	}

	return v.Major > major || v.Major == major && v.Minor >= minor
}

// runMode is what validation asks of a platform.
type runMode struct {
	platform  string
	installed bool
}

func (m runMode) String() string {
	if m.platform == platformNocloud {
		return "cloud"
	}

	return "metal"
}

// RequiresInstall tells whether the configuration must name an install disk.
func (m runMode) RequiresInstall() bool { return m.platform != platformNocloud && !m.installed }

// InContainer is false: a VM is no container.
func (m runMode) InContainer() bool { return false }

func (n *node) runMode() runMode {
	return runMode{platform: n.image.Platform, installed: n.disk != nil}
}

// validate checks a configuration against this node and returns Talos's warnings.
func (n *node) validate(
	ctx context.Context, cfg config.Provider, mode runMode,
) (warnings []string, err, runtimeErr error) {
	warnings, err = cfg.Validate(mode)
	if err != nil {
		return nil, err, nil
	}
	more, runtimeErr := cfg.RuntimeValidate(ctx, n.state, mode)

	return append(warnings, more...), nil, runtimeErr
}

// canApplyNow tells whether a running node can take a configuration without a reboot. Only these
// parts may differ: debug, cluster, and of machine ca, acceptedCAs, certSANs, controlPlane, features
// {kubernetesTalosAPIAccess, kubePrism, hostDNS, imageCache, nodeAddressSortAlgorithm}, install,
// kernel, kubelet, logging, network, node{Annotations,Labels,Taints}, pods, registries,
// seccompProfiles, sysctls, sysfs and time. Other documents never ask for a reboot.
func canApplyNow(current, next config.Provider) error {
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

func invalid(err error) error { return status.Error(codes.InvalidArgument, err.Error()) }
