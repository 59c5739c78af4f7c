// SPDX-License-Identifier: Apache-2.0
// Copyright the talos-proxmox authors.

package talos

import (
	"fmt"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/api/resource"

	"github.com/talos-proxmox/talos-proxmox/internal/check"
	"github.com/talos-proxmox/talos-proxmox/internal/rules/scope"
	"github.com/talos-proxmox/talos-proxmox/internal/versions"
)

// fieldsSince are fields of the KubeletConfiguration that came after the oldest release that a stack may name
// (k8s.io/kubelet, config/v1beta1/types.go). An older kubelet does not start with one.
var fieldsSince = map[string]string{
	"failCgroupV1": "v1.31.0", "singleProcessOOMKill": "v1.32.0", "crashLoopBackOff": "v1.32.0",
	"imagePullCredentialsVerificationPolicy": "v1.33.0", "preloadedImagesVerificationAllowlist": "v1.33.0",
	"mergeDefaultEvictionSettings": "v1.33.0", "userNamespaces": "v1.33.0", "tlsCurvePreferences": "v1.36.0",
	"memoryReservationPolicy": "v1.36.0", "defaultPodSysctls": "v1.37.0",
}

// settingFields are fields that settings stand for.
var settingFields = map[string]string{
	"clusterDNS": "kubernetes.kubelet.clusterDns", "clusterDomain": "cluster.dnsDomain",
	"serverTLSBootstrap": "kubernetes.kubelet.rotateServerCertificates", "registerWithTaints": "the nodes' taints",
	"providerID": "the node itself",
}

// fieldChoices are fields with a few values, of which the kubelet takes no other.
var fieldChoices = map[string][]string{
	"cpuManagerPolicy": {"none", "static"}, "memoryManagerPolicy": {"None", "Static"},
	"topologyManagerPolicy": {"none", "best-effort", "restricted", "single-numa-node"}, "topologyManagerScope": {"container", "pod"},
	"cgroupDriver": {"systemd", "cgroupfs"}, "hairpinMode": {"promiscuous-bridge", "hairpin-veth", "none"},
	"imagePullCredentialsVerificationPolicy": {"NeverVerify", "NeverVerifyPreloadedImages", "NeverVerifyAllowlistedImages", "AlwaysVerify"},
}

// signals are what the kubelet evicts pods by.
var signals = []string{
	"memory.available", "nodefs.available", "nodefs.inodesFree", "imagefs.available", "imagefs.inodesFree", "containerfs.available",
	"containerfs.inodesFree", "pid.available", "allocatableMemory.available",
}

// kubeletValues checks fields that exist, and have the right type, for what the kubelet takes.
func (r *rules) kubeletValues(path string, fields map[string]any) {
	version, err := versions.ParseKubernetes(*r.Config.Kubernetes.Version)
	for _, name := range scope.SortedKeys(fields) {
		at := check.Key(path, name)
		if r.Wrong(at) {
			continue
		}
		if since, late := fieldsSince[name]; late && err == nil {
			if first, _ := versions.ParseKubernetes(since); version.Compare(first) < 0 {
				r.Addf(at, "is a field since Kubernetes %s, and the cluster runs %s, whose kubelet would not start: remove it", first.Minor(), version)

				continue
			}
		}
		if setting, has := settingFields[name]; has {
			r.Addf(at, "is what %s says: write it there, and remove it here", setting)

			continue
		}
		r.kubeletReads(at, name, fields[name])
		if choices, has := fieldChoices[name]; has && !slices.Contains(choices, fmt.Sprint(fields[name])) {
			r.Addf(at, "%s", scope.NotOneOf(fmt.Sprint(fields[name]), choices))
		}
		switch name {
		case "evictionHard", "evictionSoft", "evictionMinimumReclaim":
			r.eviction(at, fields[name])
		case "systemReserved", "kubeReserved":
			r.reserved(at, fields[name])
		}
	}
	r.kubeletRelations(path, fields)
}

// eviction checks signals and their thresholds.
func (r *rules) eviction(at string, value any) {
	thresholds, _ := value.(map[string]any)
	for _, signal := range scope.SortedKeys(thresholds) {
		text := fmt.Sprint(thresholds[signal])
		switch _, err := resource.ParseQuantity(strings.TrimSuffix(text, "%")); {
		case !slices.Contains(signals, signal):
			r.Addf(check.Key(at, signal), "%s", scope.NotOneOf(signal, signals))
		case err != nil:
			r.Addf(check.Key(at, signal), "%q is no amount: write one such as 100Mi or 10%%", text)
		case strings.HasSuffix(text, "%") && beyond(strings.TrimSuffix(text, "%"), 100):
			r.Addf(check.Key(at, signal), "%s is no share, and the kubelet does not start: write one from 0%% to 100%%", text)
		}
	}
}

// reserved checks what is kept from pods.
func (r *rules) reserved(at string, value any) {
	amounts, _ := value.(map[string]any)
	names := []string{"cpu", "memory", "ephemeral-storage", "pid"}
	for _, name := range scope.SortedKeys(amounts) {
		text := fmt.Sprint(amounts[name])
		switch _, err := resource.ParseQuantity(text); {
		case !slices.Contains(names, name):
			r.Addf(check.Key(at, name), "%s", scope.NotOneOf(name, names))
		case err != nil:
			r.Addf(check.Key(at, name), "%q is no amount: write one such as 500m or 1Gi", text)
		}
	}
}

// kubeletRelations checks fields against each other, as the kubelet does when it starts (ValidateKubeletConfiguration).
func (r *rules) kubeletRelations(path string, fields map[string]any) {
	number := func(name string, fallback int) int {
		if n, ok := fields[name].(int); ok {
			return n
		}

		return fallback
	}
	high, low := number("imageGCHighThresholdPercent", 85), number("imageGCLowThresholdPercent", 80)
	switch {
	case high < 0 || high > 100:
		r.Addf(path+".imageGCHighThresholdPercent", "%d is no percentage: write a number from 0 to 100", high)
	case low < 0 || low > 100:
		r.Addf(path+".imageGCLowThresholdPercent", "%d is no percentage: write a number from 0 to 100", low)
	case low >= high:
		r.Addf(path+".imageGCLowThresholdPercent",
			"%d is not below imageGCHighThresholdPercent, %d, with which the kubelet does not start: lower it", low, high)
	}
	r.kubeletPairs(path, fields, number)
	if pods := number("maxPods", 110); pods < 1 {
		r.Addf(path+".maxPods", "%d leaves nodes without a pod: write how many pods a node may run", pods)
	}
	r.kubeletLimits(path, fields)
	gates, _ := fields["featureGates"].(map[string]any)
	for _, gate := range scope.SortedKeys(gates) {
		if message := unknownFlag("featureGates", gate); message != "" {
			message = strings.Replace(message, "a flag that the program has, which", "a feature gate that the kubelet has, which", 1)
			r.Addf(check.Key(path+".featureGates", gate), "%s", message)
		}
	}
}
