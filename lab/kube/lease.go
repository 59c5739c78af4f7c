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

// renew renews the lease that it wrote last, as a kubelet does, and reads it only where it has none or another one wrote.
func (k *kubelet) renew(ctx context.Context) error {
	leases := k.client.CoordinationV1().Leases(leaseNamespace)
	now := metav1.NewMicroTime(k.now())
	var err error
	if k.lease == nil {
		k.lease, err = leases.Get(ctx, k.spec.Name, metav1.GetOptions{})
	}
	if err == nil {
		k.lease.Spec.RenewTime = &now
		k.lease, err = leases.Update(ctx, k.lease, metav1.UpdateOptions{})
	}
	if err != nil {
		k.lease = nil
	}
	if !apierrors.IsNotFound(err) {
		return err
	}

	node, err := k.client.CoreV1().Nodes().Get(ctx, k.spec.Name, metav1.GetOptions{})
	if err != nil {
		return err
	}
	duration := int32(leaseSeconds)
	k.lease, err = leases.Create(ctx, &coordinationv1.Lease{
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
	if err != nil {
		k.lease = nil
	}

	return err
}
