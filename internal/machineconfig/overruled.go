// SPDX-License-Identifier: Apache-2.0
// Copyright the talos-proxmox authors.

package machineconfig

import (
	"fmt"
	"reflect"

	"github.com/siderolabs/talos/pkg/machinery/config"
	"github.com/siderolabs/talos/pkg/machinery/config/types/v1alpha1"
)

// owned are fields of the machine configuration that settings stand for and other rules are held against, with those settings.
var owned = []struct {
	field, setting string
	of             func(c *v1alpha1.Config) any
}{
	{"cluster.clusterName", "cluster.name", func(c *v1alpha1.Config) any { return c.ClusterConfig.ClusterName }},
	{"cluster.controlPlane.endpoint", "cluster.endpoint", func(c *v1alpha1.Config) any {
		if c.ClusterConfig.ControlPlane == nil || c.ClusterConfig.ControlPlane.Endpoint == nil {
			return ""
		}

		return c.ClusterConfig.ControlPlane.Endpoint.String()
	}},
	{"cluster.network.podSubnets", "cluster.podSubnets", ofNetwork(func(n *v1alpha1.ClusterNetworkConfig) any { return n.PodSubnet })},
	{"cluster.network.serviceSubnets", "cluster.serviceSubnets", ofNetwork(func(n *v1alpha1.ClusterNetworkConfig) any { return n.ServiceSubnet })},
	{"cluster.network.dnsDomain", "cluster.dnsDomain", ofNetwork(func(n *v1alpha1.ClusterNetworkConfig) any { return n.DNSDomain })},
}

func ofNetwork(of func(n *v1alpha1.ClusterNetworkConfig) any) func(c *v1alpha1.Config) any {
	return func(c *v1alpha1.Config) any {
		if c.ClusterConfig.ClusterNetwork == nil {
			return nil
		}

		return of(c.ClusterConfig.ClusterNetwork)
	}
}

// overruled returns what a patch changed although a setting says it, on which other settings and rules are built.
func overruled(before, after config.Provider) []string {
	was, _ := split(before)
	is, _ := split(after)
	if was == nil || is == nil || was.ClusterConfig == nil || is.ClusterConfig == nil {
		return nil
	}
	var found []string
	for _, f := range owned {
		if !reflect.DeepEqual(f.of(was), f.of(is)) {
			found = append(found, fmt.Sprintf("%s is what the setting %s says, on which other settings build: write it there, and remove it here", f.field, f.setting))
		}
	}

	return found
}
