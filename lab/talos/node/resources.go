// SPDX-License-Identifier: Apache-2.0
// Copyright the talos-proxmox authors.

package node

import (
	"fmt"
	"net"
	"net/netip"
	"slices"

	"github.com/cosi-project/runtime/pkg/resource"
	"github.com/siderolabs/talos/pkg/machinery/config/machine"
	"github.com/siderolabs/talos/pkg/machinery/constants"
	"github.com/siderolabs/talos/pkg/machinery/nethelpers"
	"github.com/siderolabs/talos/pkg/machinery/resources/cluster"
	"github.com/siderolabs/talos/pkg/machinery/resources/etcd"
	"github.com/siderolabs/talos/pkg/machinery/resources/k8s"
	"github.com/siderolabs/talos/pkg/machinery/resources/network"
	"github.com/siderolabs/talos/pkg/machinery/resources/runtime"
	"github.com/siderolabs/talos/pkg/machinery/resources/secrets"

	"github.com/talos-proxmox/talos-proxmox/lab/talos/controlplane"
	"github.com/talos-proxmox/talos-proxmox/lab/talos/machineconfig"
)

// controlPlaneResources returns what only control planes have.
func (n *Node) controlPlaneResources() []resource.Resource {
	cfg := n.Config()
	if !machineconfig.IsControlPlane(cfg) {
		return nil
	}

	var out []resource.Resource
	if g, id := n.Group(); g != nil {
		m := etcd.NewMember(etcd.NamespaceName, etcd.LocalMemberID)
		m.TypedSpec().MemberID = etcd.FormatMemberID(id)
		out = append(out, m)
	}

	api := k8s.NewAPIServerConfig(k8s.APIServerConfigID)
	api.TypedSpec().Image = cfg.K8sAPIServerConfig().Image()
	api.TypedSpec().ControlPlaneEndpoint = machineconfig.Endpoint(cfg).String()
	api.TypedSpec().LocalPort = cfg.K8sAPIServerConfig().APIPort()
	manager := k8s.NewControllerManagerConfig(k8s.ControllerManagerConfigID)
	manager.TypedSpec().Enabled, manager.TypedSpec().Image = true, cfg.K8sControllerManagerConfig().Image()
	scheduler := k8s.NewSchedulerConfig(k8s.SchedulerConfigID)
	scheduler.TypedSpec().Enabled, scheduler.TypedSpec().Image = true, cfg.K8sSchedulerConfig().Image()
	out = append(out, api, manager, scheduler, n.kubernetesSANs())
	manifests, err := controlplane.BootstrapObjects(cfg)
	if err != nil {
		n.Console("rendering the bootstrap manifests", "error", err)
	}
	for id, objects := range manifests {
		m := k8s.NewManifest(k8s.ControlPlaneNamespaceName, id)
		for _, o := range objects {
			m.TypedSpec().Items = append(m.TypedSpec().Items, k8s.SingleManifest{Object: o.Object})
		}
		out = append(out, m)
	}

	for _, pod := range controlplane.StaticPods(cfg) {
		r := k8s.NewStaticPod(k8s.NamespaceName, pod.Name)
		if r.TypedSpec().Pod, err = pod.Resource(); err != nil {
			n.Console("rendering the control plane's pods", "error", err)

			continue
		}
		out = append(out, r)
	}

	if !n.isServing() {
		return out
	}
	for _, name := range []string{"kube-apiserver", "kube-controller-manager", "kube-scheduler"} {
		p := k8s.NewStaticPodStatus(k8s.NamespaceName, fmt.Sprintf("kube-system/%s-%s", name, n.Hostname()))
		p.TypedSpec().PodStatus = map[string]any{
			"phase":      "Running",
			"conditions": []any{map[string]any{"type": "Ready", "status": "True"}},
		}
		out = append(out, p)
	}

	return out
}

// peers returns the configured nodes of the same cluster, this one among them.
func (ns *Nodes) peers(n *Node) []*Node {
	id := n.ClusterID()
	var out []*Node
	for _, p := range ns.all() {
		if p.VM.Net == n.VM.Net && id != "" && p.ClusterID() == id && len(p.Book.Addresses()) > 0 {
			out = append(out, p)
		}
	}

	return out
}

// machineStage returns a stage as MachineStatus has it.
func machineStage(stage string) runtime.MachineStage {
	for s := runtime.MachineStageUnknown; s <= runtime.MachineStageUpgrading; s++ {
		if s.String() == stage {
			return s
		}
	}

	return runtime.MachineStageUnknown
}

// apiSANs returns the names in the certificates of the Talos API, of now and of maintenance mode.
func (n *Node) apiSANs() []resource.Resource {
	sec := n.Config().Machine().Security()
	api := secrets.NewCertSAN(secrets.NamespaceName, secrets.CertSANAPIID)
	api.TypedSpec().Append(sec.CertSANs()...)
	api.TypedSpec().AppendDNSNames(n.Hostname())
	api.TypedSpec().FQDN = n.Hostname()
	maintenance := secrets.NewCertSAN(secrets.NamespaceName, secrets.CertSANMaintenanceID)
	maintenance.TypedSpec().AppendIPs(netip.MustParseAddr("127.0.0.1"), netip.IPv6Loopback())
	maintenance.TypedSpec().AppendDNSNames(n.Hostname())
	maintenance.TypedSpec().FQDN = constants.MaintenanceServiceCommonName
	for _, p := range n.Book.Addresses() {
		api.TypedSpec().AppendIPs(p.Addr())
		maintenance.TypedSpec().AppendIPs(p.Addr())
	}
	api.TypedSpec().Sort()
	maintenance.TypedSpec().Sort()
	if !n.appliedThisBoot() { // a boot from the disk never was in maintenance mode
		return []resource.Resource{api}
	}

	return []resource.Resource{api, maintenance}
}

// kubernetesSANs returns the names in the certificate of the API server.
func (n *Node) kubernetesSANs() resource.Resource {
	cfg := n.Config()
	sans := secrets.NewCertSAN(secrets.NamespaceName, secrets.CertSANKubernetesID)
	s := sans.TypedSpec()
	s.Append(machineconfig.Endpoint(cfg).Hostname(), n.Hostname())
	s.Append(cfg.K8sAPIServerConfig().CertSANs()...)
	s.AppendDNSNames("kubernetes", "kubernetes.default", "kubernetes.default.svc",
		"kubernetes.default.svc."+cfg.K8sNetworkConfig().DNSDomain(), "localhost")
	for _, services := range cfg.K8sNetworkConfig().ServiceCIDRs() {
		s.AppendIPs(services.Addr().Next())
	}
	for _, p := range n.Book.Addresses() {
		s.AppendIPs(p.Addr())
	}
	s.AppendIPs(netip.MustParseAddr("127.0.0.1"))
	s.Sort()

	return sans
}

// addressResources returns the links and the addresses on them: the node's own are all on its first card.
func (n *Node) addressResources() []resource.Resource {
	loopback := network.NewLinkStatus(network.NamespaceName, "lo")
	*loopback.TypedSpec() = network.LinkStatusSpec{
		Index: 1, Type: nethelpers.LinkLoopbck, MTU: 65536, QueueDisc: "noqueue", LinkState: true,
		Flags:        nethelpers.LinkFlags(nethelpers.LinkUp | nethelpers.LinkLoopback | nethelpers.LinkRunning | nethelpers.LinkLowerUp),
		HardwareAddr: make([]byte, 6), BroadcastAddr: make([]byte, 6),
		OperationalState: nethelpers.OperStateUnknown, Port: nethelpers.Other, Duplex: nethelpers.Unknown,
	}
	out := []resource.Resource{
		loopback,
		address("lo", 1, netip.MustParsePrefix("127.0.0.1/8"), nethelpers.ScopeHost),
		address("lo", 1, netip.MustParsePrefix("::1/128"), nethelpers.ScopeHost),
	}
	if cfg := n.Config(); cfg != nil && cfg.NetworkHostDNSConfig() != nil && cfg.NetworkHostDNSConfig().ForwardKubeDNSToHost() {
		out = append(out, address("lo", 1, netip.MustParsePrefix(constants.HostDNSAddress+"/32"), nethelpers.ScopeHost))
	}
	for i, l := range n.links {
		index := uint32(i + 2) // a VM has 32 cards at most
		mac, err := net.ParseMAC(l.MAC)
		if err != nil {
			continue
		}
		r := network.NewLinkStatus(network.NamespaceName, l.Name)
		*r.TypedSpec() = network.LinkStatusSpec{
			Index: index, Type: nethelpers.LinkEther, MTU: 1500, QueueDisc: "fq_codel", LinkState: true, Driver: "virtio_net",
			DriverVersion: "1.0.0", Product: "Virtio network device", Vendor: "Red Hat, Inc.",
			Flags: nethelpers.LinkFlags(nethelpers.LinkUp | nethelpers.LinkBroadcast | nethelpers.LinkRunning |
				nethelpers.LinkMulticast | nethelpers.LinkLowerUp),
			HardwareAddr: nethelpers.HardwareAddr(mac), PermanentAddr: nethelpers.HardwareAddr(mac),
			BroadcastAddr:    nethelpers.HardwareAddr{0xff, 0xff, 0xff, 0xff, 0xff, 0xff},
			OperationalState: nethelpers.OperStateUp, Port: nethelpers.Other, Duplex: nethelpers.Unknown,
		}
		out = append(out, r, address(l.Name, index, linkLocal(mac), nethelpers.ScopeLink))
		if i == 0 {
			for _, p := range n.Book.Addresses() {
				out = append(out, address(l.Name, index, p, nethelpers.ScopeGlobal))
			}
		}
	}

	return out
}

func address(link string, index uint32, p netip.Prefix, scope nethelpers.Scope) *network.AddressStatus {
	r := network.NewAddressStatus(network.NamespaceName, network.AddressID(link, p))
	*r.TypedSpec() = network.AddressStatusSpec{
		Address: p, LinkIndex: index, LinkName: link, Family: nethelpers.FamilyInet4, Scope: scope,
		Flags: nethelpers.AddressFlags(nethelpers.AddressPermanent),
	}
	if p.Addr().Is6() {
		r.TypedSpec().Family = nethelpers.FamilyInet6
	}

	return r
}

// linkLocal returns the link-local address that the kernel makes of a hardware address.
func linkLocal(mac net.HardwareAddr) netip.Prefix {
	a := [16]byte{0: 0xfe, 1: 0x80, 8: mac[0] ^ 2, 9: mac[1], 10: mac[2], 11: 0xff, 12: 0xfe, 13: mac[3], 14: mac[4], 15: mac[5]}

	return netip.PrefixFrom(netip.AddrFrom16(a), 64)
}

// publishMembers publishes the members of the cluster, now and from now on in this boot. Nobody has asked for them before:
// each node has a resource for each member, which of a thousand nodes would be a million.
func (n *Node) publishMembers() {
	n.mu.Lock()
	already := n.membersAsked
	n.membersAsked = true
	n.mu.Unlock()
	if !already {
		n.PublishState()
	}
}

// memberResources returns the members of the node's cluster; none while nobody has asked for them.
func (n *Node) memberResources() []resource.Resource {
	n.mu.Lock()
	wanted := n.membersAsked
	n.mu.Unlock()
	if !wanted {
		return nil
	}
	var out []resource.Resource
	for _, peer := range n.Nodes.peers(n) {
		m := cluster.NewMember(cluster.NamespaceName, peer.Hostname())
		s := m.TypedSpec()
		s.NodeID = peer.Disk.Read().NodeID
		s.Hostname, s.OperatingSystem = peer.Hostname(), "Talos ("+peer.Image.Talos+")"
		s.MachineType = machine.TypeWorker
		if machineconfig.IsControlPlane(peer.Config()) {
			s.MachineType = machine.TypeControlPlane
			s.ControlPlane = &cluster.ControlPlane{APIServerPort: 6443}
		}
		for _, p := range peer.Book.Addresses() {
			s.Addresses = append(s.Addresses, p.Addr())
		}
		slices.SortFunc(s.Addresses, netip.Addr.Compare)
		out = append(out, m)
	}

	return out
}
