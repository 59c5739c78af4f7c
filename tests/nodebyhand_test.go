// SPDX-License-Identifier: Apache-2.0
// Copyright the talos-proxmox authors.

package tests_test

import (
	"bytes"
	"encoding/json"
	"fmt"
	"net/http"
	"os"
	"strings"
	"testing"

	"github.com/cosi-project/runtime/pkg/safe"
	"github.com/siderolabs/talos/pkg/machinery/api/machine"
	"github.com/siderolabs/talos/pkg/machinery/client"
	"github.com/siderolabs/talos/pkg/machinery/client/config"
	"github.com/siderolabs/talos/pkg/machinery/config/encoder"
	"github.com/siderolabs/talos/pkg/machinery/config/types/v1alpha1"
	resource "github.com/siderolabs/talos/pkg/machinery/resources/config"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// byHandEnv makes this test binary, run inside the lab, do something that an operator does with talosctl.
const byHandEnv = "TESTS_BY_HAND"

// onNode does something to the node of an address: "label KEY VALUE", "recover FILE",
// "upgrade VERSION EXTENSION…" or "remove-member HOSTNAME".
func (r *running) onNode(address string, words ...string) {
	r.t.Helper()

	self, err := os.Executable()
	require.NoError(r.t, err)
	out := r.must("env", talosConfigEnv+"="+r.talosconfig, byHandEnv+"="+address+" "+strings.Join(words, " "),
		self, "-test.run=^TestByHandInLab$", "-test.v")
	assert.Contains(r.t, out.all(), "--- PASS: TestByHandInLab")
}

// TestByHandInLab does what [running.onNode] runs.
func TestByHandInLab(t *testing.T) {
	words := strings.Fields(os.Getenv(byHandEnv))
	if len(words) == 0 {
		t.Skip("runs inside the lab only: other tests start it there")
	}
	cfg, err := config.Open(os.Getenv(talosConfigEnv))
	require.NoError(t, err)
	c, err := client.New(t.Context(), client.WithConfig(cfg), client.WithEndpoints(words[0]))
	require.NoError(t, err)
	defer func() { assert.NoError(t, c.Close()) }()

	switch words[1] {
	case "label":
		require.NoError(t, label(t, c, words[2], words[3]))
	case "recover":
		content, err := os.ReadFile(words[2])
		require.NoError(t, err)
		_, err = c.EtcdRecover(t.Context(), bytes.NewReader(content))
		require.NoError(t, err)
		require.NoError(t, c.Bootstrap(t.Context(), &machine.BootstrapRequest{RecoverEtcd: true}))
	case "upgrade":
		require.NoError(t, upgradeByHand(t, c, words[2], words[3:]))
	case "remove-member":
		require.NoError(t, removeMember(t, c, words[2]))
	default:
		t.Fatalf("nobody knows %q", words[1])
	}
}

// label changes a node's label in its configuration.
func label(t *testing.T, c *client.Client, key, value string) error {
	t.Helper()
	active, err := safe.StateGetByID[*resource.MachineConfig](t.Context(), c.COSI, resource.ActiveID)
	if err != nil {
		return fmt.Errorf("reading the configuration: %w", err)
	}
	patched, err := active.Provider().PatchV1Alpha1(func(cfg *v1alpha1.Config) error {
		if cfg.MachineConfig.MachineNodeLabels == nil {
			cfg.MachineConfig.MachineNodeLabels = map[string]string{}
		}
		cfg.MachineConfig.MachineNodeLabels[key] = value

		return nil
	})
	if err != nil {
		return fmt.Errorf("changing the configuration: %w", err)
	}
	data, err := patched.EncodeBytes(encoder.WithComments(encoder.CommentsDisabled))
	if err != nil {
		return fmt.Errorf("changing the configuration: %w", err)
	}
	_, err = c.ApplyConfiguration(t.Context(), &machine.ApplyConfigurationRequest{
		Data: data, Mode: machine.ApplyConfigurationRequest_NO_REBOOT,
	})

	return err
}

// upgradeByHand has a node install a version of Talos with extensions.
func upgradeByHand(t *testing.T, c *client.Client, version string, extensions []string) error {
	t.Helper()
	schematic, err := json.Marshal(map[string]any{
		"customization": map[string]any{"systemExtensions": map[string]any{"officialExtensions": extensions}},
	})
	if len(extensions) == 0 {
		schematic = []byte("customization: {}")
	}
	require.NoError(t, err)
	request, err := http.NewRequestWithContext(t.Context(), http.MethodPost, "https://factory.talos.dev/schematics", bytes.NewReader(schematic))
	require.NoError(t, err)
	response, err := http.DefaultClient.Do(request)
	if err != nil {
		return fmt.Errorf("registering the schematic: %w", err)
	}
	defer response.Body.Close() //nolint:errcheck // read here
	var made struct {
		ID string `json:"id"`
	}
	if err := json.NewDecoder(response.Body).Decode(&made); err != nil {
		return fmt.Errorf("registering the schematic: %w", err)
	}
	//nolint:staticcheck // what talosctl of older Talos does
	_, err = c.UpgradeWithOptions(t.Context(), client.WithUpgradeImage("factory.talos.dev/nocloud-installer/"+made.ID+":"+version))

	return err
}

// removeMember takes a control plane out of etcd.
func removeMember(t *testing.T, c *client.Client, hostname string) error {
	t.Helper()
	list, err := c.EtcdMemberList(t.Context(), &machine.EtcdMemberListRequest{})
	if err != nil {
		return fmt.Errorf("listing etcd's members: %w", err)
	}
	for _, message := range list.GetMessages() {
		for _, m := range message.GetMembers() {
			if m.GetHostname() == hostname {
				return c.EtcdRemoveMemberByID(t.Context(), &machine.EtcdRemoveMemberByIDRequest{MemberId: m.GetId()})
			}
		}
	}

	return fmt.Errorf("etcd has no member %s", hostname)
}
