// SPDX-License-Identifier: Apache-2.0
// Copyright the talos-proxmox authors.

package talos

import (
	"encoding/json"
	"slices"
	"strings"
	"testing"

	"github.com/pulumi/pulumi/sdk/v3/go/common/resource"
	"github.com/pulumi/pulumi/sdk/v3/go/pulumi"
	"github.com/siderolabs/talos/pkg/machinery/config/generate/secrets"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/talos-proxmox/talos-proxmox/components/internal/stash"
	"github.com/talos-proxmox/talos-proxmox/internal/preflight"
	"github.com/talos-proxmox/talos-proxmox/internal/pulumitest"
	"github.com/talos-proxmox/talos-proxmox/internal/talossecrets"
	"github.com/talos-proxmox/talos-proxmox/spec"
)

// fiveNodes returns a cluster of three control planes and two workers.
func fiveNodes() spec.Config {
	cfg := spec.Config{
		Proxmox: spec.Proxmox{Hosts: map[string]spec.Host{"pve": {}}},
		Cluster: spec.Cluster{Name: spec.Ptr("test"), VIP: spec.Ptr("10.0.0.100")},
		Images:  map[string]spec.Image{"default": {}},
	}
	for i, name := range []string{"cp-1", "cp-2", "cp-3", "w-1", "w-2"} {
		role := spec.ControlPlane
		if strings.HasPrefix(name, "w") {
			role = spec.Worker
		}
		cfg.Nodes = append(cfg.Nodes, spec.NamedNode{Name: name, Node: spec.Node{
			Role: &role, Host: spec.Ptr("pve"), VMID: spec.Ptr(801 + i),
			Networks: map[string]spec.Network{"vmbr0": {
				Address: spec.Ptr("10.0.0." + string(rune('1'+i)) + "/24"), Gateway: spec.Ptr("10.0.0.254"),
			}},
		}})
	}

	return cfg.WithDefaults()
}

// registered runs what registers a cluster, and something that is installed in it. In a run that creates the cluster
// the hook on its version of Kubernetes has run before that is registered.
func registered(t *testing.T, cfg spec.Config, creates bool) func(name string) []string {
	t.Helper()

	bundle, err := secrets.NewBundle(secrets.NewClock(), nil)
	require.NoError(t, err)
	text, err := json.Marshal(talossecrets.Of(bundle))
	require.NoError(t, err)
	var made map[string]any
	require.NoError(t, json.Unmarshal(text, &made))

	var session *Session
	r := &pulumitest.Recorder{State: func(args pulumi.MockResourceArgs) (string, resource.PropertyMap) {
		outputs := args.Inputs.Copy()
		switch {
		case args.Name == "test-kubernetes":
			session.isNew.Store(creates)
		case args.TypeToken == "talos:machine/secrets:Secrets":
			outputs["machineSecrets"] = resource.NewPropertyValue(made)
			outputs["clientConfiguration"] = resource.NewPropertyValue(map[string]any{
				"caCertificate": "Y2E=", "clientCertificate": "Y2VydA==", "clientKey": "a2V5",
			})
		case args.TypeToken == "talos:cluster/kubeconfig:Kubeconfig":
			outputs["kubeconfigRaw"] = resource.NewStringProperty("the kubeconfig")
		}
		if args.TypeToken == "pulumi:index:Stash" {
			outputs["output"] = outputs["input"]
		}

		return args.Name + "-id", outputs
	}}
	require.NoError(t, r.Run(false, func(ctx *pulumi.Context) error {
		checked, err := Check(ctx.Context(), Request{Name: "test", Request: preflight.Request{Config: cfg}})
		if err != nil {
			return err
		}
		session = NewSession(ctx, "test", cfg)
		parent, err := pulumi.NewStash(ctx, "parent", &pulumi.StashArgs{Input: pulumi.String("")})
		if err != nil {
			return err
		}
		made, err := RegisterSecrets(session, parent, nil)
		if err != nil {
			return err
		}
		built, err := Register(&Build{Session: session, Config: cfg, Name: "test", Parent: parent, Secrets: made, Checked: checked})
		if err != nil {
			return err
		}
		_, err = stash.Remember(ctx, "installed", "something", stash.On[string]{}, built.Start.After)

		return err
	}))

	return func(name string) []string {
		var names []string
		for _, urn := range r.Register(name).GetDependencies() {
			names = append(names, urn[strings.LastIndex(urn, "::")+2:])
		}
		slices.Sort(names)

		return slices.Compact(names)
	}
}

func TestACreationWaitsForNobodyWithoutNeed(t *testing.T) {
	t.Parallel()

	after := registered(t, fiveNodes(), true)

	for _, node := range []string{"cp-1", "cp-2", "cp-3", "w-1", "w-2"} {
		assert.NotContains(t, strings.Join(after("test-"+node), " "), "test-cp", "the configuration of %s", node)
		assert.NotContains(t, strings.Join(after("test-"+node), " "), "test-w", "the configuration of %s", node)
		assert.ElementsMatch(t, []string{"test-" + node, "test-default-image-edit", "test-kubernetes", "test-members"}, after("test-"+node+"-version"))
	}
	assert.Equal(t, []string{"test-cp-1"}, after("test-bootstrap"))
	assert.Equal(t, []string{"test-bootstrap", "test-kubernetes", "test-secrets"}, after("test-kubeconfig"))
	assert.Equal(t, []string{"test-kubeconfig", "test-kubernetes"}, after("installed"), "not for the nodes that join")
}

func TestALivingClusterIsChangedNodeByNode(t *testing.T) {
	t.Parallel()

	after := registered(t, fiveNodes(), false)

	for node, earlier := range map[string]string{"cp-2": "cp-1", "cp-3": "cp-2", "w-1": "cp-3", "w-2": "w-1"} {
		assert.Contains(t, after("test-"+node), "test-"+earlier)
	}
	for _, node := range []string{"cp-1", "cp-2", "cp-3", "w-1", "w-2"} {
		assert.Contains(t, after("test-kubeconfig"), "test-"+node)
		assert.Contains(t, after("test-ready"), "test-"+node+"-version")
	}
	assert.Equal(t, []string{"test-kubeconfig", "test-kubernetes", "test-ready"}, after("installed"))
}

func TestWithoutAPodNetworkNothingIsInstalledEarly(t *testing.T) {
	t.Parallel()

	cfg := fiveNodes()
	cfg.CNI.Name, cfg.Lifecycle.SkipKubernetesChecks = spec.Ptr("none"), spec.Ptr(true)

	assert.Equal(t, []string{"test-kubeconfig", "test-ready"}, registered(t, cfg, true)("installed"))
}

// TestAMachineIsAnew holds machines against those that the last state has: an adopted one says nothing there, and is none
// that this run makes.
func TestAMachineIsAnew(t *testing.T) {
	t.Parallel()
	known := madeBefore{"cp-1": "a", "adopted": ""}
	assert.False(t, known.isAnew("cp-1", "a"))
	assert.True(t, known.isAnew("cp-1", "b"), "it was replaced")
	assert.True(t, known.isAnew("w-1", "c"), "it joins")
	assert.False(t, known.isAnew("adopted", "d"))
	assert.False(t, known.isAnew("cp-1", ""), "nobody says which it is")
}
