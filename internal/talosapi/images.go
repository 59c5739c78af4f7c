// SPDX-License-Identifier: Apache-2.0
// Copyright the talos-proxmox authors.

package talosapi

import (
	"context"
	"fmt"

	"github.com/cosi-project/runtime/pkg/safe"
	"github.com/siderolabs/talos/pkg/machinery/api/common"
	machineapi "github.com/siderolabs/talos/pkg/machinery/api/machine"
	machinery "github.com/siderolabs/talos/pkg/machinery/config"
	"github.com/siderolabs/talos/pkg/machinery/config/encoder"
	"github.com/siderolabs/talos/pkg/machinery/config/types/v1alpha1"
	"github.com/siderolabs/talos/pkg/machinery/resources/config"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	"github.com/talos-proxmox/talos-proxmox/internal/cluster"
)

// Image is the image of a component in the node's active configuration.
func (c *Client) Image(ctx context.Context, address string, component cluster.Component) (string, error) {
	active, err := c.machineConfig(ctx, address)
	if err != nil {
		return "", err
	}
	switch component {
	case cluster.APIServer:
		return active.Cluster().APIServer().Image(), nil
	case cluster.ControllerManager:
		return active.Cluster().ControllerManager().Image(), nil
	case cluster.Scheduler:
		return active.Cluster().Scheduler().Image(), nil
	case cluster.KubeProxy:
		return active.Cluster().Proxy().Image(), nil
	case cluster.Kubelet:
		return active.Machine().Kubelet().Image(), nil
	default:
		return "", fmt.Errorf("a machine configuration names no image for %q", component)
	}
}

// SetImage changes a component's image in the node's configuration and nothing else, without a reboot.
func (c *Client) SetImage(ctx context.Context, address string, component cluster.Component, image string) error {
	active, err := c.machineConfig(ctx, address)
	if err != nil {
		return err
	}
	patched, err := active.PatchV1Alpha1(func(cfg *v1alpha1.Config) error { return setImage(cfg, component, image) })
	if err != nil {
		return fmt.Errorf("changing the machine configuration: %w", err)
	}
	data, err := patched.EncodeBytes(encoder.WithComments(encoder.CommentsDisabled))
	if err != nil {
		return fmt.Errorf("changing the machine configuration: %w", err)
	}
	node, err := c.node(ctx, address)
	if err != nil {
		return err
	}
	if _, err := node.ApplyConfiguration(ctx, &machineapi.ApplyConfigurationRequest{
		Data: data, Mode: machineapi.ApplyConfigurationRequest_NO_REBOOT,
	}); err != nil {
		return fmt.Errorf("applying the machine configuration with image %s: %w", image, err)
	}

	return nil
}

// Pull has the node pull a component's image ahead of its use, where its API can.
func (c *Client) Pull(ctx context.Context, address string, component cluster.Component, image string) error {
	node, err := c.node(ctx, address)
	if err != nil {
		return err
	}
	namespace := common.ContainerdNamespace_NS_CRI
	if component == cluster.Kubelet || component == cluster.Installer {
		namespace = common.ContainerdNamespace_NS_SYSTEM
	}
	err = pull(ctx, node, namespace, image)
	if status.Code(err) != codes.Unimplemented {
		return err
	}
	//nolint:staticcheck // what Talos before 1.13 has
	if err := node.ImagePull(ctx, namespace, image); err != nil && status.Code(err) != codes.Unimplemented {
		return fmt.Errorf("pulling %s: %w", image, err)
	}

	return nil
}

// machineConfig is the configuration that is in force on a node, every document of it.
func (c *Client) machineConfig(ctx context.Context, address string) (machinery.Provider, error) {
	node, err := c.node(ctx, address)
	if err != nil {
		return nil, err
	}
	active, err := safe.StateGetByID[*config.MachineConfig](ctx, node.COSI, config.ActiveID)
	if err != nil {
		return nil, fmt.Errorf("asking for the machine configuration: %w", err)
	}
	if active.Provider().RawV1Alpha1() == nil {
		return nil, fmt.Errorf("asking for the machine configuration: the node %s has none yet", address)
	}

	return active.Provider(), nil
}

// setImage writes an image into a configuration, and what it stands in where that is missing.
func setImage(cfg *v1alpha1.Config, component cluster.Component, image string) error {
	if cfg.MachineConfig == nil {
		cfg.MachineConfig = &v1alpha1.MachineConfig{}
	}
	if cfg.ClusterConfig == nil {
		cfg.ClusterConfig = &v1alpha1.ClusterConfig{}
	}
	machine, kubernetes := cfg.MachineConfig, cfg.ClusterConfig
	switch component {
	case cluster.APIServer:
		kubernetes.APIServerConfig = orNew(kubernetes.APIServerConfig)
		kubernetes.APIServerConfig.ContainerImage = image
	case cluster.ControllerManager:
		kubernetes.ControllerManagerConfig = orNew(kubernetes.ControllerManagerConfig)
		kubernetes.ControllerManagerConfig.ContainerImage = image
	case cluster.Scheduler:
		kubernetes.SchedulerConfig = orNew(kubernetes.SchedulerConfig)
		kubernetes.SchedulerConfig.ContainerImage = image
	case cluster.KubeProxy:
		kubernetes.ProxyConfig = orNew(kubernetes.ProxyConfig)
		kubernetes.ProxyConfig.ContainerImage = image
	case cluster.Kubelet:
		machine.MachineKubelet = orNew(machine.MachineKubelet)
		machine.MachineKubelet.KubeletImage = image
	default:
		return fmt.Errorf("a machine configuration names no image for %q", component)
	}

	return nil
}

func orNew[T any](v *T) *T {
	if v == nil {
		return new(T)
	}

	return v
}
