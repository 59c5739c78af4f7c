// SPDX-License-Identifier: Apache-2.0
// Copyright the talos-proxmox authors.

package machineconfig

import (
	"fmt"
	"strings"

	"github.com/siderolabs/talos/pkg/machinery/config/types/meta"
	"github.com/siderolabs/talos/pkg/machinery/config/types/v1alpha1"

	"github.com/talos-proxmox/talos-proxmox/internal/versions"
	"github.com/talos-proxmox/talos-proxmox/spec"
)

// args are a component's flags in the form Talos takes. The machinery writes an empty text as null, which Talos
// before 1.13 reads as the empty text that it is.
func args(flags map[string]string) meta.Args {
	if len(flags) == 0 {
		return nil
	}
	out := meta.Args{}
	for name, value := range flags {
		out[name] = meta.NewArgValue(value, nil)
	}

	return out
}

// flagsLeftOut says which flags Talos would not pass on: since 1.13 it leaves out one whose text is empty.
// (pkg/argsbuilder. Lists, where an empty text could stand, are read since 1.13.6 only.)
func flagsLeftOut(cfg spec.Config, main *v1alpha1.Config) []string {
	talos, err := versions.ParseTalos(spec.Or(cfg.Talos.Version, ""))
	since := versions.Contract{Major: 1, Minor: 13}
	if err != nil || since.NewerThan(talos.Contract()) {
		return nil
	}
	var found []string
	components := componentFlags(main)
	for _, component := range sortedKeys(components) {
		flags := components[component].ToMap()
		for _, name := range sortedKeys(flags) {
			if strings.Join(flags[name], "") == "" {
				found = append(found, fmt.Sprintf("%s.extraArgs.%s: Talos leaves out a flag without a text since %s: give it one, "+
					"or leave it out", component, name, since))
			}
		}
	}

	return found
}

// componentFlags are the flags that a configuration has, by component.
func componentFlags(main *v1alpha1.Config) map[string]meta.Args {
	flags := map[string]meta.Args{}
	if m := main.MachineConfig; m != nil && m.MachineKubelet != nil {
		flags["machine.kubelet"] = m.MachineKubelet.KubeletExtraArgs
	}
	c := main.ClusterConfig
	if c == nil {
		return flags
	}
	if c.APIServerConfig != nil {
		flags["cluster.apiServer"] = c.APIServerConfig.ExtraArgsConfig
	}
	if c.ControllerManagerConfig != nil {
		flags["cluster.controllerManager"] = c.ControllerManagerConfig.ExtraArgsConfig
	}
	if c.SchedulerConfig != nil {
		flags["cluster.scheduler"] = c.SchedulerConfig.ExtraArgsConfig
	}
	if c.ProxyConfig != nil {
		flags["cluster.proxy"] = c.ProxyConfig.ExtraArgsConfig
	}
	if c.EtcdConfig != nil {
		flags["cluster.etcd"] = c.EtcdConfig.EtcdExtraArgs
	}

	return flags
}
