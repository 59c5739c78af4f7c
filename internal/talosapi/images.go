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
	"github.com/siderolabs/talos/pkg/machinery/config/configpatcher"
	"github.com/siderolabs/talos/pkg/machinery/config/encoder"
	"github.com/siderolabs/talos/pkg/machinery/config/generate/stdpatches"
	"github.com/siderolabs/talos/pkg/machinery/resources/config"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	"github.com/talos-proxmox/talos-proxmox/internal/cluster"
)

// Image returns the image of a component in the node's active configuration.
func (c *Client) Image(ctx context.Context, address string, component cluster.Component) (string, error) {
	active, err := c.machineConfig(ctx, address)
	if err != nil {
		return "", err
	}
	switch component {
	case cluster.APIServer:
		return active.K8sAPIServerConfig().Image(), nil
	case cluster.ControllerManager:
		return active.K8sControllerManagerConfig().Image(), nil
	case cluster.Scheduler:
		return active.K8sSchedulerConfig().Image(), nil
	case cluster.KubeProxy:
		return active.K8sProxyConfig().Image(), nil
	case cluster.Kubelet:
		return active.K8sKubeletConfig().Image(), nil
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
	data, err := withImage(active, component, image)
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

// Pull pulls a component's image ahead of its use, where the node's API can.
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

// machineConfig returns the active configuration of a node with all its documents.
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

// withImage returns the configuration with another image for a component, in the form in which the
// configuration has that component: a document of its own, or a section of the machine configuration.
func withImage(active machinery.Provider, component cluster.Component, image string) ([]byte, error) {
	patch, err := imagePatch(active, component, image)
	if err != nil {
		return nil, err
	}
	output, err := configpatcher.Apply(configpatcher.WithConfig(active), []configpatcher.Patch{patch})
	if err != nil {
		return nil, fmt.Errorf("applying the patch for the image %s: %w", image, err)
	}
	patched, err := output.Config()
	if err != nil {
		return nil, fmt.Errorf("reading the patched configuration: %w", err)
	}
	data, err := patched.EncodeBytes(encoder.WithComments(encoder.CommentsDisabled))
	if err != nil {
		return nil, fmt.Errorf("encoding the patched configuration: %w", err)
	}

	return data, nil
}

// imagePatch returns the patch that names a component's image.
func imagePatch(active machinery.Container, component cluster.Component, image string) (configpatcher.Patch, error) {
	var patch []byte
	var err error
	switch component {
	case cluster.APIServer:
		patch, err = stdpatches.WithKubeAPIServerImage(stdpatches.GuessVersionContractKubeAPIServer(active), image)
	case cluster.ControllerManager:
		patch, err = stdpatches.WithKubeControllerManagerImage(stdpatches.GuessVersionContractKubeControllerManager(active), image)
	case cluster.Scheduler:
		patch, err = stdpatches.WithKubeSchedulerImage(stdpatches.GuessVersionContractKubeScheduler(active), image)
	case cluster.KubeProxy:
		patch, err = stdpatches.WithKubeProxyImage(stdpatches.GuessVersionContractKubeProxy(active), image)
	case cluster.Kubelet:
		patch, err = stdpatches.WithKubeletImage(stdpatches.GuessVersionContractKubelet(active), image)
	default:
		return nil, fmt.Errorf("a machine configuration names no image for %q", component)
	}
	prepared, err := stdpatches.PreparePatch(patch, err)
	if err != nil {
		return nil, fmt.Errorf("writing the patch for the image %s: %w", image, err)
	}

	return prepared, nil
}
