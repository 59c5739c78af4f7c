// SPDX-License-Identifier: Apache-2.0
// Copyright the talos-proxmox authors.

package stack_test

import (
	"bytes"
	"crypto/ed25519"
	"encoding/json"
	"encoding/pem"
	"flag"
	"fmt"
	"maps"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"

	"filippo.io/age"
	"github.com/santhosh-tekuri/jsonschema/v6"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"go.yaml.in/yaml/v3"
	"golang.org/x/crypto/ssh"

	"github.com/talos-proxmox/talos-proxmox/stack"
)

// validStacks is how many right stacks are generated; more of them are tried with -args -valid-stacks 5000.
var validStacks = flag.Int("valid-stacks", 80, "how many right stacks to generate")

type block = map[string]any

// TestRightStacksPass generates right stacks over the whole space of settings and demands that none is refused: not by a rule, and
// not by Talos, which judges every node's machine configuration.
func TestRightStacksPass(t *testing.T) {
	t.Parallel()
	nodes, chosen := 0, map[string]int{}
	schema := compiledSchema(t)
	for seed := range uint64(*validStacks) {
		g := &generator{Rand: rand.New(rand.NewPCG(seed, 16)), chosen: chosen} //nolint:gosec // the same stacks each time
		text := g.stack(t)
		s, err := load(t, text)
		if !assert.NoError(t, err, "seed %d:\n%s", seed, text) {
			continue
		}
		assert.NoError(t, s.Check(t.Context()), "seed %d:\n%s", seed, text)
		assert.NoError(t, schema.Validate(asJSONValue(t, text)), "seed %d:\n%s", seed, text)
		nodes += len(s.Nodes)
	}
	t.Logf("%d stacks of %d nodes; choices: %v", *validStacks, nodes, chosen)
	if *validStacks >= 80 {
		for _, want := range []string{
			"4", "6", "dual", "scsi", "virtio", "sata", "flannel", "cilium", "none", "flux chart", "flux operator", "flux inline", "argocd", "argocd dayZero",
			"ssh", "token", "basic", "githubApp", "ovmf", "disk", "iso", "large", "gpu", "tpm", "l2", "bgp", "v1.10.0", "v1.11.6", "v1.12.4", "v1.13.0", "v1.14.1",
		} {
			assert.Positive(t, chosen[want], "no stack has %s", want)
		}
	}
}

// compiledSchema returns the schema by which editors check stack files.
func compiledSchema(t *testing.T) *jsonschema.Schema {
	t.Helper()
	document, err := jsonschema.UnmarshalJSON(strings.NewReader(read(t, "../schema/stack.schema.json")))
	require.NoError(t, err)
	c := jsonschema.NewCompiler()
	require.NoError(t, c.AddResource("stack.json", document))
	s, err := c.Compile("stack.json")
	require.NoError(t, err)

	return s
}

func asJSONValue(t *testing.T, text string) any {
	t.Helper()
	var tree any
	require.NoError(t, yaml.Unmarshal([]byte(text), &tree))
	encoded, err := json.Marshal(tree)
	require.NoError(t, err)
	value, err := jsonschema.UnmarshalJSON(bytes.NewReader(encoded))
	require.NoError(t, err)

	return value
}

// TestSchemaTakesTheBases holds that editors find nothing wrong with the stacks on which mistakes are made.
func TestSchemaTakesTheBases(t *testing.T) {
	t.Parallel()
	schema := compiledSchema(t)
	for _, base := range []string{"base", "rich", "six", "dual"} {
		assert.NoError(t, schema.Validate(asJSONValue(t, read(t, "testdata/bases/"+base+".yaml"))), base)
	}
}

// generator makes a right stack by chance.
type generator struct {
	*rand.Rand
	chosen map[string]int

	family        string
	controlPlanes int
	workers       int
	image         block
	config        block
	ssh           bool
}

// pick chooses one of the names, and notes which.
func (g *generator) pick(names ...string) string {
	name := names[g.IntN(len(names))]
	g.chosen[name]++

	return name
}

func (g *generator) chance(percent int) bool { return g.IntN(100) < percent }

func secure(text string) block { return block{"secure": text} }

func sshKey(t *testing.T) string {
	t.Helper()
	_, key, err := ed25519.GenerateKey(nil)
	require.NoError(t, err)
	encoded, err := ssh.MarshalPrivateKey(key, "test")
	require.NoError(t, err)

	return string(pem.EncodeToMemory(encoded))
}

func (g *generator) four() bool { return g.family != "6" }
func (g *generator) six() bool  { return g.family != "4" }

// stack returns the text of a stack file.
func (g *generator) stack(t *testing.T) string {
	t.Helper()
	g.config = block{}
	g.family = g.pick("4", "4", "6", "dual")
	g.controlPlanes = []int{1, 3, 3, 5}[g.IntN(4)]
	g.workers = g.IntN(5)
	if g.chance(4) || g.chosen["large"] == 0 && g.chance(20) {
		g.chosen["large"]++
		g.workers = 100 + g.IntN(100)
	}
	g.proxmox()
	g.images()
	g.cluster()
	g.software()
	g.network()
	g.gitops(t)
	g.nodes()
	file := block{}
	for key, value := range g.config {
		file[stack.Project+":"+key] = value
	}
	text, err := yaml.Marshal(block{"config": file})
	require.NoError(t, err)

	return string(text)
}

func (g *generator) hosts() []string { return []string{"pve1", "pve2", "pve3", "pve4", "pve5"} }

func (g *generator) proxmox() {
	hosts := block{}
	for i, name := range g.hosts() {
		hosts[name] = block{}
		if g.chance(40) {
			hosts[name] = block{"zone": fmt.Sprintf("zone-%d", i), "datastore": "local-lvm"}
		}
	}
	p := block{"endpoint": "https://pve.example.com:8006", "hosts": hosts}
	if g.chance(50) {
		p["apiToken"] = secure("ci@pve!up=00000000-0000-0000-0000-000000000000")
	} else {
		p["username"], p["password"] = "root@pam", secure("hunter2")
	}
	if g.ssh = g.chance(50); g.ssh {
		p["ssh"] = block{"username": "root", "agent": true}
	}
	g.config["proxmox"] = p
}

func (g *generator) images() {
	g.image = block{"extensions": []any{"qemu-guest-agent"}}
	if g.chance(30) {
		g.image["extensions"] = []any{"qemu-guest-agent", "iscsi-tools", "util-linux-tools"}
	}
	if g.ssh && g.pick("disk", "iso") == "disk" {
		g.image["boot"] = "disk"
		g.image["diskFormat"] = g.pick("raw.gz", "raw.zst", "qcow2")
	} else {
		g.chosen["iso"]++
	}
	if g.chance(20) {
		g.image["kernelArgs"] = []any{"console=ttyS0", "net.ifnames=1"}
	}
	if g.chance(20) {
		g.image["installerMirror"] = "harbor.example.com/talos"
		g.image["isoMirror"] = "https://proxy.example.com/"
	}
	g.config["image"] = g.image
}

func (g *generator) cluster() {
	var pods, services []any
	if g.four() {
		pods, services = append(pods, "10.244.0.0/16"), append(services, "10.96.0.0/12")
	}
	if g.six() {
		pods, services = append(pods, "fd00:10::/48"), append(services, "fd00:20::/112")
	}
	c := block{"name": "cluster", "podSubnets": pods, "serviceSubnets": services, "vmIdBase": 1000}
	if g.chance(60) {
		c["vip"] = g.address(5)
	}
	if g.chance(20) {
		c["endpoint"] = "https://k8s.example.com:6443"
	}
	if g.chance(30) {
		c["nameservers"], c["timeServers"] = []any{g.address(3)}, []any{"pool.ntp.org"}
	}
	if g.chance(30) {
		c["certSANs"] = []any{"k8s.example.com", "*.example.com"}
		c["searchDomains"] = []any{"example.com"}
		c["tags"] = []any{"k8s", "prod"}
	}
	if g.chance(20) {
		c["dnsDomain"] = "k8s.example.com"
	}
	if g.chance(20) {
		c["extraHosts"] = block{g.address(4): []any{"nas.example.com"}}
	}
	if g.workers == 0 || g.chance(30) {
		c["allowSchedulingOnControlPlanes"] = true
	}
	g.config["cluster"] = c
}

// address returns an address of the nodes' network.
func (g *generator) address(n int) string {
	if g.four() {
		return fmt.Sprintf("10.10.%d.%d", n/250, n%250+1)
	}

	return fmt.Sprintf("fd00:1::%x", n+1)
}

var fitting = map[string][]string{
	"v1.10.0": {"v1.31.0", "v1.33.0"}, "v1.11.6": {"v1.32.1", "v1.34.0"}, "v1.12.4": {"v1.30.0", "v1.35.0"}, "v1.13.0": {"v1.34.0", "v1.36.0"}, "v1.14.1": {"v1.35.0", "v1.37.0"},
}

func (g *generator) software() {
	version := g.pick(slices.Sorted(maps.Keys(fitting))...)
	talos := block{"version": version}
	if g.chance(30) {
		talos["sysctls"] = block{"vm.max_map_count": "262144", "fs.inotify.max_user_watches": "1048576"}
		talos["kernelModules"] = block{"nvme_tcp": []any{}}
	}
	if g.chance(30) {
		talos["registries"] = block{
			"docker.io": block{"endpoints": []any{"https://harbor.example.com/v2/dh"}, "overridePath": true},
			"ghcr.io":   block{"endpoints": []any{"https://mirror.example.com"}, "skipFallback": true},
			"quay.io":   block{"username": "robot", "password": secure("hunter2")},
		}
	}
	if g.chance(20) {
		talos["files"] = block{"/var/etc/note": block{"content": "hello\n", "permissions": "0o600"}}
		talos["logDestinations"] = []any{"tcp://logs.example.com:514"}
	}
	if g.chance(20) {
		talos["diskEncryption"] = block{"state": block{"key": "nodeID"}, "ephemeral": block{"key": "static", "passphrase": secure("correct horse battery")}}
	}
	if g.chance(20) {
		talos["apiAccess"] = block{"roles": []any{"os:reader"}, "namespaces": []any{"kube-system"}}
		talos["discovery"] = true
		talos["hostDns"] = block{"resolveMemberNames": true}
	}
	if g.chance(20) {
		talos["kubePrism"] = block{"port": 7446}
	}
	if g.chance(15) {
		talos["patches"] = block{"all": []any{block{"inline": block{"machine": block{"sysctls": block{"net.core.somaxconn": "65535"}}}}}}
	}
	g.config["talos"] = talos
	k := block{"version": g.pick(fitting[version]...)}
	if g.chance(30) {
		k["apiServer"] = block{"extraArgs": block{"event-ttl": "2h", "feature-gates": "HPAScaleToZero=true"}, "auditPolicy": block{
			"apiVersion": "audit.k8s.io/v1", "kind": "Policy", "rules": []any{block{"level": "Metadata", "omitStages": []any{"RequestReceived"}}},
		}}
	}
	if g.chance(30) {
		k["kubelet"] = block{"rotateServerCertificates": true, "extraConfig": block{
			"maxPods": 150, "evictionHard": block{"memory.available": "200Mi", "nodefs.available": "10%"}, "imageGCHighThresholdPercent": 80,
			"imageGCLowThresholdPercent": 70,
		}, "extraMounts": block{"/var/lib/extra": []any{"bind", "rshared", "rw"}}}
	}
	if g.chance(20) {
		k["etcd"] = block{"extraArgs": block{"heartbeat-interval": "200", "election-timeout": "2000"}}
	}
	g.config["kubernetes"] = k
	if g.chance(30) {
		g.config["lifecycle"] = block{"readyTimeout": "30m", "snapshotDirectory": "snapshots", "snapshotsKept": 3}
		g.config["output"] = block{"kubeconfigFile": "out/kubeconfig", "talosconfigFile": "out/talosconfig", "machineConfigDirectory": "out/configs"}
	}
}

func (g *generator) network() {
	switch name := g.pick("flannel", "cilium", "cilium", "none"); name {
	case "cilium":
		c := block{"chart": block{"version": "1.18.4"}, "install": g.pick("chart", "job")}
		if g.chance(60) {
			c["pools"] = block{"main": g.pool()}
			c[g.pick("l2", "l2", "bgp")] = block{}
			if _, bgp := c["bgp"]; bgp {
				c["bgp"] = block{"localAsn": 64512, "peers": block{"router": block{"address": g.address(0), "asn": 64513, "password": secure("hunter2")}}}
			}
			if g.chance(40) {
				c["gatewayApi"] = block{"apiServer": block{"hostname": "api.example.com"}}
			}
		}
		c["hubble"] = g.chance(30)
		if g.chance(30) {
			c["chart"].(block)["values"] = block{"operator": block{"replicas": 1}, "bpf": block{"masquerade": true}}
		}
		g.config["cni"] = block{"name": "cilium", "cilium": c}
	case "none":
		g.config["cni"] = block{"name": "none"}
		below, _ := g.config["lifecycle"].(block)
		if below == nil {
			below = block{}
		}
		below["skipKubernetesChecks"] = true
		g.config["lifecycle"] = below
	default:
		g.config["cni"] = block{"name": name}
	}
}

func (g *generator) pool() block {
	if g.four() {
		if g.chance(50) {
			return block{"start": "10.10.8.10", "stop": "10.10.8.99"}
		}

		return block{"cidr": "10.10.9.0/25"}
	}

	return block{"cidr": "fd00:1::9:0/112"}
}

const gitHost = "git.example.com ssh-ed25519 AAAAC3NzaC1lZDI1NTE5AAAAIBKbi6TI+As1UypzxqMHv/Exy7MuzNFJ5OZqVnvwn8bl"

func (g *generator) gitops(t *testing.T) {
	t.Helper()
	method := g.pick("none", "flux chart", "flux operator", "flux inline", "argocd", "argocd dayZero")
	if method == "none" {
		return
	}
	git := block{"url": "https://git.example.com/lab/demo.git"}
	g.credentials(t, git)
	switch g.IntN(5) {
	case 0:
		git["tag"] = "v1.2.3"
	case 1:
		git["semver"] = ">=1.0.0 <2.0.0"
	case 2:
		git["branch"] = "release/next"
	}
	if g.chance(50) {
		git["path"] = []string{"./", ".", "clusters/home", "./clusters/home/"}[g.IntN(4)]
	}
	g.controller(t, method, git)
}

// credentials adds how the repository is read.
func (g *generator) credentials(t *testing.T, git block) {
	t.Helper()
	switch auth := g.pick("public", "ssh", "token", "basic", "githubApp"); auth {
	case "ssh":
		git["url"] = "ssh://git@git.example.com/lab/demo.git"
		a := block{"type": "ssh", "knownHosts": gitHost}
		if g.chance(40) {
			a["privateKey"] = secure(sshKey(t))
		}
		git["auth"] = a
	case "token", "basic":
		git["auth"] = block{"type": auth, "username": "robot", "password": secure("hunter2")}
	case "githubApp":
		git["auth"] = block{"type": auth, "githubApp": block{"id": "1", "installationId": "2", "privateKey": secure(sshKey(t))}}
	}
}

// controller adds the controller that reads the repository.
func (g *generator) controller(t *testing.T, method string, git block) {
	t.Helper()
	o := block{"provider": "flux", "git": git, "chart": block{"version": "2.18.2"}}
	switch method {
	case "flux operator":
		o["method"], o["chart"], o["version"] = "operator", block{"version": "0.28.0"}, "2.x"
	case "flux inline":
		o["method"] = "inline"
	case "argocd", "argocd dayZero":
		o["provider"], o["chart"], o["dayZero"] = "argocd", block{"version": "8.2.5"}, method != "argocd"
	}
	if o["provider"] == "flux" {
		if g.chance(40) {
			key, err := age.GenerateX25519Identity()
			require.NoError(t, err)
			o["sops"] = block{"ageKey": secure(key.String())}
		}
		if g.chance(40) {
			o["await"] = "10m"
			o["components"] = []any{"source-controller", "kustomize-controller", "helm-controller"}
		}
	}
	g.config["gitops"] = o
}

// machine returns the hardware that all nodes have.
func (g *generator) machine() block {
	bus := g.pick("scsi", "virtio", "sata")
	disk := block{"type": bus, "size": 20 + g.IntN(100)}
	if g.chance(30) {
		disk["cache"], disk["discard"] = "writeback", true
	}
	m := block{"cpu": 1 + g.IntN(8), "memory": 2048 * (1 + g.IntN(8)), "osDisk": disk}
	if g.chance(30) {
		m["cpuType"] = []string{"host", "x86-64-v3", "EPYC-Rome", "Skylake-Server"}[g.IntN(4)]
	}
	if g.chance(30) {
		m["bios"] = "ovmf"
		g.chosen["ovmf"]++
		if g.chance(50) {
			m["tpm"] = block{}
			g.chosen["tpm"]++
		}
	}
	if bus == "scsi" && g.chance(30) {
		m["scsiHardware"] = "virtio-scsi-pci"
	}
	if g.chance(30) {
		m["labels"], m["annotations"] = block{"example.com/rack": "a"}, block{"example.com/owner": "team"}
	}
	if g.chance(20) {
		m["watchdog"], m["startup"] = block{}, block{"order": 3, "upDelay": 30}
	}
	lan := block{"index": 0, "bridge": "vmbr0", "vlan": 1 + g.IntN(4000), "mtu": 1500}
	if g.four() {
		lan["subnet"], lan["gateway"] = "10.10.0.0/16", "10.10.0.1"
	}
	if g.six() {
		lan["subnet6"], lan["gateway6"] = "fd00:1::/64", []string{"fe80::1", "fd00:1::1"}[g.IntN(2)]
	}
	m["networks"] = block{"lan": lan}

	return m
}

// at returns the networks of the node with a number.
func (g *generator) at(n int) block {
	lan := block{}
	if g.four() {
		lan["address"] = fmt.Sprintf("10.10.%d.%d", 1+n/200, 11+n%200)
	}
	if g.six() {
		lan["address6"] = fmt.Sprintf("fd00:1::%x", 0x1000+n)
	}

	return block{"lan": lan}
}

func (g *generator) nodes() {
	g.config["defaults"] = block{"all": g.machine()}
	nodes := block{}
	hosts := g.hosts()
	for i := range g.controlPlanes {
		nodes[fmt.Sprintf("cp-%d", i+1)] = block{"role": "controlplane", "host": hosts[i%len(hosts)], "networks": g.at(i)}
	}
	if g.workers > 20 {
		g.config["pools"] = block{"work": block{"role": "worker", "count": g.workers, "hosts": []any{"pve1", "pve2", "pve3"}, "networks": g.at(500)}}
		g.config["nodes"] = nodes

		return
	}
	for i := range g.workers {
		n := block{"role": "worker", "host": hosts[i%len(hosts)], "networks": g.at(100 + i)}
		if g.chance(40) {
			n["disks"] = block{"data": block{
				"size": 50, "unitNumber": 3, "type": g.pick("scsi", "virtio", "sata"), "mountpoint": []string{"/var/mnt/data", "/var/lib/longhorn"}[g.IntN(2)],
			}}
		}
		if i > 0 && g.chance(20) {
			n["taints"] = block{"dedicated": "batch:NoSchedule"}
		}
		if g.chance(15) {
			g.chosen["gpu"]++
			n["gpu"] = block{"mapping": "card"}
		}
		nodes[fmt.Sprintf("work-%d", i+1)] = n
	}
	g.config["nodes"] = nodes
}
