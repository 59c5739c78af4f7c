// SPDX-License-Identifier: Apache-2.0
// Copyright the talos-proxmox authors.

package machineconfig_test

import (
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"

	"github.com/talos-proxmox/talos-proxmox/internal/check"
	"github.com/talos-proxmox/talos-proxmox/internal/machineconfig"
	"github.com/talos-proxmox/talos-proxmox/internal/versions"
	"github.com/talos-proxmox/talos-proxmox/spec"
)

// inline returns a patch written in place.
func inline(text string) []spec.Patch { return []spec.Patch{{Inline: spec.Ptr(spec.Text(text))}} }

// problems returns what the check says, one a line.
func problems(in machineconfig.Input) string {
	var l check.List
	machineconfig.Check(in, &l)
	var lines []string
	for _, p := range l.Problems() {
		lines = append(lines, p.String())
	}

	return strings.Join(lines, "\n")
}

func TestCheckBlamesThePatch(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		talos, kubernetes string
		change            func(*spec.Config)
		want              string
	}{
		"a host name in the machine configuration": {
			change: func(c *spec.Config) { c.Talos.Patches.Worker = inline("machine:\n  network:\n    hostname: other\n") },
			want: "talos.patches.worker[0].inline.machine.network.hostname: document HostnameConfig: static hostname is already " +
				"set in v1alpha1 config (node work-1)",
		},
		"an unknown field, without its value": {
			change: func(c *spec.Config) { c.Talos.Patches.All = inline("machine:\n  instal:\n    disk: hunter2\n") },
			want: "talos.patches.all[0].inline.machine.instal: is not a field that Talos knows; did you mean \"install\"? (nodes " +
				"cp-1, cp-2, cp-3 and 1 more)",
		},
		"a value of the wrong type, without the value": {
			change: func(c *spec.Config) { c.Nodes[3].Patches = inline("machine:\n  sysctls: hunter2\n") },
			want: "nodes.work-1.patches[0].inline: the patch is not one that Talos reads: line 2: cannot construct !!str `…` " +
				"into map[string]string",
		},
		"a JSON patch to nowhere": {
			change: func(c *spec.Config) {
				c.Talos.Patches.ControlPlane = inline(`[{"op": "replace", "path": "/machine/nowhere/x", "value": "hunter2"}]`)
			},
			want: "talos.patches.controlPlane[0].inline: the patch cannot be applied: failure applying rfc6902 patches to talos " +
				"machine config: replace operation does not apply: doc is missing path: /machine/nowhere/x: missing value " +
				"(nodes cp-1, cp-2, cp-3)",
		},
		"a document that the version does not know": {
			talos: "v1.11.6", kubernetes: "v1.34.0",
			change: func(c *spec.Config) {
				c.Nodes[3].Patches = inline("apiVersion: v1alpha1\nkind: OOMConfig\n")
			},
			want: "nodes.work-1.patches[0].inline.kind: document OOMConfig: Talos knows this kind since v1.12, but the cluster " +
				"runs v1.11.6",
		},
		"a document of a Talos to come": {
			change: func(c *spec.Config) {
				c.Nodes[3].Patches = inline("apiVersion: v1alpha1\nkind: EnvironmentConfig\nvariables: {A: b}\n")
			},
			want: "nodes.work-1.patches[0].inline.kind: document EnvironmentConfig: Talos knows this kind since v1.13, but the " +
				"cluster runs v1.12.4",
		},
		"a flag without a text": {
			talos: "v1.13.0",
			change: func(c *spec.Config) {
				c.Nodes[3].Patches = inline("machine: {kubelet: {extraArgs: {cloud-provider: \"\"}}}\n")
			},
			want: "nodes.work-1.patches[0].inline.machine.kubelet.extraArgs.cloud-provider: document machine configuration: " +
				"machine.kubelet.extraArgs.cloud-provider: Talos leaves out a flag without a text since v1.13: give it one, or " +
				"leave it out",
		},
		"a flag without a text for an older Talos": {
			change: func(c *spec.Config) {
				c.Nodes[3].Patches = inline("machine: {kubelet: {extraArgs: {cloud-provider: \"\"}}}\n")
			},
		},
		"etcd without encryption": {
			change: func(c *spec.Config) {
				c.Nodes[0].Patches = inline(`[{"op": "remove", "path": "/cluster/secretboxEncryptionSecret"}]`)
			},
			want: "nodes.cp-1.patches[0].inline: document machine configuration: secrets in etcd would not be encrypted: keep " +
				"cluster.secretboxEncryptionSecret or cluster.aescbcEncryptionSecret",
		},
		"a VIP on a worker": {
			change: func(c *spec.Config) {
				c.Nodes[3].Patches = inline("apiVersion: v1alpha1\nkind: Layer2VIPConfig\nname: 192.168.62.20\nlink: net0\n")
			},
			want: "nodes.work-1.patches[0].inline.kind: document Layer2VIPConfig 192.168.62.20: a shared address is for control " +
				"planes only",
		},
		"another role": {
			change: func(c *spec.Config) { c.Nodes[3].Patches = inline("machine:\n  type: controlplane\n") },
			want:   "nodes.work-1.patches[0].inline.machine.type: document machine configuration: machine.type must stay worker",
		},
		"an empty patch": {
			change: func(c *spec.Config) { c.Talos.Patches.Worker = []spec.Patch{{}} },
			want:   "talos.patches.worker[0]: the patch is empty: set inline or file (node work-1)",
		},
		"a file that is not there": {
			change: func(c *spec.Config) { c.Talos.Patches.Worker = []spec.Patch{{File: spec.Ptr("gone.yaml")}} },
			want:   "talos.patches.worker[0].file: reading the patch: open gone.yaml: file does not exist (node work-1)",
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			in := input(cluster(or(c.talos, "v1.12.4"), or(c.kubernetes, "v1.35.0"), c.change))
			in.ReadFile = nodePatch(versions.Oldest)
			assert.Equal(t, c.want, problems(in))
		})
	}
}

func TestCheckBlamesTheSetting(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		change func(*spec.Config)
		want   string
	}{
		"nothing wrong": {change: func(*spec.Config) {}},
		"a kubelet setting that Talos keeps": {
			change: func(c *spec.Config) {
				c.Kubernetes.Kubelet = &spec.Kubelet{ExtraConfig: spec.Ptr(spec.Text("staticPodPath: /x"))}
			},
			want: `kubernetes.kubelet.extraConfig.staticPodPath: document machine configuration: kubelet configuration field "staticPodPath" can't be overridden (nodes cp-1, cp-2, cp-3 and 1 more)`,
		},
		"kubelet settings that are no object": {
			change: func(c *spec.Config) {
				c.Kubernetes.Kubelet = &spec.Kubelet{ExtraConfig: spec.Ptr(spec.Text("hunter2"))}
			},
			want: `kubernetes.kubelet.extraConfig: is not a YAML object (nodes cp-1, cp-2, cp-3 and 1 more)`,
		},
		"a taint without effect": {
			change: func(c *spec.Config) { c.Nodes[3].Taints = map[string]string{"gpu": "yes"} },
			want:   `nodes.work-1.taints.gpu: write "value:Effect" or ":Effect", with the effect NoSchedule, PreferNoSchedule or NoExecute`,
		},
		"a label that Kubernetes reserves": {
			change: func(c *spec.Config) { c.Nodes[3].Labels = map[string]string{"node-role.kubernetes.io/gpu": ""} },
			want: `nodes.work-1.labels["node-role.kubernetes.io/gpu"]: document machine configuration: machine.nodeLabels: ` +
				"Kubernetes lets no worker give itself the label node-role.kubernetes.io/gpu",
		},
		"a file where Talos makes none": {
			change: func(c *spec.Config) { c.Talos.Files = map[string]spec.MachineFile{"/etc/motd": {Content: "x"}} },
			want: `talos.files["/etc/motd"]: document machine configuration: machine.files: /etc/motd cannot be created: only files below /var can ` +
				"(nodes cp-1, cp-2, cp-3 and 1 more)",
		},
		"a VIP that no network holds": {
			change: func(c *spec.Config) { c.Cluster.VIP = spec.Ptr("10.0.0.1") },
			want:   "cluster.vip: no network of the node holds the VIP 10.0.0.1 (nodes cp-1, cp-2, cp-3)",
		},
		"ext4 where Talos makes xfs": {
			change: func(c *spec.Config) {
				c.Nodes[3].Disks = map[string]spec.Disk{"d": {Mountpoint: spec.Ptr("/var/lib/d"), Filesystem: spec.Ptr("ext4")}}
			},
			want: `nodes.work-1.disks.d: disk "d": Talos formats disks outside /var/mnt/ as xfs only`,
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			assert.Equal(t, c.want, problems(input(cluster("v1.12.4", "v1.35.0", c.change))))
		})
	}
}

func or(text, fallback string) string {
	if text == "" {
		return fallback
	}

	return text
}
