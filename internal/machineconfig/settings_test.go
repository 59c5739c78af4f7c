// SPDX-License-Identifier: Apache-2.0
// Copyright the talos-proxmox authors.

package machineconfig_test

import (
	"fmt"
	"testing"

	"github.com/siderolabs/talos/pkg/machinery/config"
	"github.com/siderolabs/talos/pkg/machinery/config/configloader"
	"github.com/siderolabs/talos/pkg/machinery/config/types/v1alpha1"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/talos-proxmox/talos-proxmox/internal/machineconfig"
	"github.com/talos-proxmox/talos-proxmox/internal/versions"
	"github.com/talos-proxmox/talos-proxmox/spec"
)

// rendered returns a node's configuration as Talos reads it.
func rendered(t *testing.T, node string, change ...func(*spec.Config)) config.Provider {
	t.Helper()

	return renderedAs(t, "v1.12.4", node, change...)
}

// renderedAs returns a node's configuration of that Talos version.
func renderedAs(t *testing.T, talos, node string, change ...func(*spec.Config)) config.Provider {
	t.Helper()
	in := input(cluster(talos, "v1.33.0", change...))
	in.ReadFile = nodePatch(versions.Oldest)
	provider, err := configloader.NewFromBytes([]byte(render(t, in, node)))
	require.NoError(t, err)

	return provider
}

func machineOf(t *testing.T, node string, change ...func(*spec.Config)) *v1alpha1.MachineConfig {
	t.Helper()

	return rendered(t, node, change...).RawV1Alpha1().MachineConfig
}

func clusterOf(t *testing.T, node string, change ...func(*spec.Config)) *v1alpha1.ClusterConfig {
	t.Helper()

	return rendered(t, node, change...).RawV1Alpha1().ClusterConfig
}

func TestVIPIsOnControlPlanesOnly(t *testing.T) {
	t.Parallel()
	second := func(c *spec.Config) {
		for i := range c.Nodes {
			c.Nodes[i].Networks["back"] = spec.Network{Index: spec.Ptr(1), Address: spec.Ptr("10.0.0.1" + c.Nodes[i].Name[len(c.Nodes[i].Name)-1:] + "/24")}
		}
	}
	backVIP := func(c *spec.Config) { c.Cluster.VIP = spec.Ptr("10.0.0.20") }
	byName := func(c *spec.Config) { c.Cluster.VIPNetwork = spec.Ptr("back") }
	for name, c := range map[string]struct {
		change []func(*spec.Config)
		link   string
	}{
		"the network that holds it":  {[]func(*spec.Config){second}, "net0"},
		"the second network":         {[]func(*spec.Config){second, backVIP}, "net1"},
		"the network that was named": {[]func(*spec.Config){second, byName}, "net1"},
	} {
		vips := rendered(t, "cp-1", c.change...).NetworkVirtualIPConfigs()
		require.Len(t, vips, 1, name)
		assert.Equal(t, c.link, vips[0].Link(), name)
		assert.Empty(t, rendered(t, "work-1", c.change...).NetworkVirtualIPConfigs(), name)
	}
	for _, d := range renderedAs(t, "v1.11.6", "work-1").Machine().Network().Devices() {
		assert.Nil(t, d.VIPConfig())
	}
	assert.Equal(t, "192.168.62.20", renderedAs(t, "v1.11.6", "cp-1").Machine().Network().Devices()[0].VIPConfig().IP())
}

func TestDefaultRoutesOnlyWhereGiven(t *testing.T) {
	t.Parallel()
	links := rendered(t, "cp-1", everything).NetworkCommonLinkConfigs()
	require.Len(t, links, 3)
	require.Len(t, links[0].Routes(), 1)
	assert.Equal(t, "192.168.62.1", links[0].Routes()[0].Gateway().ValueOrZero().String())
	require.Len(t, links[1].Routes(), 1, "the storage network has a route, and no default one")
	assert.Equal(t, "10.9.0.0/16", links[1].Routes()[0].Destination().ValueOrZero().String())
	assert.Empty(t, links[2].Routes())

	both := func(c *spec.Config) {
		n := c.Nodes[0].Networks["lan"]
		n.Address6, n.Gateway6 = spec.Ptr("fd00::11/64"), spec.Ptr("fd00::1")
		c.Nodes[0].Networks["lan"] = n
	}
	links = rendered(t, "cp-1", both).NetworkCommonLinkConfigs()
	assert.Len(t, links[0].Routes(), 2)
	routes := renderedAs(t, "v1.10.0", "cp-1", both).Machine().Network().Devices()[0].Routes()
	require.Len(t, routes, 2)
	assert.Equal(t, "0.0.0.0/0", routes[0].Network())
	assert.Equal(t, "::/0", routes[1].Network())
}

func TestTaintsAreWrittenWhereTheyWork(t *testing.T) {
	t.Parallel()
	taint := func(c *spec.Config) {
		for i := range c.Nodes {
			c.Nodes[i].Taints = map[string]string{"b": ":NoExecute", "a": "x:NoSchedule"}
		}
	}
	cp := machineOf(t, "cp-1", taint)
	assert.Equal(t, map[string]string{"a": "x:NoSchedule", "b": ":NoExecute"}, cp.MachineNodeTaints)
	assert.Empty(t, cp.MachineKubelet.KubeletExtraConfig.Object)
	worker := machineOf(t, "work-1", taint)
	assert.Empty(t, worker.MachineNodeTaints)
	assert.Equal(t, []any{
		map[string]any{"key": "a", "value": "x", "effect": "NoSchedule"}, map[string]any{"key": "b", "effect": "NoExecute"},
	}, worker.MachineKubelet.KubeletExtraConfig.Object["registerWithTaints"])
}

func TestControlPlanesAloneTakeLoadBalancerTraffic(t *testing.T) {
	t.Parallel()
	const label = "node.kubernetes.io/exclude-from-external-load-balancers"
	alone := func(c *spec.Config) { c.Nodes = c.Nodes[:3] }
	assert.Contains(t, machineOf(t, "cp-1").MachineNodeLabels, label)
	assert.NotContains(t, machineOf(t, "cp-1", alone).MachineNodeLabels, label)
	assert.True(t, *clusterOf(t, "cp-1", alone).AllowSchedulingOnControlPlanes)
	assert.Nil(t, clusterOf(t, "cp-1").AllowSchedulingOnControlPlanes)
}

func TestDisksAreFoundWhateverTheirOrder(t *testing.T) {
	t.Parallel()
	disks := func(kind string, serial *string, path string) func(*spec.Config) {
		return func(c *spec.Config) {
			c.Nodes[3].Disks = map[string]spec.Disk{"data": {Type: spec.Ptr(kind), Serial: serial, Mountpoint: spec.Ptr(path)}}
		}
	}
	for want, change := range map[string]func(*spec.Config){
		"/dev/disk/by-id/scsi-0QEMU_QEMU_HARDDISK_drive-scsi1": disks("scsi", nil, "/var/lib/longhorn"),
		"/dev/disk/by-id/virtio-data":                          disks("virtio", nil, "/var/lib/longhorn"),
		"/dev/disk/by-id/ata-QEMU_HARDDISK_mine":               disks("sata", spec.Ptr("mine"), "/var/lib/longhorn"),
	} {
		machine := machineOf(t, "work-1", change)
		require.Len(t, machine.MachineDisks, 1)
		assert.Equal(t, want, machine.MachineDisks[0].DeviceName)
		assert.Equal(t, "/var/lib/longhorn", machine.MachineKubelet.KubeletExtraMounts[0].Destination)
		assert.Equal(t, []string{"bind", "rshared", "rw"}, machine.MachineKubelet.KubeletExtraMounts[0].Options)
	}
	provider := rendered(t, "work-1", disks("scsi", nil, "/var/mnt/data"))
	require.Len(t, provider.UserVolumeConfigs(), 1)
	assert.Equal(t, "data", provider.UserVolumeConfigs()[0].Name())
	assert.Empty(t, provider.RawV1Alpha1().MachineConfig.MachineDisks)
	assert.Empty(t, provider.RawV1Alpha1().MachineConfig.MachineKubelet.KubeletExtraMounts, "the kubelet sees user volumes anyway")

	for want, change := range map[string]func(*spec.Config){
		"/dev/disk/by-id/scsi-0QEMU_QEMU_HARDDISK_drive-scsi0": func(*spec.Config) {},
		"/dev/disk/by-id/virtio-talos-system":                  func(c *spec.Config) { c.Nodes[3].OSDisk = &spec.Disk{Type: spec.Ptr("virtio")} },
		"/dev/disk/by-id/ata-QEMU_HARDDISK_mine": func(c *spec.Config) {
			c.Nodes[3].OSDisk = &spec.Disk{Type: spec.Ptr("sata"), Serial: spec.Ptr("mine")}
		},
		"/dev/nvme0n1": func(c *spec.Config) { c.Nodes[3].InstallDisk = spec.Ptr("/dev/nvme0n1") },
	} {
		assert.Equal(t, want, machineOf(t, "work-1", change).MachineInstall.InstallDisk)
	}
	physical := func(c *spec.Config) {
		c.Cluster.VMIDBase, c.Nodes[3].OSDisk = nil, &spec.Disk{Serial: spec.Ptr("S3Z8NB0K")}
	}
	install := machineOf(t, "work-1", physical).MachineInstall
	assert.Empty(t, install.InstallDisk)
	assert.Equal(t, "S3Z8NB0K", install.InstallDiskSelector.Serial, "hardware has serial numbers")
}

func TestDiskEncryptionKeys(t *testing.T) {
	t.Parallel()
	for key, want := range map[string]string{"nodeID": "nodeID: {}", "tpm": "tpm: {}", "kms": "endpoint: https://kms.example.com", "static": "passphrase: hunter2"} {
		for _, talos := range []string{"v1.10.0", "v1.11.6", "v1.12.4"} {
			text := render(t, input(cluster(talos, "v1.33.0", func(c *spec.Config) {
				c.Talos.DiskEncryption = &spec.DiskEncryption{Ephemeral: &spec.Encryption{
					Key: spec.Ptr(key), KMSEndpoint: spec.Ptr("https://kms.example.com"), Passphrase: spec.Ptr(spec.NewSecret("hunter2")),
				}}
			})), "work-1")
			assert.Contains(t, text, want, "%s on %s", key, talos)
		}
	}
}

func TestEtcdEncryption(t *testing.T) {
	t.Parallel()
	secret := fixedSecrets().Secrets.SecretboxEncryptionSecret
	c := clusterOf(t, "cp-1")
	assert.Equal(t, [2]string{secret, ""}, [2]string{c.ClusterSecretboxEncryptionSecret, c.ClusterAESCBCEncryptionSecret})
	c = clusterOf(t, "cp-1", func(c *spec.Config) { c.Kubernetes.EtcdEncryption = spec.Ptr("aescbc") })
	assert.Equal(t, [2]string{"", secret}, [2]string{c.ClusterSecretboxEncryptionSecret, c.ClusterAESCBCEncryptionSecret})

	adopted := fixedSecrets()
	adopted.Secrets.SecretboxEncryptionSecret, adopted.Secrets.AESCBCEncryptionSecret = "", "b2xk"
	text, err := machineconfig.Render(input(cluster("v1.12.4", "v1.33.0")), "cp-1", adopted)
	require.NoError(t, err)
	assert.Contains(t, text, "aescbcEncryptionSecret: b2xk", "what the adopted cluster wrote can still be read")
}

func TestPatchesWinInTheirOrder(t *testing.T) {
	t.Parallel()
	set := func(value string) []spec.Patch {
		return inline("machine:\n  sysctls:\n    vm.swappiness: \"" + value + "\"\n")
	}
	machine := machineOf(t, "work-1", func(c *spec.Config) {
		c.Talos.Sysctls = map[string]string{"vm.swappiness": "0"}
		c.Talos.Patches = spec.Patches{All: set("1"), Worker: set("2"), ControlPlane: set("3")}
		c.Nodes[3].Patches = set("4")
	})
	assert.Equal(t, "4", machine.MachineSysctls["vm.swappiness"])
	machine = machineOf(t, "cp-1", func(c *spec.Config) {
		c.Talos.Patches = spec.Patches{All: set("1"), Worker: set("2"), ControlPlane: set("3")}
	})
	assert.Equal(t, "3", machine.MachineSysctls["vm.swappiness"])
	machine = machineOf(t, "cp-1", func(c *spec.Config) {
		c.Talos.Patches.All = append(set("1"), inline(`- op: replace
  path: /machine/sysctls/vm.swappiness
  value: "5"
`)...)
	})
	assert.Equal(t, "5", machine.MachineSysctls["vm.swappiness"])
}

func TestComponentsAreTurnedOff(t *testing.T) {
	t.Parallel()
	c := clusterOf(t, "cp-1", func(c *spec.Config) {
		c.CNI.Name = spec.Ptr("cilium")
		c.Manifests.CoreDNS = &spec.CoreDNS{Corefile: spec.Ptr(spec.Text(".:53 {}"))}
		c.Kubernetes.APIServer = &spec.APIServer{DisablePodSecurity: spec.Ptr(true)}
		c.Talos.KubePrism = &spec.KubePrism{Enabled: spec.Ptr(false)}
	})
	assert.Equal(t, "none", c.ClusterNetwork.CNI.CNIName)
	assert.True(t, *c.ProxyConfig.Disabled)
	assert.True(t, *c.CoreDNSConfig.CoreDNSDisabled, "the manifests bring one")
	assert.Empty(t, c.APIServerConfig.AdmissionControlConfig)
	machine := machineOf(t, "cp-1", func(c *spec.Config) { c.Talos.KubePrism = &spec.KubePrism{Enabled: spec.Ptr(false)} })
	assert.Nil(t, machine.MachineFeatures.KubePrismSupport)
	assert.Equal(t, "flannel", clusterOf(t, "cp-1").ClusterNetwork.CNI.CNIName)
	assert.Nil(t, clusterOf(t, "cp-1").ProxyConfig.Disabled)
	assert.Nil(t, clusterOf(t, "work-1").EtcdConfig)
	assert.Nil(t, clusterOf(t, "work-1").APIServerConfig)
}

func TestAWorkerMoreLeavesOtherWorkersAlone(t *testing.T) {
	t.Parallel()
	more := func(c *spec.Config) { c.Nodes = append(c.Nodes, node("work-2", spec.Worker, "192.168.62.25/24")) }
	before, after := input(cluster("v1.12.4", "v1.35.0")), input(cluster("v1.12.4", "v1.35.0", more))
	assert.Equal(t, render(t, before, "work-1"), render(t, after, "work-1"))
	assert.NotEqual(t, render(t, before, "cp-1"), render(t, after, "cp-1"), "control planes vouch for every node")
}

func TestRenderSaysWhatIsMissing(t *testing.T) {
	t.Parallel()
	_, err := machineconfig.Render(input(cluster("v1.12.4", "v1.35.0")), "gone", fixedSecrets())
	assert.EqualError(t, err, `rendering the configuration of node "gone": there is no node of that name`)
	_, err = machineconfig.Render(input(cluster("v1.99.0", "v1.35.0")), "cp-1", fixedSecrets())
	assert.EqualError(t, err, fmt.Sprintf(`rendering the configuration of node "cp-1": Talos v1.99 is not supported: use a version from %s to %s`,
		versions.Oldest, versions.Newest))
}

func TestFlagsWithoutTextStayOnTheCommandLine(t *testing.T) {
	t.Parallel()
	empty := func(c *spec.Config) {
		c.Kubernetes.Kubelet = &spec.Kubelet{ExtraArgs: map[string]string{"cloud-provider": ""}}
	}
	assert.Contains(t, render(t, input(cluster("v1.12.4", "v1.35.0", empty)), "cp-1"),
		"cloud-provider: null\n", "an empty text, as Talos reads it until 1.12")
}
