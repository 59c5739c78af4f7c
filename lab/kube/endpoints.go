// SPDX-License-Identifier: Apache-2.0
// Copyright the talos-proxmox authors.

package kube

import (
	"context"
	"slices"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	discoveryv1 "k8s.io/api/discovery/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	discoveryapply "k8s.io/client-go/applyconfigurations/discovery/v1"
)

const (
	apiServerPort = 6443
	// publishTimeout bounds a publication, for it also happens while a node goes.
	publishTimeout = 10 * time.Second
)

// publish makes the kubernetes Service lead to the control planes that run, as each API server of a
// real cluster does for itself. It is tried again with every control plane that comes or goes.
func (c *Cluster) publish(ctx context.Context) {
	ctx, cancel := context.WithTimeout(ctx, publishTimeout)
	defer cancel()

	c.publishing.Lock()
	defer c.publishing.Unlock()

	slice := discoveryapply.EndpointSlice("kubernetes", metav1.NamespaceDefault).
		WithLabels(map[string]string{discoveryv1.LabelServiceName: "kubernetes"}).
		WithAddressType(discoveryv1.AddressTypeIPv4).
		WithPorts(discoveryapply.EndpointPort().WithName("https").WithPort(apiServerPort).WithProtocol(corev1.ProtocolTCP))
	for _, address := range c.controlPlanes() {
		if strings.Contains(address, ":") {
			slice.WithAddressType(discoveryv1.AddressTypeIPv6)
		}
		slice.WithEndpoints(discoveryapply.Endpoint().WithAddresses(address).
			WithConditions(discoveryapply.EndpointConditions().WithReady(true)))
	}

	_ = poll(ctx, time.Second, func(ctx context.Context) bool {
		_, err := c.client.DiscoveryV1().EndpointSlices(metav1.NamespaceDefault).
			Apply(ctx, slice, metav1.ApplyOptions{FieldManager: "kube-apiserver", Force: true})

		return err == nil
	})
}

// controlPlanes returns the first address of each control plane that runs.
func (c *Cluster) controlPlanes() []string {
	c.mu.Lock()
	defer c.mu.Unlock()

	var addresses []string
	for _, r := range c.kubelets {
		if r.spec.ControlPlane {
			addresses = append(addresses, r.spec.Addresses[0].String())
		}
	}
	slices.Sort(addresses)

	return addresses
}
