// SPDX-License-Identifier: Apache-2.0
// Copyright the talos-proxmox authors.

package node

import (
	"bytes"
	"context"
	"maps"
	"net/netip"
	"reflect"
	"slices"
	"strconv"
	"strings"

	"github.com/cosi-project/runtime/pkg/resource"
	"github.com/cosi-project/runtime/pkg/state"
	"github.com/siderolabs/crypto/x509"
	talosconfig "github.com/siderolabs/talos/pkg/machinery/config"
	configapi "github.com/siderolabs/talos/pkg/machinery/config/config"
	"github.com/siderolabs/talos/pkg/machinery/extensions"
	"github.com/siderolabs/talos/pkg/machinery/meta"
	"github.com/siderolabs/talos/pkg/machinery/resources/block"
	"github.com/siderolabs/talos/pkg/machinery/resources/cluster"
	"github.com/siderolabs/talos/pkg/machinery/resources/config"
	"github.com/siderolabs/talos/pkg/machinery/resources/etcd"
	"github.com/siderolabs/talos/pkg/machinery/resources/k8s"
	"github.com/siderolabs/talos/pkg/machinery/resources/network"
	"github.com/siderolabs/talos/pkg/machinery/resources/runtime"
	"github.com/siderolabs/talos/pkg/machinery/resources/secrets"
	timeresource "github.com/siderolabs/talos/pkg/machinery/resources/time"
	"github.com/siderolabs/talos/pkg/machinery/resources/v1alpha1"
	"go.yaml.in/yaml/v3"

	"github.com/talos-proxmox/talos-proxmox/lab/fault"
	"github.com/talos-proxmox/talos-proxmox/lab/talos/disks"
	"github.com/talos-proxmox/talos-proxmox/lab/talos/events"
	"github.com/talos-proxmox/talos-proxmox/lab/talos/machineconfig"
)

// EphemeralOverhead is what the other partitions of the system disk take.
const EphemeralOverhead = 2104<<20 + 100<<20 + 1<<20 + 10<<20

// PublishState brings the node's resources in line with what it does.
func (n *Node) PublishState() {
	n.mu.Lock()
	st := n.state
	n.mu.Unlock()
	if st == nil {
		return
	}
	n.pubMu.Lock()
	defer n.pubMu.Unlock()

	ctx := context.Background()
	want := slices.Concat(n.machineResources(), n.diskResources(), n.userVolumes(), n.networkResources(), n.addressResources(),
		n.clusterResources())
	keep := map[string]bool{}
	for _, r := range want {
		keep[r.Metadata().Type()+"/"+r.Metadata().ID()] = true
		if err := put(ctx, st, r); err != nil && !state.IsConflictError(err) {
			n.Console("publishing a resource", "error", err)
		}
	}
	for _, md := range []resource.Metadata{
		*cluster.NewMember(cluster.NamespaceName, "").Metadata(),
		*secrets.NewCertSAN(secrets.NamespaceName, "").Metadata(),
		*etcd.NewMember(etcd.NamespaceName, "").Metadata(),
		*block.NewVolumeStatus(runtime.NamespaceName, "").Metadata(),
		*block.NewSystemDisk(runtime.NamespaceName, "").Metadata(),
		*runtime.NewMetaKey(runtime.NamespaceName, "").Metadata(),
		*k8s.NewStaticPod(k8s.NamespaceName, "").Metadata(),
		*k8s.NewStaticPodStatus(k8s.NamespaceName, "").Metadata(),
		*k8s.NewManifest(k8s.ControlPlaneNamespaceName, "").Metadata(),
		*runtime.NewDiagnostic(runtime.NamespaceName, "").Metadata(),
		*v1alpha1.NewService("").Metadata(),
		*network.NewAddressStatus(network.NamespaceName, "").Metadata(),
	} {
		list, err := st.List(ctx, md)
		if err != nil {
			continue
		}
		for _, r := range list.Items {
			if !keep[md.Type()+"/"+r.Metadata().ID()] {
				_ = st.Destroy(ctx, r.Metadata(), state.WithDestroyOwner(r.Metadata().Owner())) // gone already is fine
			}
		}
	}
}

func (n *Node) machineResources() []resource.Resource {
	stage, problem := n.stageNow()
	status := runtime.NewMachineStatus()
	status.TypedSpec().Stage = machineStage(stage)
	unmet := n.unmetConditions(stage)
	if problem != nil {
		unmet = append(unmet, runtime.UnmetCondition{Name: "sequence", Reason: problem.Error()})
	}
	status.TypedSpec().Status = runtime.MachineStatusStatus{Ready: len(unmet) == 0, UnmetConditions: unmet}

	n.tellStatus(stage, unmet)

	version := runtime.NewVersion()
	version.TypedSpec().Version = n.Image.Talos

	platform := runtime.NewPlatformMetadataSpec(runtime.NamespaceName, runtime.PlatformMetadataID)
	platform.TypedSpec().Platform = n.Image.Platform
	if n.VM.CloudInit != nil && n.Image.Platform == machineconfig.PlatformNocloud {
		platform.TypedSpec().Hostname = n.VM.CloudInit.Hostname
	}
	platform.TypedSpec().InstanceID = n.VM.UUID
	security := runtime.NewSecurityStateSpec(runtime.NamespaceName)
	security.TypedSpec().SecureBoot = n.Image.SecureBoot
	clock := timeresource.NewStatus()
	_, skewed := n.holds(fault.ClockSkew)
	clock.TypedSpec().Synced = !skewed
	if cfg := n.Config(); cfg != nil && cfg.NetworkTimeSyncConfig() != nil {
		clock.TypedSpec().SyncDisabled = cfg.NetworkTimeSyncConfig().Disabled()
	}
	kind := config.NewMachineType()

	out := []resource.Resource{status, version, platform, security, clock, kind}
	for _, s := range n.Services.List() {
		if s.GetState() != events.StateRunning {
			continue
		}
		r := v1alpha1.NewService(s.GetId())
		r.TypedSpec().Running, r.TypedSpec().Healthy, r.TypedSpec().Unknown = true, s.GetHealth().GetHealthy(), s.GetHealth().GetUnknown()
		out = append(out, r)
	}
	for i, e := range n.extensionLayers() {
		r := runtime.NewExtensionStatus(runtime.NamespaceName, strconv.Itoa(i))
		*r.TypedSpec() = e
		out = append(out, r)
	}
	if err := n.Book.Problem(); err != nil {
		d := runtime.NewDiagnostic(runtime.NamespaceName, "address-overlap")
		d.TypedSpec().Message = "host and Kubernetes pod/service CIDR addresses overlap"
		d.TypedSpec().Details = []string{err.Error()}
		out = append(out, d)
	}

	if cfg := n.Config(); cfg != nil {
		out = append(out, config.NewMachineConfig(cfg))
		if p := n.persistedConfig(); p != nil && n.appliedThisBoot() {
			out = append(out, config.NewMachineConfigWithID(p, config.PersistentID))
		}
		if cfg.Machine() != nil {
			kind.SetMachineType(cfg.Machine().Type())
			out = append(append(out, osRoot(cfg.Machine().Security())), n.apiSANs()...)
		}
	}

	return out
}

// osRoot returns what a configuration says of the authority of the Talos API.
func osRoot(sec configapi.Security) resource.Resource {
	root := secrets.NewOSRoot(secrets.OSRootID)
	root.TypedSpec().AcceptedCAs, root.TypedSpec().Token = sec.AcceptedCAs(), sec.Token()
	if ca := sec.IssuingCA(); ca != nil {
		root.TypedSpec().AcceptedCAs = append(slices.Clip(sec.AcceptedCAs()), &x509.PEMEncodedCertificate{Crt: ca.Crt})
		if len(ca.Key) > 0 { // a worker's configuration has the certificate alone
			root.TypedSpec().IssuingCA = ca
		}
	}

	return root
}

// extensionLayers returns the image's extensions; the schematic's id is one of them, as the factory
// makes it.
func (n *Node) extensionLayers() []runtime.ExtensionStatusSpec {
	var out []runtime.ExtensionStatusSpec
	for _, e := range n.Image.Extensions {
		name := e[strings.LastIndex(e, "/")+1:]
		out = append(out, extensions.Layer{
			Image:    name + ".sqsh",
			Metadata: extensions.Metadata{Name: name, Version: strings.TrimPrefix(n.Image.Talos, "v"), Author: "Sidero Labs"},
		})
	}
	if n.Image.Schematic != "" {
		out = append(out, extensions.Layer{Metadata: extensions.Metadata{
			Name: "schematic", Version: n.Image.Schematic, Author: "Image Factory",
			Description: "Virtual extension which specifies the schematic of the image built with Image Factory.",
		}})
	}

	return out
}

func (n *Node) diskResources() []resource.Resource {
	var out []resource.Resource
	for _, d := range disks.List(n.VM) {
		r := block.NewDisk(block.NamespaceName, d.ID())
		s := r.TypedSpec()
		s.DevPath, s.Model, s.Serial, s.Transport = d.Path(), d.Spec.GetModel(), d.Spec.GetSerial(), d.Spec.GetTransport()
		s.IOSize, s.SectorSize, s.Symlinks = uint(d.Spec.GetIoSize()), uint(d.Spec.GetSectorSize()), d.Spec.GetSymlinks()
		s.Readonly, s.CDROM, s.Rotational = d.Spec.GetReadonly(), d.Spec.GetCdrom(), d.Spec.GetRotational()
		s.Modalias, s.WWID = d.Spec.GetModalias(), d.Spec.GetWwid()
		s.BusPath, s.SubSystem = d.Spec.GetBusPath(), d.Spec.GetSubSystem()
		s.SetSize(d.Spec.GetSize())
		out = append(out, r)

		if d.Disk == nil || n.Disk == nil || n.Disk.Disk != d.Disk {
			continue
		}
		system := block.NewSystemDisk(block.NamespaceName, block.SystemDiskID)
		system.TypedSpec().DevPath, system.TypedSpec().DiskID = d.Path(), d.ID()
		out = append(out, system)
		out = append(append(out, n.volumes(d.Path(), d.Disk.Size)...), n.metaKeys()...)
	}
	if n.Disk == nil {
		for _, label := range []string{"META", "STATE"} {
			v := block.NewVolumeStatus(block.NamespaceName, label)
			v.TypedSpec().Phase, v.TypedSpec().Type = block.VolumePhaseMissing, block.VolumeTypePartition
			if label == "STATE" {
				v.TypedSpec().MountSpec = block.MountSpec{
					TargetPath: "/system/state", SelinuxLabel: "system_u:object_r:system_state_t:s0", FileMode: 0o700,
				}
			}
			out = append(out, v)
		}
	}

	return out
}

// metaKeys returns what META holds; how STATE is encrypted is among it from the first configuration on.
func (n *Node) metaKeys() []resource.Resource {
	values := maps.Clone(n.Disk.Read().Meta)
	if n.Config() != nil {
		if values == nil {
			values = map[uint8]string{}
		}
		if _, ok := values[meta.StateEncryptionConfig]; !ok {
			values[meta.StateEncryptionConfig] = "null"
		}
	}
	var out []resource.Resource
	for key, value := range values {
		r := runtime.NewMetaKey(runtime.NamespaceName, runtime.MetaKeyTagToID(key))
		r.TypedSpec().Value = value
		out = append(out, r)
	}

	return out
}

// volumes returns the volumes of a system disk; but for META they come with a configuration.
func (n *Node) volumes(path string, size int64) []resource.Resource {
	var out []resource.Resource
	sizes := map[string]int64{"META": 1 << 20, "STATE": 100 << 20, "EPHEMERAL": size - EphemeralOverhead}
	for i, label := range []string{"META", "STATE", "EPHEMERAL"} {
		if label != "META" && n.Config() == nil {
			continue
		}
		v := block.NewVolumeStatus(block.NamespaceName, label)
		s := v.TypedSpec()
		s.Phase, s.Type = block.VolumePhaseReady, block.VolumeTypePartition
		s.Location, s.ParentLocation = path+string(rune('2'+i)), path // the first is EFI's, which is no volume
		s.PartitionIndex = i + 2
		s.SetSize(uint64(max(sizes[label], 0)))
		out = append(out, v)
	}
	if n.Config() == nil {
		return out
	}
	for id, spec := range disks.Directories() {
		v := block.NewVolumeStatus(block.NamespaceName, id)
		*v.TypedSpec() = spec
		out = append(out, v)
	}

	return out
}

func (n *Node) networkResources() []resource.Resource {
	host := network.NewHostnameStatus(network.NamespaceName, network.HostnameID)
	host.TypedSpec().Hostname = n.Hostname()

	addrs := n.Book.Addresses()
	out := []resource.Resource{host}
	for _, id := range []string{
		network.NodeAddressDefaultID, network.NodeAddressCurrentID, network.NodeAddressRoutedID,
		network.NodeAddressAccumulativeID,
	} {
		r := network.NewNodeAddress(network.NamespaceName, id)
		r.TypedSpec().Addresses = slices.Clone(addrs)
		if id == network.NodeAddressDefaultID && len(addrs) > 1 {
			r.TypedSpec().Addresses = slices.Clone(addrs[:1])
		}
		out = append(out, r)
	}
	if cfg := n.Config(); cfg != nil && cfg.Cluster() != nil {
		for _, id := range []string{
			network.NodeAddressCurrentID, network.NodeAddressRoutedID, network.NodeAddressAccumulativeID,
		} {
			without := network.NewNodeAddress(network.NamespaceName, network.FilteredNodeAddressID(id, k8s.NodeAddressFilterNoK8s))
			without.TypedSpec().Addresses = slices.Clone(addrs)
			only := network.NewNodeAddress(network.NamespaceName, network.FilteredNodeAddressID(id, k8s.NodeAddressFilterOnlyK8s))
			only.TypedSpec().Addresses = []netip.Prefix{}
			out = append(out, without, only)
		}
	}
	status := network.NewStatus(network.NamespaceName, network.StatusID)
	status.TypedSpec().AddressReady = len(addrs) > 0
	status.TypedSpec().ConnectivityReady = len(addrs) > 0
	status.TypedSpec().HostnameReady, status.TypedSpec().EtcFilesReady = true, true

	return append(out, status)
}

func (n *Node) clusterResources() []resource.Resource {
	cfg := n.Config()
	if cfg == nil || cfg.Cluster() == nil {
		return nil
	}

	var out []resource.Resource
	info := cluster.NewInfo()
	info.TypedSpec().ClusterID, info.TypedSpec().ClusterName = machineconfig.ClusterID(cfg), machineconfig.ClusterName(cfg)
	name := k8s.NewNodename(k8s.NamespaceName, k8s.NodenameID)
	name.TypedSpec().Nodename, name.TypedSpec().HostnameVersion = n.Hostname(), "1"
	identity := cluster.NewIdentity(cluster.NamespaceName, cluster.LocalIdentity)
	identity.TypedSpec().NodeID = n.Disk.Read().NodeID
	ip := k8s.NewNodeIP(k8s.NamespaceName, k8s.KubeletID)
	ip.TypedSpec().Addresses = n.kubeletAddresses()
	out = append(out, info, name, identity, ip)
	if s := n.nodeStatus(); s != nil {
		out = append(out, s)
	}

	kubelet := k8s.NewKubeletSpec(k8s.NamespaceName, k8s.KubeletID)
	kubelet.TypedSpec().Image = machineconfig.KubeletImage(cfg)
	kubelet.TypedSpec().ExpectedNodename = n.Hostname()
	kubelet.TypedSpec().Config = machineconfig.KubeletConfiguration(cfg)
	kubelet.TypedSpec().Args = machineconfig.KubeletArgs(cfg, n.Hostname(), ip.TypedSpec().Addresses)
	out = append(out, kubelet)

	out = append(out, n.memberResources()...)

	return append(out, n.controlPlaneResources()...)
}

// persistedConfig returns the configuration on the disk; it is parsed again only when it changed.
func (n *Node) persistedConfig() talosconfig.Provider {
	if n.Disk == nil {
		return nil
	}
	data := n.Disk.Read().Config
	n.mu.Lock()
	defer n.mu.Unlock()

	if n.persisted == nil || !bytes.Equal(data, n.persistedData) {
		cfg, err := machineconfig.Load(data, n.Image.Talos)
		if err != nil {
			return nil
		}
		n.persisted, n.persistedData = cfg, data
	}

	return n.persisted
}

func equalSpec(a, b resource.Resource) bool {
	if x, ok := a.(*config.MachineConfig); ok {
		y, ok := b.(*config.MachineConfig)

		return ok && x.Provider() == y.Provider()
	}
	if reflect.DeepEqual(a.Spec(), b.Spec()) {
		return true
	}
	x, errX := yaml.Marshal(a.Spec()) // which has no and empty lists alike
	y, errY := yaml.Marshal(b.Spec())

	return errX == nil && errY == nil && bytes.Equal(x, y)
}
