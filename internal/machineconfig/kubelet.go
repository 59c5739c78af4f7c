// SPDX-License-Identifier: Apache-2.0
// Copyright the talos-proxmox authors.

package machineconfig

import (
	"errors"
	"maps"
	"slices"
	"strings"

	"github.com/siderolabs/talos/pkg/machinery/config/types/meta"
	"github.com/siderolabs/talos/pkg/machinery/config/types/v1alpha1"

	"github.com/talos-proxmox/talos-proxmox/internal/check"
	"github.com/talos-proxmox/talos-proxmox/spec"
)

// defaultMountOptions are those that storage drivers need: mounts made below are seen on both sides.
var defaultMountOptions = []string{"bind", "rshared", "rw"}

// addKubelet says what the cluster and the node's disks want of the kubelet.
func (r *builder) addKubelet() error {
	kubelet := r.machine.MachineKubelet
	settings := spec.Value(r.cfg.Kubernetes.Kubelet)
	flags := maps.Clone(settings.ExtraArgs)
	if spec.Value(settings.RotateServerCertificates) {
		flags = with(flags, "rotate-server-certificates", "true")
	}
	kubelet.KubeletExtraArgs = args(flags)
	kubelet.KubeletClusterDNS = settings.ClusterDNS
	if len(settings.NodeIPSubnets) > 0 {
		kubelet.KubeletNodeIP = &v1alpha1.KubeletNodeIPConfig{KubeletNodeIPValidSubnets: settings.NodeIPSubnets}
	}
	if settings.ExtraConfig != nil {
		object, err := objectOf(*settings.ExtraConfig)
		if err != nil {
			return check.At("kubernetes.kubelet.extraConfig", err)
		}
		kubelet.KubeletExtraConfig = meta.Unstructured{Object: object}
	}
	r.addKubeletMounts(settings.ExtraMounts)

	return nil
}

// addKubeletMounts shows host paths to the kubelet: those asked for, and every disk that is mounted
// outside the place that the kubelet sees anyway.
func (r *builder) addKubeletMounts(wanted map[string][]string) {
	mounts := map[string][]string{}
	for _, d := range r.node.DataDisks() {
		if path := spec.Value(d.Mountpoint); path != "" && userVolumeName(path) == "" {
			mounts[path] = defaultMountOptions
		}
	}
	for path, options := range wanted {
		if len(options) == 0 {
			options = defaultMountOptions
		}
		mounts[path] = options
	}
	for _, path := range sortedKeys(mounts) {
		r.machine.MachineKubelet.KubeletExtraMounts = append(r.machine.MachineKubelet.KubeletExtraMounts, v1alpha1.ExtraMount{
			Destination: path, Type: "bind", Source: path, Options: slices.Clone(mounts[path]),
		})
	}
}

// addNodeMeta writes labels, annotations and taints. A worker's kubelet may not change its taints
// later, so that there they are given to the kubelet, which registers with them.
func (r *builder) addNodeMeta() error {
	labels := maps.Clone(r.node.Labels)
	if zone := spec.Value(r.node.Zone); zone != "" {
		if _, said := labels[zoneLabel]; !said {
			labels = with(labels, zoneLabel, zone)
		}
	}
	if r.node.IsControlPlane() && len(r.cfg.Workers()) == 0 && r.cfg.SchedulingOnControlPlanes() {
		// Where control planes are all there is, load balancers have nowhere else to go.
		delete(r.machine.MachineNodeLabels, excludeLabel)
	}
	r.machine.MachineNodeLabels = merge(r.machine.MachineNodeLabels, labels)
	r.machine.MachineNodeAnnotations = maps.Clone(r.node.Annotations)
	for key, taint := range r.node.Taints {
		if err := r.addTaint(key, taint); err != nil {
			return err
		}
	}
	if !r.node.IsControlPlane() {
		r.registerTaints()
	}

	return nil
}

const (
	// zoneLabel is where Kubernetes looks for a node's failure domain.
	zoneLabel = "topology.kubernetes.io/zone"
	// excludeLabel keeps load balancers from sending traffic to a node; Talos gives it to control planes.
	excludeLabel = "node.kubernetes.io/exclude-from-external-load-balancers"
)

// addTaint checks the form "value:Effect" or ":Effect".
func (r *builder) addTaint(key, taint string) error {
	if _, effect, ok := strings.Cut(taint, ":"); !ok || effect == "" {
		return check.At(check.Join("nodes", r.node.Name, "taints", key),
			errors.New(`write "value:Effect" or ":Effect", with the effect NoSchedule, PreferNoSchedule or NoExecute`))
	}
	r.machine.MachineNodeTaints = with(r.machine.MachineNodeTaints, key, taint)

	return nil
}

// registerTaints moves the taints to the kubelet's own configuration.
func (r *builder) registerTaints() {
	taints := r.machine.MachineNodeTaints
	r.machine.MachineNodeTaints = nil
	if len(taints) == 0 {
		return
	}
	object := r.machine.MachineKubelet.KubeletExtraConfig.Object
	if object == nil {
		object = map[string]any{}
	}
	list, _ := object["registerWithTaints"].([]any)
	for _, key := range sortedKeys(taints) {
		value, effect, _ := strings.Cut(taints[key], ":")
		taint := map[string]any{"key": key, "effect": effect}
		if value != "" {
			taint["value"] = value
		}
		list = append(list, taint)
	}
	object["registerWithTaints"] = list
	r.machine.MachineKubelet.KubeletExtraConfig.Object = object
}

// with sets a key in a map that may be nil.
func with(m map[string]string, key, value string) map[string]string {
	if m == nil {
		m = map[string]string{}
	}
	m[key] = value

	return m
}

// merge lays over onto base; nil when both are empty.
func merge(base, over map[string]string) map[string]string {
	for key, value := range over {
		base = with(base, key, value)
	}

	return base
}
