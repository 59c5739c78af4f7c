// SPDX-License-Identifier: Apache-2.0
// Copyright the talos-proxmox authors.

package manifests_test

import (
	"context"
	"encoding/json"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	apiextensions "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	"k8s.io/apiextensions-apiserver/pkg/apiserver/validation"
	"sigs.k8s.io/yaml"

	"github.com/talos-proxmox/talos-proxmox/internal/cluster"
	"github.com/talos-proxmox/talos-proxmox/internal/kubeapply"
	"github.com/talos-proxmox/talos-proxmox/internal/manifests"
	"github.com/talos-proxmox/talos-proxmox/internal/versions"
	"github.com/talos-proxmox/talos-proxmox/spec"
)

// documents returns the objects in a manifest.
func documents(t *testing.T, text string) []map[string]any {
	t.Helper()
	var all []map[string]any
	for _, part := range strings.Split("\n"+text, "\n---\n") {
		var o map[string]any
		require.NoError(t, yaml.Unmarshal([]byte(part), &o), part)
		if o != nil {
			all = append(all, o)
		}
	}

	return all
}

// find returns the object of that kind and name.
func find(t *testing.T, all []map[string]any, kind, name string) map[string]any {
	t.Helper()
	for _, o := range all {
		meta, _ := o["metadata"].(map[string]any)
		if o["kind"] == kind && meta["name"] == name {
			return o
		}
	}
	require.Failf(t, "not found", "%s %s", kind, name)

	return nil
}

// at returns what stands at a path of keys.
func at(o any, path ...string) any {
	for _, key := range path {
		m, _ := o.(map[string]any)
		o = m[key]
	}

	return o
}

func TestCiliumIsRenderedForTalos(t *testing.T) {
	t.Parallel()
	all := dayZero(t, input(t, clusterConfig(withCilium(t, nil))))
	require.Equal(t, []string{"001-cilium"}, names(all))
	objects := documents(t, all[0].Contents)

	config := at(find(t, objects, "ConfigMap", "cilium-config"), "data")
	for key, want := range map[string]string{
		"ipam": "kubernetes", "cgroup-root": "/sys/fs/cgroup", "kube-proxy-replacement": "true", "enable-hubble": "false",
	} {
		assert.Equal(t, want, at(config, key), key)
	}
	agent := at(find(t, objects, "DaemonSet", "cilium"), "spec", "template", "spec", "containers").([]any)[0]
	assert.Contains(t, at(agent, "env"), map[string]any{"name": "KUBERNETES_SERVICE_HOST", "value": "localhost"})
	assert.Contains(t, at(agent, "env"), map[string]any{"name": "KUBERNETES_SERVICE_PORT", "value": "7445"})
	assert.NotContains(t, at(agent, "securityContext", "capabilities", "add"), "SYS_MODULE")
	for _, o := range objects {
		assert.NotEqual(t, "Pod", o["kind"], "tests of the chart are no manifests")
	}
}

func TestCiliumIsTheSameAtEveryRender(t *testing.T) {
	t.Parallel()
	cfg := clusterConfig(withCilium(t, func(c *spec.Cilium) { c.Hubble = spec.Ptr(true) }))
	first := dayZero(t, input(t, cfg))
	assert.Equal(t, first, dayZero(t, input(t, cfg)))

	secrets := documents(t, first[0].Contents)
	for _, name := range []string{"cilium-ca", "hubble-server-certs", "hubble-relay-client-certs"} {
		find(t, secrets, "Secret", name)
	}
}

func TestCiliumThatMakesUpCertificatesIsRefused(t *testing.T) {
	t.Parallel()
	cfg := clusterConfig(withCilium(t, func(c *spec.Cilium) {
		c.Chart.Values = spec.Ptr(spec.Text("hubble: {enabled: true, tls: {auto: {enabled: true, method: helm}}}\n"))
	}))
	_, err := manifests.DayZero(context.Background(), input(t, cfg))
	assert.EqualError(t, err, "cni.cilium.chart: chart cilium 1.18.4 renders differently each time: Secret hubble-server-certs; "+
		"give the certificates or passwords that it makes up as values")
}

func TestCiliumValuesOverride(t *testing.T) {
	t.Parallel()
	cfg := clusterConfig(withCilium(t, func(c *spec.Cilium) {
		c.Chart.Values = spec.Ptr(spec.Text("operator: {replicas: 1}\nkubeProxyReplacement: false\n"))
	}))
	objects := documents(t, dayZero(t, input(t, cfg))[0].Contents)
	assert.EqualValues(t, 1, at(find(t, objects, "Deployment", "cilium-operator"), "spec", "replicas"))
	assert.Equal(t, "false", at(find(t, objects, "ConfigMap", "cilium-config"), "data", "kube-proxy-replacement"))

	wrong := clusterConfig(withCilium(t, func(c *spec.Cilium) { c.Chart.Values = spec.Ptr(spec.Text("- hunter2")) }))
	_, err := manifests.DayZero(context.Background(), input(t, wrong))
	assert.EqualError(t, err, "cni.cilium.chart.values: the values are not a YAML object: error unmarshaling JSON: "+
		"while decoding JSON: json: cannot unmarshal array into Go value of type map[string]interface {}")
}

// announcing turns everything on that makes objects of Cilium's own kinds.
func announcing(c *spec.Cilium) {
	c.L2 = &spec.CiliumL2{Interfaces: []string{"^eth0$"}}
	c.Pools = map[string]spec.CiliumPool{
		"first":  {Start: spec.Ptr("10.10.1.10"), Stop: spec.Ptr("10.10.1.15")},
		"second": {CIDR: spec.Ptr("10.10.2.0/24")},
	}
	c.BGP = &spec.CiliumBGP{LocalASN: 64512, Peers: map[string]spec.BGPPeer{
		"router": {Address: "10.10.1.1", ASN: 64513, Password: spec.Ptr(spec.NewSecret("s3cret"))},
	}}
	c.GatewayAPI = &spec.GatewayAPI{APIServer: &spec.GatewayAPIServer{
		Hostname: "api.example.com", Address: spec.Ptr("10.10.1.10"), Port: spec.Ptr(6443),
	}}
	c.DefaultDeny = spec.Ptr(true)
}

func TestCiliumObjectsFitTheChartsDefinitions(t *testing.T) {
	t.Parallel()
	cfg := clusterConfig(withCilium(t, announcing))
	all := dayZero(t, input(t, cfg))
	require.Equal(t, []string{
		"001-cilium", "002-cilium-announcements", "003-kubernetes-api-gateway", "004-cilium-default-deny",
	}, names(all))
	definitions := ciliumDefinitions(t)
	checked := 0
	for _, m := range all[1:] {
		for _, o := range documents(t, m.Contents) {
			if o["kind"] == "Secret" || strings.HasPrefix(o["apiVersion"].(string), "gateway.") {
				continue
			}
			validate, ok := definitions[o["apiVersion"].(string)+"/"+o["kind"].(string)]
			require.True(t, ok, "%s %s", o["apiVersion"], o["kind"])
			assert.Empty(t, validate(o), "%s %v", o["kind"], o)
			checked++
		}
	}
	assert.Equal(t, 8, checked)
	denied := documents(t, all[3].Contents)
	require.Len(t, denied, 2)
	assert.Equal(t, "reserved:ingress", at(denied[0], "spec", "endpointSelector", "matchExpressions").([]any)[0].(map[string]any)["key"],
		"what denies everything else lets Gateways work")

	withoutGateway := clusterConfig(withCilium(t, func(c *spec.Cilium) { c.DefaultDeny = spec.Ptr(true) }))
	alone := dayZero(t, input(t, withoutGateway))
	assert.Len(t, documents(t, alone[len(alone)-1].Contents), 1)

	config := at(find(t, documents(t, all[0].Contents), "ConfigMap", "cilium-config"), "data")
	for _, key := range []string{"enable-l2-announcements", "enable-bgp-control-plane", "enable-gateway-api"} {
		assert.Equal(t, "true", at(config, key), key)
	}
	urls, err := manifests.ExtraURLs(cfg)
	require.NoError(t, err)
	require.Len(t, urls, 6)
	assert.Equal(t, "https://raw.githubusercontent.com/kubernetes-sigs/gateway-api/v1.2.0/config/crd/standard/"+
		"gateway.networking.k8s.io_gatewayclasses.yaml", urls[0])
}

// ciliumDefinitions returns the validators of Cilium's kinds, by "version/Kind".
func ciliumDefinitions(t *testing.T) map[string]func(map[string]any) []string {
	t.Helper()
	files, err := filepath.Glob(filepath.Join(ciliumDir(t), "pkg/k8s/apis/cilium.io/client/crds/*/*.yaml"))
	require.NoError(t, err)
	all := map[string]func(map[string]any) []string{}
	for _, file := range files {
		raw, err := os.ReadFile(file)
		require.NoError(t, err)
		var crd apiextensionsv1.CustomResourceDefinition
		require.NoError(t, yaml.Unmarshal(raw, &crd))
		for _, version := range crd.Spec.Versions {
			var internal apiextensions.CustomResourceValidation
			require.NoError(t, apiextensionsv1.Convert_v1_CustomResourceValidation_To_apiextensions_CustomResourceValidation(version.Schema, &internal, nil))
			validator, _, err := validation.NewSchemaValidator(internal.OpenAPIV3Schema)
			require.NoError(t, err)
			all[crd.Spec.Group+"/"+version.Name+"/"+crd.Spec.Names.Kind] = func(o map[string]any) []string {
				var found []string
				for _, e := range validation.ValidateCustomResource(nil, o, validator) {
					found = append(found, e.Error())
				}

				return found
			}
		}
	}

	return all
}

func TestCiliumJob(t *testing.T) {
	t.Parallel()
	cfg := clusterConfig(func(c *spec.Config) {
		c.CNI = spec.CNI{Name: spec.Ptr("cilium"), Cilium: &spec.Cilium{Install: spec.Ptr("job")}}
	})
	in := input(t, cfg)
	in.Certificates = nil
	all := dayZero(t, in)
	require.Equal(t, []string{"001-cilium-install"}, names(all))
	objects := documents(t, all[0].Contents)
	job := at(find(t, objects, "Job", "cilium-install"), "spec", "template", "spec")
	assert.Equal(t, true, at(job, "hostNetwork"))
	assert.Equal(t, versions.CiliumCLIImage, at(at(job, "containers").([]any)[0], "image"))
	container := at(job, "containers").([]any)[0]
	arguments := []any{"--version", "v1.18.4", "--namespace", "kube-system", "--values", "/values/values.yaml"}
	assert.Equal(t, append([]any{"cilium", "install"}, arguments...), at(container, "command"))
	assert.Equal(t, "FallbackToLogsOnError", at(container, "terminationMessagePolicy"))
	var again kubeapply.Rerun
	annotation := at(find(t, objects, "Job", "cilium-install"), "metadata", "annotations", cluster.RerunAnnotation).(string)
	require.NoError(t, json.Unmarshal([]byte(annotation), &again))
	assert.Equal(t, kubeapply.ObjectID("v1/ServiceAccount/kube-system/cilium"), again.When)
	assert.Equal(t, []string{"cilium", "upgrade", "--version", "v1.18.4"}, again.Command[:4])
	var values map[string]any
	text := at(find(t, objects, "ConfigMap", "cilium-install"), "data", "values.yaml").(string)
	require.NoError(t, yaml.Unmarshal([]byte(text), &values))
	assert.Equal(t, "localhost", values["k8sServiceHost"])
	find(t, objects, "ServiceAccount", "cilium-install")
	find(t, objects, "ClusterRoleBinding", "cilium-install")
}

func TestEditedValuesMakeCiliumsJobAnew(t *testing.T) {
	t.Parallel()
	template := func(values string) string {
		cfg := clusterConfig(func(c *spec.Config) {
			c.CNI = spec.CNI{Name: spec.Ptr("cilium"), Cilium: &spec.Cilium{Install: spec.Ptr("job"), Chart: spec.Chart{
				Repository: spec.Ptr("oci://registry.example.com/charts"), Values: spec.Ptr(spec.Text(values)),
			}}}
		})
		in := input(t, cfg)
		in.Certificates = nil
		job := find(t, documents(t, dayZero(t, in)[0].Contents), "Job", "cilium-install")
		assert.Contains(t, at(at(job, "spec", "template", "spec", "containers").([]any)[0], "command"),
			"oci://registry.example.com/charts/cilium", "the CLI wants the chart's name in an OCI repository")

		return at(job, "spec", "template", "metadata", "annotations", "checksum/values").(string)
	}
	assert.Equal(t, template("{debug: {enabled: true}}"), template("{debug: {enabled: true}}"))
	assert.NotEqual(t, template("{debug: {enabled: true}}"), template("{debug: {enabled: false}}"))
}

func TestGatewayInFrontOfTheKubernetesAPI(t *testing.T) {
	t.Parallel()
	all := dayZero(t, input(t, clusterConfig(withCilium(t, announcing))))
	objects := documents(t, all[2].Contents)

	gateway := find(t, objects, "Gateway", "kubernetes-api")
	assert.Equal(t, "cilium", at(gateway, "spec", "gatewayClassName"))
	assert.Equal(t, []any{map[string]any{"type": "IPAddress", "value": "10.10.1.10"}}, at(gateway, "spec", "addresses"))
	listener := at(gateway, "spec", "listeners").([]any)[0]
	assert.Equal(t, "Passthrough", at(listener, "tls", "mode"), "clients see the API servers' own certificate")
	assert.Equal(t, "api.example.com", at(listener, "hostname"))
	assert.EqualValues(t, 6443, at(listener, "port"))
	route := find(t, objects, "TLSRoute", "kubernetes-api")
	assert.Equal(t, []any{"api.example.com"}, at(route, "spec", "hostnames"))
	assert.Equal(t, []any{map[string]any{"name": "kubernetes", "port": float64(443)}},
		at(at(route, "spec", "rules").([]any)[0], "backendRefs"))
}

func TestPodsOfCiliumReadEditedValues(t *testing.T) {
	t.Parallel()
	annotations := func(values string) any {
		cfg := clusterConfig(withCilium(t, func(c *spec.Cilium) { c.Chart.Values = spec.Ptr(spec.Text(values)) }))
		objects := documents(t, dayZero(t, input(t, cfg))[0].Contents)

		return at(find(t, objects, "DaemonSet", "cilium"), "spec", "template", "metadata", "annotations")
	}
	assert.NotEqual(t, annotations("{}"), annotations("debug: {enabled: true}"), "they start anew")
}
