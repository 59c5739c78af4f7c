// SPDX-License-Identifier: Apache-2.0
// Copyright the talos-proxmox authors.

package machineconfig

import (
	"fmt"
	"maps"
	"net/netip"
	"slices"
	"strings"

	"github.com/siderolabs/talos/pkg/machinery/config"
)

// KubeletArgs returns the command line of a node's kubelet, as Talos 1.12 puts it together.
func KubeletArgs(cfg config.Provider, nodename string, addresses []netip.Addr) []string {
	var ips []string
	for _, a := range addresses {
		ips = append(ips, a.String())
	}
	flags := map[string]string{
		"bootstrap-kubeconfig": "/etc/kubernetes/bootstrap-kubeconfig", "cert-dir": "/var/lib/kubelet/pki",
		"config": "/etc/kubernetes/kubelet.yaml", "hostname-override": nodename,
		"kubeconfig": "/etc/kubernetes/kubeconfig-kubelet", "node-ip": strings.Join(ips, ","),
	}
	for name, values := range cfg.K8sKubeletConfig().ExtraArgs() {
		flags[name] = strings.Join(values, ",")
	}
	var args []string
	for _, name := range slices.Sorted(maps.Keys(flags)) {
		args = append(args, fmt.Sprintf("--%s=%s", name, flags[name]))
	}

	return args
}

// EtcdImage returns the image of a control plane's etcd, "" for a worker.
func EtcdImage(cfg config.Provider) string {
	if !IsControlPlane(cfg) || cfg.Cluster().Etcd() == nil {
		return ""
	}

	return cfg.Cluster().Etcd().Image()
}
