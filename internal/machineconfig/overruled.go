// SPDX-License-Identifier: Apache-2.0
// Copyright the talos-proxmox authors.

package machineconfig

import (
	"fmt"
	"reflect"
	"strings"

	"github.com/siderolabs/talos/pkg/machinery/config"
	"github.com/siderolabs/talos/pkg/machinery/config/types/k8s"
	"github.com/siderolabs/talos/pkg/machinery/config/types/v1alpha1"

	"github.com/talos-proxmox/talos-proxmox/internal/rules/scope"
	"github.com/talos-proxmox/talos-proxmox/internal/rules/talos"
)

// owned are fields of the machine configuration that settings stand for and other rules are held against, with those settings.
var owned = []struct {
	field, setting string
	of             func(c *v1alpha1.Config) any
}{
	{"machine.install.disk", "installDisk of the node", func(c *v1alpha1.Config) any {
		if c.MachineConfig.MachineInstall == nil {
			return ""
		}

		return c.MachineConfig.MachineInstall.InstallDisk
	}},
	{"cluster.clusterName", "cluster.name", func(c *v1alpha1.Config) any { return c.ClusterConfig.ClusterName }},
	{"cluster.controlPlane.endpoint", "cluster.endpoint", func(c *v1alpha1.Config) any {
		if c.ClusterConfig.ControlPlane == nil || c.ClusterConfig.ControlPlane.Endpoint == nil {
			return ""
		}

		return c.ClusterConfig.ControlPlane.Endpoint.String()
	}},
	{"cluster.network.podSubnets", "cluster.podSubnets", ofNetwork(func(n *v1alpha1.ClusterNetworkConfig) any { return n.PodSubnet })},
	{"cluster.network.serviceSubnets", "cluster.serviceSubnets",
		ofNetwork(func(n *v1alpha1.ClusterNetworkConfig) any { return n.ServiceSubnet })},
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
			found = append(found, fmt.Sprintf("%s is what the setting %s says, on which other settings build: "+
				"write it there, and remove it here", f.field, f.setting))
		}
	}

	return append(found, broken(before, after, was, is)...)
}

// programs are the components whose flags rules know, by where the machine configuration has them.
var programs = map[string]string{
	"cluster.apiServer": "apiServer", "cluster.controllerManager": "controllerManager", "cluster.scheduler": "scheduler",
	"cluster.proxy": "proxy", "cluster.etcd": "etcd", "machine.kubelet": "kubelet",
	k8s.KubeAPIServerConfig: "apiServer", k8s.KubeControllerManagerConfig: "controllerManager", k8s.KubeSchedulerConfig: "scheduler",
	k8s.KubeProxyConfig: "proxy", k8s.KubeletConfig: "kubelet",
}

// broken returns what a patch brought that breaks a rule about the setting it could have been.
func broken(before, after config.Provider, was, is *v1alpha1.Config) []string {
	found := brokenFlags(before, after, was, is)
	sysctls, nowSysctls := was.MachineConfig.MachineSysctls, is.MachineConfig.MachineSysctls
	found = append(found, brokenValues("machine.sysctls.", sysctls, nowSysctls, scope.SysctlProblem)...)

	return append(found, brokenValues("machine.kubelet.extraConfig.", kubeletFields(was), kubeletFields(is), talos.KubeletFieldProblem)...)
}

// brokenValues returns what is wrong with values that a patch brought.
func brokenValues[V any](prefix string, was, is map[string]V, problem func(name string, value V) string) []string {
	var found []string
	for _, name := range sortedKeys(is) {
		if reflect.DeepEqual(was[name], is[name]) {
			continue
		}
		if message := problem(name, is[name]); message != "" {
			found = append(found, fmt.Sprintf("%s%s %s", prefix, name, message))
		}
	}

	return found
}

// kubeletFields returns what a configuration sets of the kubelet's own.
func kubeletFields(c *v1alpha1.Config) map[string]any {
	if c.MachineConfig.MachineKubelet == nil {
		return nil
	}

	return c.MachineConfig.MachineKubelet.KubeletExtraConfig.Object
}

// brokenFlags returns what is wrong with flags that a patch brought.
func brokenFlags(before, after config.Provider, was, is *v1alpha1.Config) []string {
	var found []string
	old := map[string]string{}
	for _, c := range componentFlags(before, was) {
		for name, values := range c.flags {
			old[c.document+c.path+name] = strings.Join(values, ",")
		}
	}
	for _, c := range componentFlags(after, is) {
		program := programs[strings.TrimSuffix(c.path, ".")]
		if c.path == "" {
			program = programs[c.document]
		}
		for _, name := range sortedKeys(c.flags) {
			value := strings.Join(c.flags[name], ",")
			if given, same := old[c.document+c.path+name]; same && given == value || program == "" || value == "" {
				continue
			}
			if message := talos.FlagProblem(program, name, value); message != "" {
				found = append(found, fmt.Sprintf("%sextraArgs.%s %s", c.path, name, message))
			}
		}
	}

	return found
}
