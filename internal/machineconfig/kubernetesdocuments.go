// SPDX-License-Identifier: Apache-2.0
// Copyright the talos-proxmox authors.

package machineconfig

import (
	"github.com/siderolabs/talos/pkg/machinery/config/types/k8s"
	"github.com/siderolabs/talos/pkg/machinery/config/types/meta"
	"github.com/siderolabs/talos/pkg/machinery/constants"

	"github.com/talos-proxmox/talos-proxmox/internal/check"
	"github.com/talos-proxmox/talos-proxmox/spec"
)

// moveKubernetes moves what every node says about Kubernetes.
func (r *builder) moveKubernetes() error {
	doc := k8s.NewKubeClusterConfigV1Alpha1()
	doc.ClusterNameConfig = spec.Value(r.cfg.Cluster.Name)
	doc.ClusterEndpointConfig = meta.URL{URL: r.cluster.ControlPlane.Endpoint.URL}
	r.add(doc)
	r.moveNode()
	r.moveKubelet()
	if err := r.movePodNetwork(); err != nil {
		return err
	}
	r.moveAuthority()
	if prism := r.machine.MachineFeatures.KubePrismSupport; prism != nil {
		doc := k8s.NewKubePrismConfigV1Alpha1()
		doc.PortConfig = prism.ServerPort
		r.add(doc)
	}
	r.machine.MachineFeatures.KubePrismSupport = nil
	r.cluster.ClusterName, r.cluster.ControlPlane = "", nil

	return nil
}

// moveNode moves labels, annotations and taints. Talos takes the document as it is: the label and the
// taint of control planes, which it adds to the section, stand in it.
func (r *builder) moveNode() {
	doc := k8s.NewKubeNodeConfigV1Alpha1()
	doc.LabelsConfig, doc.AnnotationsConfig = r.machine.MachineNodeLabels, r.machine.MachineNodeAnnotations
	doc.TaintsConfig = r.machine.MachineNodeTaints
	if r.node.IsControlPlane() {
		doc.LabelsConfig = with(doc.LabelsConfig, constants.LabelNodeRoleControlPlane, "")
		if !r.cfg.SchedulingOnControlPlanes() {
			doc.TaintsConfig = with(doc.TaintsConfig, constants.LabelNodeRoleControlPlane, constants.TaintEffectNoSchedule)
		}
	}
	if ip := r.machine.MachineKubelet.KubeletNodeIP; ip != nil {
		doc.NodeIPConfig.NodeIPValidSubnets = ip.KubeletNodeIPValidSubnets
	}
	r.machine.MachineNodeLabels, r.machine.MachineNodeAnnotations, r.machine.MachineNodeTaints = nil, nil, nil
	r.machine.MachineKubelet.KubeletNodeIP = nil
	r.cluster.AllowSchedulingOnControlPlanes = nil
	r.add(doc)
}

// moveKubelet moves the kubelet's settings. A node whose kubelet sees further host paths keeps the
// section, which Talos still reads: the document has no place for them.
func (r *builder) moveKubelet() {
	kubelet := r.machine.MachineKubelet
	if len(kubelet.KubeletExtraMounts) > 0 {
		return
	}
	doc := k8s.NewKubeletConfigV1Alpha1()
	doc.KubeletImage = kubelet.KubeletImage
	doc.KubeletArgs = kubelet.KubeletExtraArgs
	doc.KubeletConfig = kubelet.KubeletExtraConfig
	doc.KubeletClusterDNS = kubelet.KubeletClusterDNS
	doc.KubeletDefaultRuntimeSeccompProfileEnabled = kubelet.KubeletDefaultRuntimeSeccompProfileEnabled
	r.machine.MachineKubelet = nil
	r.add(doc)
}

// movePodNetwork moves the networks of pods and services, and Talos's own pod network.
func (r *builder) movePodNetwork() error {
	doc := k8s.NewKubeNetworkConfigV1Alpha1()
	doc.NetworkDNSDomain = r.cluster.ClusterNetwork.DNSDomain
	var err error
	if doc.NetworkPodSubnets, err = prefixes(r.cluster.ClusterNetwork.PodSubnet); err != nil {
		return check.At("cluster.podSubnets", err)
	}
	if doc.NetworkServiceSubnets, err = prefixes(r.cluster.ClusterNetwork.ServiceSubnet); err != nil {
		return check.At("cluster.serviceSubnets", err)
	}
	r.add(doc)
	if r.node.IsControlPlane() && cniName(r.cfg) == constants.FlannelCNI {
		flannel := k8s.NewKubeFlannelCNIConfigV1Alpha1()
		flannel.FlannelBackendType = constants.FlannelDefaultBackend
		flannel.FlannelBackendPort = constants.FlannelDefaultBackendPort
		r.add(flannel)
	}
	r.cluster.ClusterNetwork = nil

	return nil
}

// prefixes reads networks.
func prefixes(texts []string) ([]meta.Prefix, error) {
	var found []meta.Prefix
	for _, text := range texts {
		prefix, err := spec.ParseNetwork(text)
		if err != nil {
			return nil, err
		}
		found = append(found, meta.Prefix{Prefix: prefix})
	}

	return found, nil
}

// moveAuthority moves the certificate authority of the Kubernetes API, whose key control planes have.
func (r *builder) moveAuthority() {
	doc := k8s.NewKubeAPIServerCAConfigV1Alpha1()
	ca := r.cluster.ClusterCA
	if r.node.IsControlPlane() {
		doc.APIIssuingCA = &meta.CertificateAndKey{Cert: string(ca.Crt), Key: string(ca.Key)}
	} else {
		doc.APIAcceptedCAs = []string{string(ca.Crt)}
	}
	for _, accepted := range r.cluster.ClusterAcceptedCAs {
		doc.APIAcceptedCAs = append(doc.APIAcceptedCAs, string(accepted.Crt))
	}
	r.cluster.ClusterCA, r.cluster.ClusterAcceptedCAs = nil, nil
	r.add(doc)
}
