// SPDX-License-Identifier: Apache-2.0
// Copyright the talos-proxmox authors.

package kube

import (
	"context"
	"net/netip"
	"strings"

	corev1 "k8s.io/api/core/v1"
)

// blocker tells why no container of the pod can be created yet, as the kubelet's events do.
func (k *kubelet) blocker(ctx context.Context, pod *corev1.Pod) (reason, message string) {
	if !pod.Spec.HostNetwork && !k.networkReady() {
		return "NetworkNotReady", "network is not ready: " + noNetworkMessage
	}
	if missing := k.missingVolume(ctx, pod); missing != "" {
		return "FailedMount", missing
	}

	return "", ""
}

// makeSandbox sets up what the pod's containers share: volumes and addresses. It reports whether it
// could, and records why not.
func (k *kubelet) makeSandbox(ctx context.Context, pod *corev1.Pod, s *podState) bool {
	if reason, message := k.blocker(ctx, pod); reason != "" {
		k.warn(pod, s, reason, message)

		return false
	}
	if pod.Spec.HostNetwork {
		for _, addr := range k.spec.Addresses {
			s.ips = append(s.ips, addr.String())
		}
		s.ips = onePerFamily(s.ips)
		s.sandbox = true

		return true
	}

	k.mu.Lock()
	cidrs := k.podCIDRs
	k.mu.Unlock()

	used := map[string]bool{}
	for _, other := range k.states {
		if finishedAll(other.main) {
			continue
		}
		for _, ip := range other.ips {
			used[ip] = true
		}
	}
	var ips []string
	for _, cidr := range cidrs {
		if ip := freeAddress(cidr, used); ip != "" {
			ips = append(ips, ip)
		}
	}
	if len(ips) == 0 || len(ips) < len(cidrs) {
		k.wake() // the node's networks may have come meanwhile
		k.warn(pod, s, "FailedCreatePodSandBox", "failed to set up the pod's network: no address is free on the node")

		return false
	}
	s.ips, s.sandbox = ips, true

	return true
}

// freeAddress returns the first address of a node's pod network that is free; the first two are the
// network's and the bridge's.
func freeAddress(cidr string, used map[string]bool) string {
	prefix, err := netip.ParsePrefix(cidr)
	if err != nil {
		return ""
	}
	for addr := prefix.Masked().Addr().Next().Next(); prefix.Contains(addr.Next()); addr = addr.Next() {
		if !used[addr.String()] {
			return addr.String()
		}
	}

	return ""
}

// onePerFamily keeps the first address of each family, as a pod on the host network reports.
func onePerFamily(ips []string) []string {
	var out []string
	seen := map[bool]bool{}
	for _, ip := range ips {
		if v6 := strings.Contains(ip, ":"); !seen[v6] {
			seen[v6] = true
			out = append(out, ip)
		}
	}

	return out
}

// isCNI reports whether a pod sets up the node's network: it puts a config where the runtime looks.
func isCNI(pod *corev1.Pod) bool {
	for _, volume := range pod.Spec.Volumes {
		if volume.HostPath == nil {
			continue
		}
		switch strings.TrimSuffix(volume.HostPath.Path, "/") {
		case "/etc/cni", "/etc/cni/net.d":
			return true
		}
	}

	return false
}
