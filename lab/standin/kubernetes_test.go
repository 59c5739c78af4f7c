// SPDX-License-Identifier: Apache-2.0
// Copyright the talos-proxmox authors.

package standin_test

import (
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/pulumi/pulumi/sdk/v3/go/common/resource"
	pulumirpc "github.com/pulumi/pulumi/sdk/v3/proto/go"
	"github.com/siderolabs/talos/pkg/machinery/config"
	"github.com/siderolabs/talos/pkg/machinery/config/generate/secrets"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	client "k8s.io/client-go/kubernetes"
	"k8s.io/client-go/tools/clientcmd"
	"k8s.io/client-go/tools/clientcmd/api"

	"github.com/talos-proxmox/talos-proxmox/lab/kube"
	"github.com/talos-proxmox/talos-proxmox/lab/site/guest"
	"github.com/talos-proxmox/talos-proxmox/lab/standin/bridge"
)

// realCluster starts a real API server and returns its kubeconfig.
func realCluster(t *testing.T) (string, *kube.Cluster) {
	t.Helper()

	binary, err := filepath.Abs(filepath.Join("..", "..", "bin", "lab-kubernetes"))
	require.NoError(t, err)
	if _, err := os.Stat(binary); err != nil {
		t.Skip("SKIPPED, bin/lab-kubernetes is missing: run `make tools`")
	}

	b, err := secrets.NewBundle(secrets.NewFixedClock(time.Now()), config.TalosVersionCurrent)
	require.NoError(t, err)

	c, err := kube.Start(t.Context(), kube.Config{
		Name: "standin", Dir: t.TempDir(), Binary: binary,
		CACert: b.Certs.K8s.Crt, CAKey: b.Certs.K8s.Key,
		AggregatorCACert: b.Certs.K8sAggregator.Crt, AggregatorCAKey: b.Certs.K8sAggregator.Key,
		ServiceAccountKey: b.Certs.K8sServiceAccount.Key,
		CertSANs:          []string{"127.0.0.1"}, Version: "v1.35.0", Clock: guest.Clock{Speed: 60},
	})
	require.NoError(t, err)
	t.Cleanup(func() { _ = c.Stop() })

	admin := c.AdminConfig()
	text, err := clientcmd.Write(api.Config{
		CurrentContext: "lab",
		Contexts:       map[string]*api.Context{"lab": {Cluster: "lab", AuthInfo: "admin"}},
		Clusters: map[string]*api.Cluster{"lab": {
			Server: admin.Host, CertificateAuthorityData: admin.CAData, TLSServerName: admin.ServerName,
		}},
		AuthInfos: map[string]*api.AuthInfo{"admin": {
			ClientCertificateData: admin.CertData, ClientKeyData: admin.KeyData, Token: admin.BearerToken,
		}},
	})
	require.NoError(t, err)

	return string(text), c
}

func kubernetes(t *testing.T, kubeconfig string) engine {
	t.Helper()

	e := attach(t, serve(t, "kubernetes"))
	require.NoError(t, e.configure(bridge.Tree{"kubeconfig": kubeconfig}))

	return e
}

func TestObjectsOnARealAPIServer(t *testing.T) {
	t.Parallel()

	kubeconfig, c := realCluster(t)
	e := kubernetes(t, kubeconfig)
	k, err := client.NewForConfig(c.AdminConfig())
	require.NoError(t, err)

	ns := urn("kubernetes:core/v1:Namespace", "apps")
	in, problems := e.check(ns, bridge.Tree{"metadata": bridge.Tree{"name": "apps"}}.Properties(), nil)
	require.Empty(t, problems)
	id, nsOut, err := e.create(ns, in, false)
	require.NoError(t, err)
	assert.Equal(t, "apps", id)

	// A secret without a name gets one; its values stay secret though the program did not say so.
	su := urn("kubernetes:core/v1:Secret", "key")
	secretIn, problems := e.check(su, bridge.Tree{
		"metadata": bridge.Tree{"namespace": "apps"}, "stringData": bridge.Tree{"age.agekey": "AGE-SECRET-KEY-1"},
	}.Properties(), nil)
	require.Empty(t, problems)
	_, planned, err := e.create(su, secretIn, true)
	require.NoError(t, err)
	assert.True(t, planned["data"].IsSecret())

	id, out, err := e.create(su, secretIn, false)
	require.NoError(t, err)
	assert.Regexp(t, `^apps/key-[0-9a-f]{8}$`, id)
	assert.True(t, out["data"].IsSecret())

	name := bridge.TreeOf(secretIn).Str("metadata.name")
	live, err := k.CoreV1().Secrets("apps").Get(t.Context(), name, metav1.GetOptions{})
	require.NoError(t, err)
	assert.Equal(t, "AGE-SECRET-KEY-1", string(live.Data["age.agekey"]))

	r := e.read(su, id, secretIn, out)
	d := e.diff(su, id, e.unmarshal(r.GetInputs()), e.unmarshal(r.GetProperties()), secretIn)
	assert.Equal(t, pulumirpc.DiffResponse_DIFF_NONE, d.GetChanges(), "no drift: %v", d.GetDiffs())

	changed, _ := e.check(su, bridge.Tree{
		"metadata": bridge.Tree{"namespace": "apps"}, "stringData": bridge.Tree{"age.agekey": "AGE-SECRET-KEY-2"},
	}.Properties(), secretIn)
	d = e.diff(su, id, secretIn, out, changed)
	assert.NotEmpty(t, d.GetReplaces(), "a Secret is replaced unless enableSecretMutable")
	assert.False(t, d.GetDeleteBeforeReplace(), "one with a generated name is made first")

	// What the API refuses, a preview refuses.
	_, _, err = e.create(urn("kubernetes:core/v1:Service", "web"), bridge.Tree{
		"apiVersion": "v1", "kind": "Service", "metadata": bridge.Tree{"name": "web", "namespace": "apps"},
		"spec": bridge.Tree{"ports": []bridge.Tree{{"port": 99999}}},
	}.Properties(), true)
	assert.ErrorContains(t, err, `Service "web" is invalid: [spec.ports[0].port: Invalid value: 99999: must be between`)

	require.NoError(t, e.remove(ns, "apps", in, nsOut), "a namespace is gone when deletion returns")
	_, err = k.CoreV1().Namespaces().Get(t.Context(), "apps", metav1.GetOptions{})
	assert.Error(t, err)
	assert.Empty(t, e.read(su, id, secretIn, out).GetId())
}

func TestReleaseOnARealAPIServer(t *testing.T) {
	t.Parallel()

	kubeconfig, c := realCluster(t)
	e := kubernetes(t, kubeconfig)
	k, err := client.NewForConfig(c.AdminConfig())
	require.NoError(t, err)

	chart := t.TempDir()
	require.NoError(t, os.Mkdir(filepath.Join(chart, "templates"), 0o700))
	for file, text := range map[string]string{
		"Chart.yaml":          "apiVersion: v2\nname: demo\nversion: 1.2.3\nappVersion: 9.9.9\n",
		"values.yaml":         "greeting: hi\n",
		"templates/demo.yaml": "apiVersion: v1\nkind: ConfigMap\nmetadata:\n  name: demo\ndata:\n  greeting: {{ .Values.greeting }}\n",
	} {
		require.NoError(t, os.WriteFile(filepath.Join(chart, file), []byte(text), 0o600))
	}

	u := urn("kubernetes:helm.sh/v3:Release", "demo")
	args := bridge.Tree{
		"chart": chart, "name": "demo", "namespace": "demo", "createNamespace": true,
		"values": bridge.Tree{"greeting": "hello"},
	}
	in, problems := e.check(u, args.Properties(), nil)
	require.Empty(t, problems)

	id, out, err := e.create(u, in, false)
	require.NoError(t, err)
	assert.Equal(t, "demo/demo", id)
	assert.Equal(t, "deployed", bridge.TreeOf(out).Str("status.status"))
	assert.Equal(t, []string{"demo"}, bridge.TreeOf(out).Strs("resourceNames.ConfigMap/v1"))

	m, err := k.CoreV1().ConfigMaps("demo").Get(t.Context(), "demo", metav1.GetOptions{})
	require.NoError(t, err)
	assert.Equal(t, "hello", m.Data["greeting"])

	next, _ := e.check(u, with(args, "values", bridge.Tree{"greeting": "again"}).Properties(), in)
	d := e.diff(u, id, in, out, next)
	assert.Equal(t, []string{"values.greeting"}, d.GetDiffs())
	out, err = e.update(u, id, in, out, next)
	require.NoError(t, err)
	assert.Equal(t, 2, bridge.TreeOf(out).Int("status.revision"))

	require.NoError(t, e.remove(u, id, next, out))
	_, err = k.CoreV1().ConfigMaps("demo").Get(t.Context(), "demo", metav1.GetOptions{})
	require.Error(t, err)
	assert.Empty(t, e.read(u, id, next, out).GetId())
}

// nowhere is a kubeconfig of a cluster that does not answer.
const nowhere = `apiVersion: v1
kind: Config
current-context: x
contexts: [{name: x, context: {cluster: x, user: x}}]
clusters: [{name: x, cluster: {server: "https://127.0.0.1:1"}}]
users: [{name: x, user: {}}]
`

func TestUnreachableCluster(t *testing.T) {
	t.Parallel()

	e := kubernetes(t, nowhere)
	u := urn("kubernetes:core/v1:ConfigMap", "a")
	in, problems := e.check(u, bridge.Tree{"metadata": bridge.Tree{"name": "a"}}.Properties(), nil)
	require.Empty(t, problems)
	assert.Equal(t, "default", bridge.TreeOf(in).Str("metadata.namespace"))

	_, planned, err := e.create(u, in, true)
	require.NoError(t, err, "a preview works")
	assert.Equal(t, in, planned, "nothing is known but what the program says")

	_, _, err = e.create(u, in, false)
	require.ErrorContains(t, err, "configured Kubernetes cluster is unreachable: unable to load schema information")
	err = e.remove(u, "default/a", in, in)
	require.ErrorContains(t, err, `PULUMI_K8S_DELETE_UNREACHABLE environment variable set to "true"`)

	lenient := attach(t, serve(t, "kubernetes"))
	require.NoError(t, lenient.configure(bridge.Tree{"kubeconfig": nowhere, "deleteUnreachable": "true"}))
	require.NoError(t, lenient.remove(u, "default/a", in, in))
}

func TestProviderReplacement(t *testing.T) {
	t.Parallel()

	e := attach(t, serve(t, "kubernetes"))
	u := urn("pulumi:providers:kubernetes", "k")
	other := "apiVersion: v1\nkind: Config\ncurrent-context: x\n" +
		"contexts: [{name: x, context: {cluster: x, user: x}}]\n" +
		"clusters: [{name: x, cluster: {server: \"https://127.0.0.1:2\"}}]\nusers: [{name: x, user: {}}]\n"
	unknown := resource.PropertyMap{"kubeconfig": resource.MakeComputed(resource.NewProperty(""))}

	for name, c := range map[string]struct {
		was, now resource.PropertyMap
		replaces []string
	}{
		"another cluster":        {bridge.Tree{"kubeconfig": nowhere}.Properties(), bridge.Tree{"kubeconfig": other}.Properties(), []string{"kubeconfig"}},
		"not known yet":          {bridge.Tree{"kubeconfig": nowhere}.Properties(), unknown, []string{"kubeconfig"}},
		"another, same identity": {bridge.Tree{"kubeconfig": nowhere, "clusterIdentifier": "a"}.Properties(), bridge.Tree{"kubeconfig": other, "clusterIdentifier": "a"}.Properties(), nil},
		"another identity":       {bridge.Tree{"kubeconfig": nowhere, "clusterIdentifier": "a"}.Properties(), bridge.Tree{"kubeconfig": nowhere, "clusterIdentifier": "b"}.Properties(), []string{"clusterIdentifier"}},
		"other credentials":      {bridge.Tree{"kubeconfig": nowhere}.Properties(), bridge.Tree{"kubeconfig": nowhere + "# renewed\n"}.Properties(), nil},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			d, err := e.rpc.DiffConfig(t.Context(), &pulumirpc.DiffRequest{
				Urn: string(u), OldInputs: e.marshal(c.was), Olds: e.marshal(c.was), News: e.marshal(c.now),
			})
			require.NoError(t, err)
			assert.ElementsMatch(t, c.replaces, d.GetReplaces())
		})
	}
}
