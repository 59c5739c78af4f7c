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

// KubeletConfiguration returns the configuration of a node's kubelet, as Talos 1.12 puts it together.
func KubeletConfiguration(cfg config.Provider) map[string]any {
	kubelet, memory := cfg.K8sKubeletConfig(), "384Mi"
	if IsControlPlane(cfg) {
		memory = "512Mi"
	}
	text := map[string]any{"infoBufferSize": "0"}
	dns := kubelet.ClusterDNS()
	if ips, err := ServiceIPs(cfg, dnsPlace); len(dns) == 0 && err == nil {
		for _, ip := range ips {
			dns = append(dns, ip.String())
		}
	}
	c := map[string]any{
		"address": "0.0.0.0", "apiVersion": "kubelet.config.k8s.io/v1beta1", "kind": "KubeletConfiguration",
		"authentication": map[string]any{
			"anonymous": map[string]any{"enabled": false}, "webhook": map[string]any{"cacheTTL": "0s", "enabled": true},
			"x509": map[string]any{"clientCAFile": "/etc/kubernetes/pki/ca.crt"},
		},
		"authorization": map[string]any{
			"mode": "Webhook", "webhook": map[string]any{"cacheAuthorizedTTL": "0s", "cacheUnauthorizedTTL": "0s"},
		},
		"cgroupRoot": "/", "clusterDNS": stringsOf(dns), "clusterDomain": cfg.K8sNetworkConfig().DNSDomain(),
		"containerRuntimeEndpoint": "unix:///run/containerd/containerd.sock", "crashLoopBackOff": map[string]any{}, "failSwapOn": false,
		"featureGates": map[string]any{"LocalStorageCapacityIsolationFSQuotaMonitoring": true}, "kubeletCgroups": "/podruntime/kubelet",
		"logging": map[string]any{
			"flushFrequency": 0, "format": "json", "verbosity": 0, "options": map[string]any{"json": text, "text": text},
		},
		"memorySwap": map[string]any{}, "oomScoreAdj": -450, "port": 10250, "resolvConf": "/system/resolved/resolv.conf",
		"rotateCertificates": true, "seccompDefault": kubelet.DefaultRuntimeSeccompProfileEnabled(), "serializeImagePulls": false,
		"shutdownGracePeriod": "30s", "shutdownGracePeriodCriticalPods": "10s", "streamingConnectionIdleTimeout": "5m0s",
		"staticPodURL": "http://127.0.0.1:40000", "systemCgroups": "/system",
		"systemReserved": map[string]any{"cpu": "50m", "ephemeral-storage": "256Mi", "memory": memory, "pid": "100"},
		"tlsMinVersion":  "VersionTLS13",
	}
	for _, name := range []string{
		"cpuManagerReconcilePeriod", "evictionPressureTransitionPeriod", "fileCheckFrequency", "httpCheckFrequency", "imageMaximumGCAge",
		"imageMinimumGCAge", "nodeStatusReportFrequency", "nodeStatusUpdateFrequency", "runtimeRequestTimeout", "syncFrequency",
		"volumeStatsAggPeriod",
	} {
		c[name] = "0s"
	}
	if taints := cfg.K8sNodeConfig().Taints(); IsControlPlane(cfg) && taints[controlPlaneTaint] != "" {
		c["registerWithTaints"] = []any{map[string]any{"effect": "NoSchedule", "key": controlPlaneTaint}}
	}
	maps.Copy(c, kubelet.ExtraConfig())

	return c
}

const (
	controlPlaneTaint = "node-role.kubernetes.io/control-plane"
	dnsPlace          = 10 // of the DNS service in the service network
)

func stringsOf(list []string) []any {
	var out []any
	for _, s := range list {
		out = append(out, s)
	}

	return out
}

// EtcdImage returns the image of a control plane's etcd, "" for a worker.
func EtcdImage(cfg config.Provider) string {
	if !IsControlPlane(cfg) || cfg.Cluster().Etcd() == nil {
		return ""
	}

	return cfg.Cluster().Etcd().Image()
}
