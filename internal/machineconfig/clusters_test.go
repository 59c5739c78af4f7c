// SPDX-License-Identifier: Apache-2.0
// Copyright the talos-proxmox authors.

package machineconfig_test

import (
	"fmt"
	"testing"
	"time"

	"github.com/siderolabs/crypto/x509"
	"github.com/siderolabs/talos/pkg/machinery/config/generate/secrets"
	"github.com/stretchr/testify/require"

	"github.com/talos-proxmox/talos-proxmox/internal/machineconfig"
	"github.com/talos-proxmox/talos-proxmox/spec"
)

// fixedSecrets returns the same in every run, so that renders can be compared byte for byte. They are no
// real certificates: configurations only carry them.
func fixedSecrets() *secrets.Bundle {
	pair := func(name string) *x509.PEMEncodedCertificateAndKey {
		return &x509.PEMEncodedCertificateAndKey{Crt: []byte(name + " certificate"), Key: []byte(name + " key")}
	}

	return &secrets.Bundle{
		Clock:      secrets.NewFixedClock(time.Unix(0, 0)),
		Cluster:    &secrets.Cluster{ID: "cluster-id", Secret: "cluster-secret"},
		Secrets:    &secrets.Secrets{BootstrapToken: "abcdef.0123456789abcdef", SecretboxEncryptionSecret: "c2VjcmV0Ym94LWtleS1vZi0zMi1ieXRlcy1sZW5ndGg="},
		TrustdInfo: &secrets.TrustdInfo{Token: "fedcba.fedcba9876543210"},
		Certs: &secrets.Certs{
			Etcd: pair("etcd"), K8s: pair("kubernetes"), K8sAggregator: pair("aggregator"), OS: pair("talos"),
			K8sServiceAccount: &x509.PEMEncodedKey{Key: []byte("service account key")},
		},
	}
}

// node returns a node with one network.
func node(name string, role spec.Role, address string) spec.NamedNode {
	return spec.NamedNode{Name: name, Node: spec.Node{
		Role: spec.Ptr(role),
		Host: spec.Ptr("alpha"),
		Networks: map[string]spec.Network{
			"lan": {Address: spec.Ptr(address), Gateway: spec.Ptr("192.168.62.1"), Index: spec.Ptr(0)},
		},
	}}
}

// cluster returns three control planes and a worker of that Talos version, complete.
func cluster(talos, kubernetes string, change ...func(*spec.Config)) spec.Config {
	cfg := spec.Config{
		Cluster: spec.Cluster{
			Name: spec.Ptr("prod"), VIP: spec.Ptr("192.168.62.20"), VMIDBase: spec.Ptr(100),
			Nameservers: []string{"192.168.62.1"}, TimeServers: []string{"192.168.62.1"},
		},
		Talos:      spec.Talos{Version: spec.Ptr(talos)},
		Kubernetes: spec.Kubernetes{Version: spec.Ptr(kubernetes)},
		Proxmox:    spec.Proxmox{Hosts: map[string]spec.Host{"alpha": {Zone: spec.Ptr("rack-1")}}},
		Nodes: []spec.NamedNode{
			node("cp-1", spec.ControlPlane, "192.168.62.21/24"),
			node("cp-2", spec.ControlPlane, "192.168.62.22/24"),
			node("cp-3", spec.ControlPlane, "192.168.62.23/24"),
			node("work-1", spec.Worker, "192.168.62.24/24"),
		},
	}
	for _, f := range change {
		f(&cfg)
	}

	return cfg.WithDefaults()
}

// input renders with the factory's installer of every node.
func input(cfg spec.Config) machineconfig.Input {
	in := machineconfig.Input{Config: cfg, Installer: map[string]string{}}
	for _, n := range cfg.Nodes {
		in.Installer[n.Name] = fmt.Sprintf("factory.talos.dev/nocloud-installer/0123abcd:%s", *cfg.Talos.Version)
	}

	return in
}

// render fails the test where rendering does.
func render(t *testing.T, in machineconfig.Input, node string) string {
	t.Helper()
	text, err := machineconfig.Render(in, node, fixedSecrets())
	require.NoError(t, err)

	return text
}

// everything turns every setting on.
func everything(cfg *spec.Config) {
	everyClusterSetting(cfg)
	everyTalosSetting(&cfg.Talos)
	everyKubernetesSetting(&cfg.Kubernetes)
	cfg.CNI.Name = spec.Ptr("cilium")
	cfg.Manifests.Extra = []string{"https://example.com/one.yaml", "https://example.com/two.yaml"}
	cfg.Manifests.ExtraHeaders = map[string]spec.Secret{"Authorization": spec.NewSecret("Bearer token")}
	cfg.Manifests.CoreDNS = &spec.CoreDNS{Image: spec.Ptr("harbor.example.com/coredns:v1.13.1")}
	for i := range cfg.Nodes {
		everyNodeSetting(&cfg.Nodes[i])
	}
}

func everyClusterSetting(cfg *spec.Config) {
	cfg.Cluster.Endpoint = spec.Ptr("https://k8s.example.com:6443")
	cfg.Cluster.PodSubnets = []string{"10.25.0.0/16", "fd00:10:25::/56"}
	cfg.Cluster.ServiceSubnets = []string{"10.26.0.0/16", "fd00:10:26::/112"}
	cfg.Cluster.DNSDomain = spec.Ptr("k8s.example.com")
	cfg.Cluster.SearchDomains = []string{"example.com"}
	cfg.Cluster.ExtraHosts = map[string][]string{"192.168.62.9": {"harbor.example.com", "harbor"}}
	cfg.Cluster.CertSANs = []string{"k8s.internal"}
	cfg.Cluster.AllowSchedulingOnControlPlanes = spec.Ptr(true)
}

func everyTalosSetting(t *spec.Talos) {
	t.Sysctls = map[string]string{"vm.max_map_count": "262144"}
	t.Sysfs = map[string]string{"devices.system.cpu.cpu0.cpufreq.scaling_governor": "performance"}
	t.KernelModules = map[string][]string{"br_netfilter": nil, "zfs": {"zfs_arc_max=1073741824"}}
	t.Files = map[string]spec.MachineFile{"/var/etc/note": {Content: "hello\n", Permissions: spec.Ptr("0o600")}}
	t.KubePrism = &spec.KubePrism{Port: spec.Ptr(7446)}
	t.HostDNS = &spec.HostDNS{ForwardKubeDNSToHost: spec.Ptr(false), ResolveMemberNames: spec.Ptr(true)}
	t.DiskEncryption = &spec.DiskEncryption{
		State:     &spec.Encryption{Key: spec.Ptr("nodeID")},
		Ephemeral: &spec.Encryption{Key: spec.Ptr("kms"), KMSEndpoint: spec.Ptr("https://kms.example.com:4050")},
	}
	t.Registries = map[string]spec.Registry{
		"docker.io": {
			Endpoints:    []string{"https://harbor.example.com/v2/dh", "https://other.example.com/v2/dh"},
			OverridePath: spec.Ptr(true), SkipFallback: spec.Ptr(true),
		},
		"harbor.example.com": {Username: spec.Ptr("robot"), Password: spec.Ptr(spec.NewSecret("s3cret")), CA: spec.Ptr(spec.Text(exampleCA))},
		"lab.example.com":    {Insecure: spec.Ptr(true)},
	}
	t.TrustedRoots = map[string]spec.Text{"site": spec.Text(exampleCA)}
	t.Discovery = spec.Ptr(true)
	t.APIAccess = &spec.APIAccess{Roles: []string{"os:reader", "os:etcd:backup"}, Namespaces: []string{"backup"}}
	t.LogDestinations = []string{"tcp://logs.example.com:514"}
	t.WipeInstallDisk = spec.Ptr(true)
	t.EphemeralMaxSize = spec.Ptr(spec.GiB(60))
	t.Patches = spec.Patches{
		All:          []spec.Patch{{Inline: spec.Ptr(spec.Text("machine:\n  env:\n    GRPC_GO_LOG_SEVERITY_LEVEL: error\n"))}},
		ControlPlane: []spec.Patch{{Inline: spec.Ptr(spec.Text(`[{"op": "add", "path": "/cluster/etcd/extraArgs/election-timeout", "value": "5000"}]`))}},
		Worker:       []spec.Patch{{Inline: spec.Ptr(spec.Text("apiVersion: v1alpha1\nkind: WatchdogTimerConfig\ndevice: /dev/watchdog0\ntimeout: 2m\n"))}},
	}
}

func everyKubernetesSetting(k *spec.Kubernetes) {
	k.APIServer = &spec.APIServer{
		Component: spec.Component{ExtraArgs: map[string]string{"goaway-chance": "0.001"}, Env: map[string]spec.Text{"GOGC": "80"}},
		OIDC: &spec.OIDC{
			IssuerURL: "https://id.example.com", ClientID: "kubernetes", UsernameClaim: spec.Ptr("email"),
			UsernamePrefix: spec.Ptr("oidc:"), GroupsClaim: spec.Ptr("groups"), GroupsPrefix: spec.Ptr("oidc:"),
		},
		AuditPolicy: spec.Ptr(spec.Text("apiVersion: audit.k8s.io/v1\nkind: Policy\nrules:\n- level: RequestResponse\n")),
		AdmissionPlugins: map[string]spec.Text{
			"PodSecurity": "apiVersion: pod-security.admission.config.k8s.io/v1\nkind: PodSecurityConfiguration\ndefaults:\n  enforce: privileged\n",
		},
	}
	k.ControllerManager = &spec.Component{ExtraArgs: map[string]string{"bind-address": "0.0.0.0"}}
	k.Scheduler = &spec.Component{ExtraArgs: map[string]string{"bind-address": "0.0.0.0"}}
	k.Proxy = &spec.Proxy{Enabled: spec.Ptr(false)}
	k.Etcd = &spec.Etcd{ExtraArgs: map[string]string{"quota-backend-bytes": "4294967296"}, AdvertisedSubnets: []string{"192.168.62.0/24"}}
	k.Kubelet = &spec.Kubelet{
		ExtraArgs:                map[string]string{"v": "1"},
		ExtraConfig:              spec.Ptr(spec.Text("maxPods: 250\nserverTLSBootstrap: true\n")),
		ExtraMounts:              map[string][]string{"/var/lib/data": {"bind", "rshared", "rw"}},
		ClusterDNS:               []string{"10.26.0.10"},
		NodeIPSubnets:            []string{"192.168.62.0/24"},
		RotateServerCertificates: spec.Ptr(true),
	}
}

func everyNodeSetting(n *spec.NamedNode) {
	n.Networks["storage"] = spec.Network{
		Index: spec.Ptr(1), Address: spec.Ptr("192.168.192." + n.Name[len(n.Name)-1:] + "/24"), MTU: spec.Ptr(9000),
		Address6: spec.Ptr("fd00:192::" + n.Name[len(n.Name)-1:] + "/64"),
		Routes:   []spec.Route{{Network: "10.9.0.0/16", Gateway: spec.Ptr("192.168.192.254"), Metric: spec.Ptr(500)}},
	}
	n.Networks["guest"] = spec.Network{Index: spec.Ptr(2), DHCP: spec.Ptr(true)}
	n.Labels = map[string]string{"topology.kubernetes.io/region": "home"}
	n.Annotations = map[string]string{"example.com/rack": "1"}
	n.Taints = map[string]string{"example.com/dedicated": "storage:NoSchedule"}
	n.Sysctls = map[string]string{"net.core.somaxconn": "4096"}
	n.Disks = map[string]spec.Disk{
		"longhorn": {Size: spec.Ptr(spec.GiB(180)), Mountpoint: spec.Ptr("/var/lib/longhorn")},
		"scratch":  {Size: spec.Ptr(spec.GiB(20)), Mountpoint: spec.Ptr("/var/mnt/scratch"), Filesystem: spec.Ptr("ext4")},
	}
	if !n.IsControlPlane() {
		n.GPU = &spec.GPU{Mapping: spec.Ptr("gpu"), Vendor: spec.Ptr("nvidia")}
	}
	n.Patches = []spec.Patch{{File: spec.Ptr("patches/node.yaml")}}
}

// exampleCA is a certificate of nobody.
const exampleCA = `-----BEGIN CERTIFICATE-----
MIIBfDCCASGgAwIBAgIUEIb9zi/wrOqyO5UQ41MRhtp8ivowCgYIKoZIzj0EAwIw
EjEQMA4GA1UEAwwHZXhhbXBsZTAgFw0yNjExMjEwMjE0MzFaGA8yMTI2MTAyODAy
MTQzMVowEjEQMA4GA1UEAwwHZXhhbXBsZTBZMBMGByqGSM49AgEGCCqGSM49AwEH
A0IABKITpT9CTMOhTm7ZmFOpQrZek/NuSQEoDCds0ZBmEBq9GqrkQOB7bEIt6QZX
dZiQ8Zni8KKg2i04TmHfBc3hMi2jUzBRMB0GA1UdDgQWBBRVnVe2ckQXcVZhDicL
TJl1NpdlmzAfBgNVHSMEGDAWgBRVnVe2ckQXcVZhDicLTJl1NpdlmzAPBgNVHRMB
Af8EBTADAQH/MAoGCCqGSM49BAMCA0kAMEYCIQCKpE4Dg7709aAGSl3OYw7O/PhO
I6JFuz2JqZ/rKbLV7AIhALUPB6Z/rkdo7F0b2PmFXtDTbZE4vnn9QUDqDpiZvbBJ
-----END CERTIFICATE-----
`
