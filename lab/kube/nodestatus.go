// SPDX-License-Identifier: Apache-2.0
// Copyright the talos-proxmox authors.

package kube

import (
	"cmp"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"maps"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
)

const (
	// arch is what the lab's images are made for.
	arch = "amd64"

	// attachDetach says that a controller attaches volumes, and not the kubelet.
	attachDetach = "volumes.kubernetes.io/controller-managed-attach-detach"

	noNetworkMessage = "container runtime network not ready: NetworkReady=false " +
		"reason:NetworkPluginNotReady message:Network plugin returns error: cni plugin not initialized"
)

func everything() labels.Selector { return labels.Everything() }

// awaitRegistration registers the Node, however long the API server takes to answer.
func (k *kubelet) awaitRegistration(ctx context.Context) error {
	var refused error

	err := poll(ctx, 200*time.Millisecond, func(ctx context.Context) bool {
		err := k.register(ctx)
		if apierrors.IsInvalid(err) || apierrors.IsBadRequest(err) {
			refused = err
		}

		return err == nil || refused != nil
	})

	return errors.Join(err, refused)
}

// register creates the Node or finds it, and gives it what the spec says.
func (k *kubelet) register(ctx context.Context) error {
	nodes := k.client.CoreV1().Nodes()

	created := false
	node, err := nodes.Get(ctx, k.spec.Name, metav1.GetOptions{})
	if apierrors.IsNotFound(err) {
		if err := k.requestCertificate(ctx); err != nil {
			return err
		}
		fresh := &corev1.Node{ObjectMeta: metav1.ObjectMeta{
			Name: k.spec.Name, Labels: k.ownLabels(), Annotations: map[string]string{attachDetach: "true"},
		}}
		fresh.Spec.Taints = k.spec.Taints
		created = true
		k.fillStatus(&fresh.Status)
		node, err = nodes.Create(ctx, fresh, metav1.CreateOptions{})
	}
	if err != nil {
		return err
	}
	if !k.found { // later attempts find what the first has written
		k.found = true
		k.resumed = !created && node.Status.NodeInfo.BootID == k.bootID
		k.mu.Lock()
		k.network = k.network || k.resumed && isReady(node) // its CNI is still set up
		k.mu.Unlock()
	}

	if err := k.applySpec(ctx, node.Name); err != nil {
		return err
	}

	return k.updateStatus(ctx)
}

// ownLabels returns those that a kubelet gives its node.
func (k *kubelet) ownLabels() map[string]string {
	return map[string]string{
		corev1.LabelHostname:      k.spec.Name,
		corev1.LabelOSStable:      "linux",
		corev1.LabelArchStable:    arch,
		"beta.kubernetes.io/os":   "linux",
		"beta.kubernetes.io/arch": arch,
	}
}

func isReady(node *corev1.Node) bool {
	for _, condition := range node.Status.Conditions {
		if condition.Type == corev1.NodeReady {
			return condition.Status == corev1.ConditionTrue
		}
	}

	return false
}

// keepStatus reports the node's status when it changes, and now and then.
func (k *kubelet) keepStatus(ctx context.Context) {
	tick := time.NewTicker(k.pace.heartbeat)
	defer tick.Stop()

	for {
		if err := k.updateStatus(ctx); err != nil && !apierrors.IsNotFound(err) {
			k.wakeAfter(ctx, time.Second)
		}

		select {
		case <-ctx.Done():
			return
		case <-tick.C:
		case <-k.nudge:
		}
	}
}

func (k *kubelet) wakeAfter(ctx context.Context, d time.Duration) {
	select {
	case <-ctx.Done():
	case <-time.After(d):
		k.wake()
	}
}

// updateStatus writes the node's status if it says something new, and learns the pod networks. As a kubelet does, it is
// content with the Node that the API server has in its cache.
func (k *kubelet) updateStatus(ctx context.Context) error {
	node, err := k.client.CoreV1().Nodes().Get(ctx, k.spec.Name, metav1.GetOptions{ResourceVersion: "0"})
	if err != nil {
		return err
	}

	k.mu.Lock()
	k.podCIDRs = node.Spec.PodCIDRs
	k.mu.Unlock()

	before := node.Status.DeepCopy()
	k.fillStatus(&node.Status)
	if equality.Semantic.DeepEqual(*before, node.Status) {
		return nil
	}
	_, err = k.client.CoreV1().Nodes().UpdateStatus(ctx, node, metav1.UpdateOptions{})

	return err
}

func (k *kubelet) fillStatus(s *corev1.NodeStatus) {
	s.Capacity = k.capacity()
	s.Allocatable = k.allocatable()
	s.Addresses = nil
	for _, addr := range k.spec.Addresses {
		s.Addresses = append(s.Addresses, corev1.NodeAddress{Type: corev1.NodeInternalIP, Address: addr.String()})
	}
	s.Addresses = append(s.Addresses, corev1.NodeAddress{Type: corev1.NodeHostName, Address: k.spec.Name})
	s.DaemonEndpoints.KubeletEndpoint.Port = 10250

	machine := sha256.Sum256([]byte(k.spec.Name))
	s.NodeInfo = corev1.NodeSystemInfo{
		MachineID:               hex.EncodeToString(machine[:16]),
		SystemUUID:              s.NodeInfo.SystemUUID,
		BootID:                  k.bootID,
		KernelVersion:           k.spec.KernelVersion,
		OSImage:                 k.spec.OSImage,
		ContainerRuntimeVersion: k.spec.ContainerRuntime,
		KubeletVersion:          k.spec.KubeletVersion,
		OperatingSystem:         "linux",
		Architecture:            arch,
	}
	if s.NodeInfo.SystemUUID == "" {
		s.NodeInfo.SystemUUID = k.bootID
	}
	yes := true
	features := &corev1.NodeRuntimeHandlerFeatures{RecursiveReadOnlyMounts: &yes, UserNamespaces: &yes}
	s.RuntimeHandlers = []corev1.NodeRuntimeHandler{{Features: features}, {Name: "runc", Features: features}}
	s.Features = &corev1.NodeFeatures{SupplementalGroupsPolicy: &yes}
	k.fillConditions(s)
}

func (k *kubelet) fillConditions(s *corev1.NodeStatus) {
	k.condition(s, corev1.NodeMemoryPressure, corev1.ConditionFalse,
		"KubeletHasSufficientMemory", "kubelet has sufficient memory available")
	k.condition(s, corev1.NodeDiskPressure, corev1.ConditionFalse,
		"KubeletHasNoDiskPressure", "kubelet has no disk pressure")
	k.condition(s, corev1.NodePIDPressure, corev1.ConditionFalse,
		"KubeletHasSufficientPID", "kubelet has sufficient PID available")

	if k.networkReady() {
		k.condition(s, corev1.NodeReady, corev1.ConditionTrue, "KubeletReady", "kubelet is posting ready status")
	} else {
		k.condition(s, corev1.NodeReady, corev1.ConditionFalse, "KubeletNotReady", noNetworkMessage)
	}
}

// condition sets a condition; its heartbeat follows its changes only, for the lease is the heartbeat.
func (k *kubelet) condition(
	s *corev1.NodeStatus, kind corev1.NodeConditionType, status corev1.ConditionStatus, reason, message string,
) {
	now := metav1.NewTime(k.now())
	next := corev1.NodeCondition{
		Type: kind, Status: status, Reason: reason, Message: message,
		LastHeartbeatTime: now, LastTransitionTime: now,
	}

	for i, have := range s.Conditions {
		if have.Type != kind {
			continue
		}
		if have.Status == status {
			next.LastTransitionTime = have.LastTransitionTime
		}
		if have.Status == status && have.Reason == reason && have.Message == message {
			next.LastHeartbeatTime = have.LastHeartbeatTime
		}
		s.Conditions[i] = next

		return
	}
	s.Conditions = append(s.Conditions, next)
}

func (k *kubelet) capacity() corev1.ResourceList {
	memory := int64(cmp.Or(k.spec.MemoryMiB, 1024)) << 20

	return corev1.ResourceList{
		corev1.ResourceCPU:                     *resource.NewQuantity(int64(max(k.spec.CPU, 1)), resource.DecimalSI),
		corev1.ResourceMemory:                  *resource.NewQuantity(memory, resource.BinarySI),
		corev1.ResourceEphemeralStorage:        resource.MustParse("30Gi"),
		corev1.ResourceHugePagesPrefix + "1Gi": resource.MustParse("0"),
		corev1.ResourceHugePagesPrefix + "2Mi": resource.MustParse("0"),
		corev1.ResourcePods:                    *resource.NewQuantity(110, resource.DecimalSI),
	}
}

// allocatable returns the capacity without what Talos reserves for the system and the kubelet keeps free.
func (k *kubelet) allocatable() corev1.ResourceList {
	list := maps.Clone(k.capacity())
	memory := "484Mi" // 384 reserved on a worker, 100 kept free
	if k.spec.ControlPlane {
		memory = "612Mi"
	}

	for name, reserved := range map[corev1.ResourceName]string{
		corev1.ResourceCPU: "50m", corev1.ResourceMemory: memory, corev1.ResourceEphemeralStorage: "3Gi",
	} {
		left := list[name]
		left.Sub(resource.MustParse(reserved))
		list[name] = left
	}

	return list
}
