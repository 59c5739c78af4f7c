// SPDX-License-Identifier: Apache-2.0
// Copyright the talos-proxmox authors.

package components_test

import (
	"encoding/json"
	"fmt"
	"strings"
	"sync"
	"testing"

	"github.com/pulumi/pulumi/sdk/v3/go/common/resource"
	"github.com/pulumi/pulumi/sdk/v3/go/pulumi"
	"github.com/siderolabs/talos/pkg/machinery/config/generate/secrets"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"go.yaml.in/yaml/v3"

	"github.com/talos-proxmox/talos-proxmox/components"
	"github.com/talos-proxmox/talos-proxmox/internal/pulumitest"
	"github.com/talos-proxmox/talos-proxmox/internal/talossecrets"
	"github.com/talos-proxmox/talos-proxmox/spec"
)

// clusterConfig returns a cluster of control planes and workers on one host.
func clusterConfig(planes, workers int) spec.Config {
	cfg := spec.Config{
		Proxmox: spec.Proxmox{Hosts: map[string]spec.Host{"pve": {}}},
		Cluster: spec.Cluster{Name: spec.Ptr("test"), VIP: spec.Ptr("10.0.0.100"), VMIDBase: spec.Ptr(800)},
		Images:  map[string]spec.Image{"default": {}},
	}
	for i := range planes + workers {
		role, name := spec.ControlPlane, fmt.Sprintf("ctrl-%02d", i)
		if i >= planes {
			role, name = spec.Worker, fmt.Sprintf("work-%02d", i-planes)
		}
		cfg.Nodes = append(cfg.Nodes, spec.NamedNode{Name: name, Node: spec.Node{
			Role: &role, Host: spec.Ptr("pve"),
			VM: spec.VM{CPU: spec.Ptr(2), Memory: spec.Ptr(spec.MiB(4096))},
			Networks: map[string]spec.Network{"vmbr0": {
				Address: spec.Ptr(fmt.Sprintf("10.0.0.%d/24", i+1)), Gateway: spec.Ptr("10.0.0.254"),
			}},
		}})
	}

	return cfg
}

// theBundle is made once: service account keys are slow.
var theBundle = sync.OnceValues(func() (*secrets.Bundle, error) {
	return secrets.NewBundle(secrets.NewClock(), nil)
})

// talosState answers as the Talos provider does.
func talosState(t *testing.T, preview bool) func(pulumi.MockResourceArgs) (string, resource.PropertyMap) {
	t.Helper()
	state, err := talosAnswers(preview)
	require.NoError(t, err)

	return state
}

func talosAnswers(preview bool) (func(pulumi.MockResourceArgs) (string, resource.PropertyMap), error) {
	bundle, err := theBundle()
	if err != nil {
		return nil, err
	}
	text, err := json.Marshal(talossecrets.Of(bundle))
	if err != nil {
		return nil, err
	}
	var machineSecrets map[string]any
	if err := json.Unmarshal(text, &machineSecrets); err != nil {
		return nil, err
	}

	return func(args pulumi.MockResourceArgs) (string, resource.PropertyMap) {
		outputs := args.Inputs.Copy()
		switch {
		case args.TypeToken == "talos:machine/secrets:Secrets":
			outputs["machineSecrets"] = resource.NewPropertyValue(machineSecrets)
			outputs["clientConfiguration"] = resource.NewPropertyValue(map[string]any{
				"caCertificate": "Y2E=", "clientCertificate": "Y2VydA==", "clientKey": "a2V5",
			})
		case args.TypeToken == "talos:cluster/kubeconfig:Kubeconfig":
			outputs["kubeconfigRaw"] = resource.NewStringProperty("the kubeconfig")
		case args.TypeToken == "pulumi:index:Stash":
			outputs["output"] = outputs["input"]
		}

		if preview && !strings.HasSuffix(args.Name, "-key") {
			return "", outputs // as after a first run, but for the ids
		}

		return args.Name + "-id", outputs
	}, nil
}

// made holds a cluster whose outputs a test looks at.
type made struct {
	*pulumitest.Recorder

	mu      sync.Mutex
	outputs map[string]string
}

// makeCluster runs the component with machines that are other resources.
func makeCluster(t *testing.T, preview bool, cfg spec.Config) (*made, error) {
	t.Helper()
	m := &made{Recorder: &pulumitest.Recorder{State: talosState(t, preview)}, outputs: map[string]string{}}
	err := m.Run(preview, func(ctx *pulumi.Context) error {
		machines := map[string]pulumi.Resource{}
		for _, n := range cfg.Nodes {
			vm, err := pulumi.NewStash(ctx, "vm-"+n.Name, &pulumi.StashArgs{Input: pulumi.String(n.Name)})
			if err != nil {
				return err
			}
			machines[n.Name] = vm
		}
		c, err := components.NewTalosCluster(ctx, "test", &components.TalosClusterArgs{Config: cfg, Machines: machines})
		if err != nil {
			return err
		}
		m.watch("kubeconfig", c.Kubeconfig)
		m.watch("talosconfig", c.Talosconfig)

		return nil
	})

	return m, err
}

func (m *made) watch(name string, value pulumi.StringOutput) {
	value.ApplyT(func(text string) string {
		m.mu.Lock()
		defer m.mu.Unlock()
		m.outputs[name] = text

		return text
	})
}

func urn(kind, name string) string {
	chain := components.TalosClusterType + "$"
	if kind == "pulumi:index:Stash" && strings.HasPrefix(name, "vm-") {
		chain = ""
	}

	return "urn:pulumi:stack::project::" + chain + kind + "::" + name
}

func TestTalosClusterAppliesEveryConfigurationToItsMachine(t *testing.T) {
	t.Parallel()

	for _, preview := range []bool{true, false} {
		m, err := makeCluster(t, preview, clusterConfig(3, 2))
		require.NoError(t, err)

		names := m.Names("talos:machine/configurationApply:ConfigurationApply")
		assert.Equal(t, []string{"test-ctrl-00", "test-ctrl-01", "test-ctrl-02", "test-work-00", "test-work-01"}, names)
		for i, name := range names {
			node := strings.TrimPrefix(name, "test-")
			rpc := m.Register(name)
			assert.Equal(t, []string{urn("pulumi:index:Stash", "vm-"+node)}, rpc.GetReplaceWith(),
				"a new machine gets its configuration anew")
			assert.Contains(t, rpc.GetDependencies(), urn("pulumi:index:Stash", "vm-"+node))
			assert.ElementsMatch(t, []string{"clientConfiguration", "machineConfigurationInput", "machineConfiguration"},
				rpc.GetAdditionalSecretOutputs())

			args, _ := m.Get(name)
			assert.Equal(t, fmt.Sprintf("10.0.0.%d", i+1), args.Inputs["node"].StringValue())
			assert.Equal(t, "auto", args.Inputs["applyMode"].StringValue())
			config := args.Inputs["machineConfigurationInput"]
			require.True(t, config.IsSecret(), "a machine configuration holds keys")
			assertHostname(t, config.SecretValue().Element.StringValue(), node)
		}
	}
}

// assertHostname looks the host name up in a machine configuration.
func assertHostname(t *testing.T, config, want string) {
	t.Helper()
	assert.Contains(t, config, want)
	var first struct {
		Machine struct{ Type string }
	}
	require.NoError(t, yaml.NewDecoder(strings.NewReader(config)).Decode(&first))
	role := "controlplane"
	if strings.HasPrefix(want, "work") {
		role = "worker"
	}
	assert.Equal(t, role, first.Machine.Type)
}

func TestTalosClusterBootstrapsOnceOnTheFirstControlPlane(t *testing.T) {
	t.Parallel()

	m, err := makeCluster(t, false, clusterConfig(3, 1))
	require.NoError(t, err)

	assert.Empty(t, m.Names("talos:machine/bootstrap:Bootstrap"), "it cannot be repeated after an interruption")
	rpc := m.Register("test-bootstrap")
	require.NotNil(t, rpc)
	assert.Equal(t, []string{"pulumi:index:Stash::test-bootstrap::create"}, rpc.GetHooks().GetBeforeCreate())
	assert.Empty(t, rpc.GetHooks().GetBeforeUpdate(), "another first control plane starts nothing")
	args, _ := m.Get("test-bootstrap")
	assert.Equal(t, "once", args.Inputs["input"].StringValue(), "nor does it ever change")
	apply := urn("talos:machine/configurationApply:ConfigurationApply", "test-")
	assert.Contains(t, rpc.GetDependencies(), apply+"ctrl-00")
	for _, other := range []string{"ctrl-01", "ctrl-02", "work-00"} {
		assert.NotContains(t, rpc.GetDependencies(), apply+other, "it waits for no other node")
	}
}

func TestTalosClusterThatWasAdoptedIsNeverBootstrapped(t *testing.T) {
	t.Parallel()

	bundle, err := theBundle()
	require.NoError(t, err)
	text, err := yaml.Marshal(bundle)
	require.NoError(t, err)
	cfg := clusterConfig(1, 0)
	cfg.Cluster.Adopted, cfg.Cluster.SecretsBundle = spec.Ptr(true), spec.Ptr(spec.NewSecret(string(text)))

	m, err := makeCluster(t, false, cfg)
	require.NoError(t, err)

	assert.Nil(t, m.Register("test-bootstrap"))
	assert.Empty(t, m.Names("talos:machine/secrets:Secrets"), "the cluster has secrets")
	client, ok := m.Get("test-client")
	require.True(t, ok)
	assert.True(t, client.Inputs["input"].IsSecret())
	assert.Equal(t, []string{"input"}, m.Register("test-client").GetIgnoreChanges(), "made once")
	args, _ := m.Get("test-ctrl-00")
	assert.Contains(t, args.Inputs["machineConfigurationInput"].SecretValue().Element.StringValue(), bundle.Cluster.ID)
}

func TestTalosClusterReadyGate(t *testing.T) {
	t.Parallel()

	for _, preview := range []bool{true, false} {
		m, err := makeCluster(t, preview, clusterConfig(1, 1))
		require.NoError(t, err)

		rpc := m.Register("test-ready")
		require.NotNil(t, rpc)
		const hook = "pulumi:index:Stash::test-ready::"
		assert.Equal(t, []string{hook + "create"}, rpc.GetHooks().GetBeforeCreate())
		assert.Equal(t, []string{hook + "update"}, rpc.GetHooks().GetBeforeUpdate())
		assert.Empty(t, rpc.GetHooks().GetBeforeDelete(), "a plain destroy must work")
		assert.Equal(t, []string{urn("pulumi:index:Stash", "vm-ctrl-00"), urn("pulumi:index:Stash", "vm-work-00")},
			rpc.GetReplaceWith(), "a new machine is waited for")
		for _, before := range []string{
			urn("talos:machine/configurationApply:ConfigurationApply", "test-work-00"),
			urn("pulumi:index:Stash", "test-bootstrap"),
		} {
			assert.Contains(t, rpc.GetDependencies(), before)
		}
		args, _ := m.Get("test-ready")
		input := args.Inputs["input"].ObjectValue()
		assert.Equal(t, "v1.12.4", input["talos"].StringValue())
		node := input["nodes"].ObjectValue()["work-00"].ObjectValue()
		assert.Equal(t, "10.0.0.2", node["address"].StringValue())
		assert.Equal(t, "worker", node["role"].StringValue())
		assert.Regexp(t, "^[0-9a-f]{16}$", node["configuration"].StringValue())
	}
}

func TestTalosClusterReadyGateFollowsEveryConfiguration(t *testing.T) {
	t.Parallel()

	digest := func(cfg spec.Config, node string) string {
		m, err := makeCluster(t, false, cfg)
		require.NoError(t, err)
		args, _ := m.Get("test-ready")
		nodes := args.Inputs["input"].ObjectValue()["nodes"].ObjectValue()

		return nodes[resource.PropertyKey(node)].ObjectValue()["configuration"].StringValue()
	}
	before, after := clusterConfig(1, 1), clusterConfig(1, 1)
	after.Nodes[1].Labels = map[string]string{"tier": "gold"}

	assert.Equal(t, digest(before, "ctrl-00"), digest(after, "ctrl-00"))
	assert.NotEqual(t, digest(before, "work-00"), digest(after, "work-00"))
}

func TestTalosClusterLetsTheKubeconfigOutAsASecret(t *testing.T) {
	t.Parallel()

	m, err := makeCluster(t, false, clusterConfig(3, 1))
	require.NoError(t, err)

	assert.Equal(t, "the kubeconfig", m.outputs["kubeconfig"])
	var talosconfig struct {
		Context  string
		Contexts map[string]struct{ Endpoints, Nodes []string }
	}
	require.NoError(t, yaml.Unmarshal([]byte(m.outputs["talosconfig"]), &talosconfig))
	assert.Equal(t, []string{"10.0.0.1", "10.0.0.2", "10.0.0.3"}, talosconfig.Contexts["test"].Endpoints, "control planes only")
	assert.Equal(t, []string{"10.0.0.1", "10.0.0.2", "10.0.0.3", "10.0.0.4"}, talosconfig.Contexts["test"].Nodes)
	assert.Equal(t, []string{"clientConfiguration.caCertificate"}, m.Register("test-kubeconfig").GetReplaceOnChanges())
	assert.Equal(t, "https://10.0.0.100:6443", m.Register("test-kubeconfig").GetReplacementTrigger().GetStringValue(),
		"another endpoint is another kubeconfig")

	m, err = makeCluster(t, true, clusterConfig(3, 1))
	require.NoError(t, err)
	assert.NotContains(t, m.outputs, "kubeconfig", "it is not let out before the gate is there")
}

func TestTalosClusterIsCheckedBeforeAnythingIsRegistered(t *testing.T) {
	t.Parallel()

	cfg := clusterConfig(1, 0)
	cfg.Talos.Sysctls = map[string]string{"kernel.panic": "10"}
	cfg.Talos.Patches.All = []spec.Patch{{Inline: spec.Ptr(spec.Text("machine: {nonsense: true}"))}}

	m, err := makeCluster(t, true, cfg)

	require.Error(t, err)
	assert.Contains(t, err.Error(), "talos.patches.all")
	assert.Empty(t, m.Names("talos:machine/secrets:Secrets"))
}
