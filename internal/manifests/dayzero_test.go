// SPDX-License-Identifier: Apache-2.0
// Copyright the talos-proxmox authors.

package manifests_test

import (
	"context"
	"os"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/talos-proxmox/talos-proxmox/internal/manifests"
	"github.com/talos-proxmox/talos-proxmox/spec"
)

const configMap = "apiVersion: v1\nkind: ConfigMap\nmetadata:\n  name: x\n"

// writeChart writes a chart of one template.
func writeChart(t *testing.T, dir, name, template string) {
	t.Helper()
	root := filepath.Join(dir, name)
	require.NoError(t, os.MkdirAll(filepath.Join(root, "templates"), 0o750))
	require.NoError(t, os.WriteFile(filepath.Join(root, "Chart.yaml"), []byte("apiVersion: v2\nname: "+name+"\nversion: 1.2.3\n"), 0o600))
	require.NoError(t, os.WriteFile(filepath.Join(root, "values.yaml"), []byte("greeting: hello\n"), 0o600))
	require.NoError(t, os.WriteFile(filepath.Join(root, "templates", "all.yaml"), []byte(template), 0o600))
}

const greeter = `apiVersion: v1
kind: ConfigMap
metadata:
  name: {{ .Release.Name }}
  namespace: {{ .Release.Namespace }}
data:
  greeting: {{ .Values.greeting }}
  kubernetes: {{ .Capabilities.KubeVersion.Version }}
---
apiVersion: v1
kind: ServiceAccount
metadata:
  name: {{ .Release.Name }}
---
apiVersion: batch/v1
kind: Job
metadata:
  name: before
  annotations: {"helm.sh/hook": pre-install}
---
apiVersion: v1
kind: Pod
metadata:
  name: probe
  annotations: {"helm.sh/hook": test}
`

func TestManifestsKeepTheirOrder(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	writeChart(t, dir, "greeter", greeter)
	chart := func(order int) spec.DayZeroChart {
		return spec.DayZeroChart{
			Chart:     spec.Chart{Repository: spec.Ptr("."), Name: spec.Ptr("greeter"), Version: spec.Ptr("1.2.3"), Values: spec.Ptr(spec.Text("greeting: hi"))},
			Namespace: spec.Ptr("greetings"), Order: spec.Ptr(order),
		}
	}
	cfg := clusterConfig(func(c *spec.Config) {
		c.Manifests = spec.Manifests{
			Inline: map[string]spec.Manifest{
				"zebra": {Inline: spec.Ptr(spec.Text(configMap))},
				"ant":   {File: spec.Ptr("ant.yaml"), Order: spec.Ptr(150)},
				"first": {Inline: spec.Ptr(spec.Text(configMap)), Order: spec.Ptr(1)},
			},
			Charts: map[string]spec.DayZeroChart{"traefik": chart(300), "cert-manager": chart(210), "early": chart(100)},
		}
	})
	in := manifests.Input{Config: cfg, Charts: manifests.Cache{ProjectDir: dir}, ReadFile: func(string) ([]byte, error) { return []byte(configMap), nil }}
	all := dayZero(t, in)
	assert.Equal(t, []string{"001-first", "002-zebra", "003-early", "004-ant", "005-cert-manager", "006-traefik"}, names(all))
	assert.Equal(t, `---
apiVersion: v1
kind: Namespace
metadata:
  name: greetings
---
apiVersion: batch/v1
kind: Job
metadata:
  annotations:
    helm.sh/hook: pre-install
  name: before
  namespace: greetings
---
apiVersion: v1
kind: ServiceAccount
metadata:
  name: traefik
  namespace: greetings
---
apiVersion: v1
kind: ConfigMap
metadata:
  name: traefik
  namespace: greetings
data:
  greeting: hi
  kubernetes: v1.35.0
`, all[5].Contents)
}

func TestDayZeroSaysWhatIsWrong(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	writeChart(t, dir, "random", "apiVersion: v1\nkind: Secret\nmetadata:\n  name: s\ndata:\n  p: {{ randAlphaNum 20 }}\n")
	writeChart(t, dir, "broken", "{{ fail \"no\" }}")
	chart := func(name, version string) map[string]spec.DayZeroChart {
		return map[string]spec.DayZeroChart{"c": {Chart: spec.Chart{Repository: spec.Ptr("."), Name: spec.Ptr(name), Version: spec.Ptr(version)}}}
	}
	for name, c := range map[string]struct {
		manifests spec.Manifests
		want      string
	}{
		"no manifest": {
			spec.Manifests{Inline: map[string]spec.Manifest{"m": {}}},
			"manifests.inline.m: the manifest is empty: set inline or file",
		},
		"not objects": {
			spec.Manifests{Inline: map[string]spec.Manifest{"m": {Inline: spec.Ptr(spec.Text("hunter2"))}}},
			"manifests.inline.m: the manifest is not YAML objects: yaml: unmarshal errors:\n  line 1: cannot unmarshal !!str `…` into map[string]interface {}",
		},
		"no kind": {
			spec.Manifests{Inline: map[string]spec.Manifest{"m": {Inline: spec.Ptr(spec.Text("apiVersion: v1\n"))}}},
			"manifests.inline.m: object 1 of the manifest has no apiVersion or no kind",
		},
		"a random chart": {
			spec.Manifests{Charts: chart("random", "1.2.3")},
			"manifests.charts.c: chart random 1.2.3 renders differently each time: Secret s; give the certificates or passwords that it makes up as values",
		},
		"another version": {
			spec.Manifests{Charts: chart("random", "1.2.4")},
			"manifests.charts.c: chart random has version 1.2.3, not 1.2.4: give its version, or the chart of that version",
		},
		"no such chart": {
			spec.Manifests{Charts: chart("gone", "1.2.3")},
			"manifests.charts.c: reading chart .: stat gone: no such file or directory",
		},
		"a chart that fails": {
			spec.Manifests{Charts: chart("broken", "1.2.3")},
			"manifests.charts.c: rendering chart broken 1.2.3: running its templates: execution error at (broken/templates/all.yaml:1:3): no",
		},
		"two at once": {
			spec.Manifests{Inline: map[string]spec.Manifest{"a": {}, "b": {}}},
			"manifests.inline.a: the manifest is empty: set inline or file\nmanifests.inline.b: the manifest is empty: set inline or file",
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			cfg := clusterConfig(func(cfg *spec.Config) { cfg.Manifests = c.manifests })
			_, err := manifests.DayZero(context.Background(), manifests.Input{Config: cfg, Charts: manifests.Cache{ProjectDir: dir}})
			assert.EqualError(t, err, c.want)
		})
	}
}

func TestFlannelNeedsNothing(t *testing.T) {
	t.Parallel()
	assert.Empty(t, dayZero(t, manifests.Input{Config: clusterConfig()}))
}

func TestRuntimeClassForNVIDIA(t *testing.T) {
	t.Parallel()
	all := dayZero(t, manifests.Input{Config: clusterConfig(func(c *spec.Config) {
		c.Nodes[1].GPU = &spec.GPU{Mapping: spec.Ptr("gpu"), Vendor: spec.Ptr("nvidia")}
	})})
	require.Equal(t, []string{"001-runtime-class-nvidia"}, names(all))
	assert.Equal(t, "---\napiVersion: node.k8s.io/v1\nhandler: nvidia\nkind: RuntimeClass\nmetadata:\n  name: nvidia\n", all[0].Contents)
}

func TestCoreDNSIsReplacedWhole(t *testing.T) {
	t.Parallel()
	all := dayZero(t, manifests.Input{Config: clusterConfig(func(c *spec.Config) {
		c.Cluster.ServiceSubnets = []string{"10.26.0.0/16", "fd00:10:26::/112"}
		c.Manifests.CoreDNS = &spec.CoreDNS{Corefile: spec.Ptr(spec.Text(".:53 {\n    forward . 10.0.0.53\n}\n")), Replicas: spec.Ptr(3)}
	})})
	require.Equal(t, []string{"001-coredns"}, names(all))
	objects := documents(t, all[0].Contents)
	service := find(t, objects, "Service", "kube-dns")
	assert.Equal(t, "10.26.0.10", at(service, "spec", "clusterIP"))
	assert.Equal(t, []any{"10.26.0.10", "fd00:10:26::a"}, at(service, "spec", "clusterIPs"))
	assert.Equal(t, ".:53 {\n    forward . 10.0.0.53\n}\n", at(find(t, objects, "ConfigMap", "coredns"), "data", "Corefile"))
	assert.EqualValues(t, 3, at(find(t, objects, "Deployment", "coredns"), "spec", "replicas"))
	find(t, objects, "ClusterRole", "system:coredns")
	find(t, objects, "ClusterRoleBinding", "system:coredns")
	find(t, objects, "ServiceAccount", "coredns")
}

func TestApproverOfKubeletsCertificates(t *testing.T) {
	t.Parallel()
	rotating := func(approver *spec.CertificateApprover) func(*spec.Config) {
		return func(c *spec.Config) {
			c.Kubernetes.Kubelet = &spec.Kubelet{RotateServerCertificates: spec.Ptr(true), CertificateApprover: approver}
		}
	}
	all := dayZero(t, manifests.Input{Config: clusterConfig(rotating(nil))})
	require.Equal(t, []string{"001-kubelet-serving-cert-approver"}, names(all))
	objects := documents(t, all[0].Contents)
	pod := at(find(t, objects, "Deployment", "kubelet-serving-cert-approver"), "spec", "template", "spec")
	assert.Equal(t, "ghcr.io/alex1989hu/kubelet-serving-cert-approver:0.9.1", at(at(pod, "containers").([]any)[0], "image"))
	role := find(t, objects, "ClusterRole", "kubelet-serving-cert-approver")
	assert.Contains(t, at(role, "rules"), map[string]any{
		"apiGroups": []any{"certificates.k8s.io"}, "resources": []any{"signers"}, "verbs": []any{"approve"},
		"resourceNames": []any{"kubernetes.io/kubelet-serving"},
	}, "no other certificate is signed off")

	assert.Empty(t, dayZero(t, manifests.Input{Config: clusterConfig(rotating(&spec.CertificateApprover{Enabled: spec.Ptr(false)}))}))
	assert.Empty(t, dayZero(t, manifests.Input{Config: clusterConfig()}))
}

func TestChartsObjectsLiveInTheReleasesNamespace(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	writeChart(t, dir, "scopes", "apiVersion: v1\nkind: ConfigMap\nmetadata:\n  name: bare\n---\n"+
		"apiVersion: v1\nkind: ConfigMap\nmetadata:\n  name: own\n  namespace: other\n---\n"+
		"apiVersion: rbac.authorization.k8s.io/v1\nkind: ClusterRole\nmetadata:\n  name: wide\n---\n"+
		"apiVersion: apiextensions.k8s.io/v1\nkind: CustomResourceDefinition\nmetadata:\n  name: as.example.com\n"+
		"spec: {group: example.com, scope: Namespaced, names: {kind: A}}\n---\n"+
		"apiVersion: example.com/v1\nkind: A\nmetadata:\n  name: defined\n---\n"+
		"apiVersion: example.com/v1\nkind: B\nmetadata:\n  name: unknown\n")
	cfg := clusterConfig(func(c *spec.Config) {
		c.Manifests.Charts = map[string]spec.DayZeroChart{"c": {
			Chart: spec.Chart{Repository: spec.Ptr("."), Name: spec.Ptr("scopes")}, Namespace: spec.Ptr("mine"),
		}}
	})
	objects := documents(t, dayZero(t, manifests.Input{Config: cfg, Charts: manifests.Cache{ProjectDir: dir}})[0].Contents)
	for name, want := range map[[2]string]any{
		{"ConfigMap", "bare"}: "mine", {"ConfigMap", "own"}: "other", {"ClusterRole", "wide"}: nil,
		{"CustomResourceDefinition", "as.example.com"}: nil, {"A", "defined"}: "mine", {"B", "unknown"}: nil,
	} {
		assert.Equal(t, want, at(find(t, objects, name[0], name[1]), "metadata", "namespace"), name)
	}
}

func TestChartForAnotherKubernetesIsRefused(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	writeChart(t, dir, "newer", "")
	path := filepath.Join(dir, "newer", "Chart.yaml")
	text, err := os.ReadFile(path)
	require.NoError(t, err)
	require.NoError(t, os.WriteFile(path, append(text, "kubeVersion: '>=1.36.0-0'\n"...), 0o600))
	cfg := clusterConfig(func(c *spec.Config) {
		c.Manifests.Charts = map[string]spec.DayZeroChart{"c": {Chart: spec.Chart{Repository: spec.Ptr("."), Name: spec.Ptr("newer")}}}
	})
	_, err = manifests.DayZero(context.Background(), manifests.Input{Config: cfg, Charts: manifests.Cache{ProjectDir: dir}})
	assert.EqualError(t, err, "manifests.charts.c: rendering chart newer 1.2.3: the chart wants Kubernetes >=1.36.0-0, "+
		"and the cluster has v1.35.0: choose a version of the chart that fits, or another kubernetes.version")
}
