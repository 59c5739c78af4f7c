// SPDX-License-Identifier: Apache-2.0
// Copyright the talos-proxmox authors.

package kube

import (
	"context"
	"time"

	coordinationv1 "k8s.io/api/coordination/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

const (
	leaseNamespace = "kube-node-lease"
	leaseSeconds   = 40
)

// keepLease renews the node's lease until ctx ends.
func (k *kubelet) keepLease(ctx context.Context) {
	tick := time.NewTicker(k.pace.heartbeat)
	defer tick.Stop()

	for {
		_ = k.renew(ctx) // tried again at the next tick; silence is what the control plane looks for

		select {
		case <-ctx.Done():
			return
		case <-tick.C:
		}
	}
}

func (k *kubelet) renew(ctx context.Context) error {
	leases := k.client.CoordinationV1().Leases(leaseNamespace)
	now := metav1.NewMicroTime(k.now())

	lease, err := leases.Get(ctx, k.spec.Name, metav1.GetOptions{})
	if err == nil {
		lease.Spec.RenewTime = &now
		_, err = leases.Update(ctx, lease, metav1.UpdateOptions{})

		return err
	}
	if !apierrors.IsNotFound(err) {
		return err
	}

	node, err := k.client.CoreV1().Nodes().Get(ctx, k.spec.Name, metav1.GetOptions{})
	if err != nil {
		return err
	}
	duration := int32(leaseSeconds)
	_, err = leases.Create(ctx, &coordinationv1.Lease{
		ObjectMeta: metav1.ObjectMeta{
			Name: k.spec.Name,
			OwnerReferences: []metav1.OwnerReference{
				{APIVersion: "v1", Kind: "Node", Name: node.Name, UID: node.UID},
			},
		},
		Spec: coordinationv1.LeaseSpec{
			HolderIdentity: &k.spec.Name, LeaseDurationSeconds: &duration, RenewTime: &now,
		},
	}, metav1.CreateOptions{})

	return err
}
