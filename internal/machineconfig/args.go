// SPDX-License-Identifier: Apache-2.0
// Copyright the talos-proxmox authors.

package machineconfig

import (
	"fmt"
	"strings"

	"github.com/siderolabs/talos/pkg/machinery/config"
	"github.com/siderolabs/talos/pkg/machinery/config/types/k8s"
	"github.com/siderolabs/talos/pkg/machinery/config/types/meta"
	"github.com/siderolabs/talos/pkg/machinery/config/types/v1alpha1"

	"github.com/talos-proxmox/talos-proxmox/internal/versions"
	"github.com/talos-proxmox/talos-proxmox/spec"
)

// args returns a component's flags in the form Talos takes. The machinery writes an empty text as null, which Talos
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

// leftOut describes a flag that a document cannot hold.
type leftOut struct{ document, message string }

// flagsLeftOut returns the flags that Talos would not pass on: newer releases leave out one whose text
// is empty. (pkg/argsbuilder.)
func flagsLeftOut(cfg spec.Config, provider config.Provider, main *v1alpha1.Config) []leftOut {
	talos, err := versions.ParseTalos(spec.Value(cfg.Talos.Version))
	if err != nil || !talos.LeavesOutEmptyFlags() {
		return nil
	}
	var found []leftOut
	for _, c := range componentFlags(provider, main) {
		for _, name := range sortedKeys(c.flags) {
			if strings.Join(c.flags[name], "") == "" {
				found = append(found, leftOut{c.document, fmt.Sprintf("%sextraArgs.%s: Talos leaves out a flag without a text since %s: "+
					"give it one, or leave it out", c.path, name, versions.EmptyFlagsLeftOutSince)})
			}
		}
	}

	return found
}

// component holds a component's flags, the document that has them, and their place in it.
type component struct {
	document, path string
	flags          map[string][]string
}

// componentFlags returns the flags of every component, wherever they stand.
func componentFlags(provider config.Provider, main *v1alpha1.Config) []component {
	var found []component
	add := func(kind, path string, flags map[string][]string) {
		if provider.Has(kind) {
			found = append(found, component{document: kind, flags: flags})
		} else {
			found = append(found, component{document: machineDocument, path: path + ".", flags: flags})
		}
	}
	add(k8s.KubeAPIServerConfig, "cluster.apiServer", provider.K8sAPIServerConfig().ExtraArgs())
	add(k8s.KubeControllerManagerConfig, "cluster.controllerManager", provider.K8sControllerManagerConfig().ExtraArgs())
	if main.ClusterConfig != nil && main.ClusterConfig.EtcdConfig != nil {
		add("", "cluster.etcd", main.ClusterConfig.EtcdConfig.EtcdExtraArgs.ToMap())
	}
	add(k8s.KubeProxyConfig, "cluster.proxy", provider.K8sProxyConfig().ExtraArgs())
	add(k8s.KubeSchedulerConfig, "cluster.scheduler", provider.K8sSchedulerConfig().ExtraArgs())
	if kubelet := provider.K8sKubeletConfig(); kubelet != nil {
		add(k8s.KubeletConfig, "machine.kubelet", kubelet.ExtraArgs())
	}

	return found
}
