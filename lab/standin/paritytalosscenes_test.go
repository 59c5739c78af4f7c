// SPDX-License-Identifier: Apache-2.0
// Copyright the talos-proxmox authors.

package standin_test

import (
	"crypto/x509"
	"encoding/base64"
	"fmt"
	"maps"
	"strings"
	"testing"
	"time"

	"github.com/pulumi/pulumi/sdk/v3/go/common/resource"
	talosx509 "github.com/siderolabs/crypto/x509"
	machineapi "github.com/siderolabs/talos/pkg/machinery/api/machine"
	"github.com/stretchr/testify/require"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	"github.com/talos-proxmox/talos-proxmox/lab/standin/bridge"
)

// briefly bounds what would be tried for ten minutes.
func briefly() bridge.Tree { return bridge.Tree{"create": "2s", "update": "2s"} }

// unknown returns what a plan does not know yet.
func unknown() resource.PropertyValue { return resource.MakeComputed(resource.NewProperty("")) }

// talosScenes returns all scenes by name: the resources that the program makes.
func talosScenes(t *testing.T, given talosGiven) map[string]talosScene {
	t.Helper()

	all := map[string]talosScene{}
	for name, sc := range applyScenes(given) {
		all["apply "+name] = sc
	}
	for name, sc := range kubeconfigScenes(t, given) {
		all["kubeconfig "+name] = sc
	}
	for name, sc := range schematicScenes() {
		sc.token = schematicToken
		all["schematic "+name] = sc
	}
	for name, version := range map[string]any{
		"none": nil, "without v": "1.12", "patch": "v1.12.4", "nonsense": "nonsense", "old": "v1.2", "unknown": unknown(),
	} {
		all["secrets "+name] = talosScene{token: secretsToken, inputs: bridge.Tree{"talosVersion": version}}
	}
	for name, edit := range map[string][2]string{
		"raised": {"v1.12", "v1.13"}, "lowered": {"v1.12", "v1.11"}, "patch": {"v1.12.4", "v1.12.3"}, "same": {"v1.12", "1.12"},
	} {
		all["secrets edit "+name] = talosScene{
			token: secretsToken, inputs: bridge.Tree{"talosVersion": edit[0]}, edited: bridge.Tree{"talosVersion": edit[1]},
		}
	}
	all["secrets key"] = talosScene{token: secretsToken, inputs: bridge.Tree{"talosVersion": "v1.12", "colour": "red"}}

	return all
}

// applyScenes returns configurations that are applied.
func applyScenes(given talosGiven) map[string]talosScene {
	other := strings.Replace(given.Config, "/dev/vda", "/dev/sda", 1)
	node := func(over bridge.Tree) bridge.Tree {
		in := bridge.Tree{
			"clientConfiguration": given.Client, "machineConfigurationInput": given.Config,
			"node": "127.0.0.1", "endpoint": ownNode, "applyMode": "auto",
		}
		maps.Copy(in, over)

		return in
	}
	scenes := map[string]talosScene{
		"first":      {inputs: node(nil)},
		"configured": {inputs: node(nil), configured: true},
		"secret":     {inputs: node(bridge.Tree{"machineConfigurationInput": resource.MakeSecret(resource.NewProperty(given.Config))})},
		"invalid": {inputs: node(nil), configured: true, node: &fakeNode{
			refuse: status.Error(codes.InvalidArgument, "configuration validation failed: 1 error occurred:\n\t* no disk\n\n"),
		}},
		"unreadable": {inputs: node(bridge.Tree{"timeouts": briefly()}), node: &fakeNode{
			refuse: status.Error(codes.Unknown, "unknown keys found during decoding:\nnonsense: true\n"),
		}},
		"timeouts":     {inputs: node(bridge.Tree{"timeouts": briefly()})},
		"no timeout":   {inputs: node(bridge.Tree{"timeouts": bridge.Tree{"create": "soon"}})},
		"needs reboot": {inputs: node(bridge.Tree{"applyMode": "staged_if_needing_reboot"}), node: &fakeNode{dry: machineapi.ApplyConfigurationRequest_REBOOT}},
		"no reboot":    {inputs: node(bridge.Tree{"applyMode": "staged_if_needing_reboot"}), node: &fakeNode{dry: machineapi.ApplyConfigurationRequest_NO_REBOOT}},
		"other ca":     {inputs: node(bridge.Tree{"clientConfiguration": given.Other, "timeouts": briefly()}), configured: true},
	}
	for name, over := range map[string]bridge.Tree{
		"mode": {"applyMode": "later"}, "mode staged": {"applyMode": "staged"}, "mode missing": {"applyMode": nil},
		"node missing": {"node": nil}, "client missing": {"clientConfiguration": nil}, "configuration missing": {"machineConfigurationInput": nil},
		"key missing":     {"clientConfiguration": bridge.Tree{"caCertificate": given.Client.Str("caCertificate"), "clientCertificate": given.Client.Str("clientCertificate")}},
		"no base64":       {"clientConfiguration": bridge.Tree{"caCertificate": "???", "clientCertificate": "???", "clientKey": "???"}},
		"key":             {"colour": "red"},
		"no yaml":         {"machineConfigurationInput": "a: [b"},
		"no talos":        {"machineConfigurationInput": "nonsense: true\n"},
		"empty":           {"machineConfigurationInput": ""},
		"patch":           {"configPatches": []string{"machine:\n  install:\n    disk: /dev/sdb\n"}},
		"patch no yaml":   {"configPatches": []string{"a: [b"}},
		"patch nonsense":  {"configPatches": []string{"nonsense: true\n"}},
		"not a list":      {"configPatches": "machine: {}"},
		"unknown":         {"machineConfigurationInput": unknown()},
		"unknown node":    {"node": unknown(), "endpoint": nil},
		"unknown client":  {"clientConfiguration": bridge.Tree{"caCertificate": unknown(), "clientCertificate": unknown(), "clientKey": unknown()}},
		"endpoint absent": {"endpoint": nil, "machineConfigurationInput": unknown()},
	} {
		scenes["with "+name] = talosScene{inputs: node(over)}
	}
	for name, over := range map[string]bridge.Tree{
		"configuration": {"machineConfigurationInput": other}, "mode": {"applyMode": "no_reboot"}, "client": {"clientConfiguration": given.Other},
		"node": {"node": "127.0.0.2"}, "nothing": {}, "to unknown": {"machineConfigurationInput": unknown()},
		"to nonsense": {"machineConfigurationInput": "nonsense: true\n"}, "patched": {"configPatches": []string{"machine:\n  install:\n    disk: /dev/sdb\n"}},
		"destroy": {"onDestroy": bridge.Tree{"reset": false}},
	} {
		scenes["edit "+name] = talosScene{inputs: node(nil), edited: over}
	}
	for name, sc := range scenes {
		sc.token = applyToken
		scenes[name] = sc
	}

	return scenes
}

// kubeconfigScenes returns kubeconfigs that are fetched.
func kubeconfigScenes(t *testing.T, given talosGiven) map[string]talosScene {
	t.Helper()

	long, short := &fakeNode{kubeconfig: given.Long}, &fakeNode{kubeconfig: given.Short}
	node := func(over bridge.Tree) bridge.Tree {
		in := bridge.Tree{"clientConfiguration": given.Client, "node": "127.0.0.1", "endpoint": ownNode}
		maps.Copy(in, over)

		return in
	}
	scenes := map[string]talosScene{
		"plain":     {inputs: node(nil), node: long},
		"renewal":   {inputs: node(bridge.Tree{"certificateRenewalDuration": "240h0m0s"}), node: long},
		"due":       {inputs: node(nil), node: short, edited: bridge.Tree{}},
		"refused":   {inputs: node(nil), node: &fakeNode{refuse: status.Error(codes.InvalidArgument, "kubeconfig is not here")}},
		"not yet":   {inputs: node(bridge.Tree{"timeouts": briefly()}), node: &fakeNode{refuse: status.Error(codes.FailedPrecondition, "not bootstrapped")}},
		"no config": {inputs: node(nil), node: &fakeNode{kubeconfig: "a: [b"}},
	}
	for name, over := range map[string]bridge.Tree{
		"client missing": {"clientConfiguration": nil}, "node missing": {"node": nil}, "key": {"colour": "red"},
		"no duration": {"certificateRenewalDuration": "soon"}, "unknown node": {"node": unknown(), "endpoint": nil},
		"unknown client": {"clientConfiguration": bridge.Tree{"caCertificate": unknown(), "clientCertificate": unknown(), "clientKey": unknown()}},
	} {
		scenes["with "+name] = talosScene{inputs: node(over), node: long}
	}
	for name, over := range map[string]bridge.Tree{
		"client": {"clientConfiguration": given.Other}, "node": {"node": "127.0.0.2"}, "renewal": {"certificateRenewalDuration": "240h"},
		"renewal due": {"certificateRenewalDuration": "100000h"}, "renewal nonsense": {"certificateRenewalDuration": "soon"}, "nothing": {},
	} {
		scenes["edit "+name] = talosScene{inputs: node(nil), edited: over, node: long}
	}
	for name, sc := range scenes {
		sc.token = kubeconfigToken
		scenes[name] = sc
	}

	return scenes
}

// adminConfig returns a kubeconfig whose certificate is valid for a time.
func adminConfig(t *testing.T, valid time.Duration) string {
	t.Helper()

	authority, err := talosx509.NewSelfSignedCertificateAuthority()
	require.NoError(t, err)
	admin, err := talosx509.NewKeyPair(authority, talosx509.CommonName("admin"), talosx509.NotAfter(time.Now().Add(valid)),
		talosx509.ExtKeyUsage([]x509.ExtKeyUsage{x509.ExtKeyUsageClientAuth}))
	require.NoError(t, err)
	encode := base64.StdEncoding.EncodeToString

	return fmt.Sprintf(`apiVersion: v1
kind: Config
clusters: [{name: demo, cluster: {server: "https://10.0.0.10:6443", certificate-authority-data: %s}}]
users: [{name: admin@demo, user: {client-certificate-data: %s, client-key-data: %s}}]
contexts: [{name: admin@demo, context: {cluster: demo, user: admin@demo, namespace: default}}]
current-context: admin@demo
`, encode(authority.CrtPEM), encode(admin.CrtPEM), encode(admin.KeyPEM))
}

// schematicScenes returns schematics that are registered.
func schematicScenes() map[string]talosScene {
	text := func(extension string) string {
		return "customization:\n  systemExtensions:\n    officialExtensions:\n      - siderolabs/" + extension + "\n"
	}

	return map[string]talosScene{
		"plain":      {inputs: bridge.Tree{"schematic": text("lldpd")}, about: "lldpd"},
		"vanilla":    {inputs: bridge.Tree{}},
		"no yaml":    {inputs: bridge.Tree{"schematic": "a: [b"}},
		"nonsense":   {inputs: bridge.Tree{"schematic": "nonsense-key: true\n"}, about: "nonsense-key"},
		"extension":  {inputs: bridge.Tree{"schematic": text("no-such-thing")}, about: "no-such-thing"},
		"key":        {inputs: bridge.Tree{"schematic": text("tailscale"), "colour": "red"}},
		"not text":   {inputs: bridge.Tree{"schematic": bridge.Tree{"customization": bridge.Tree{}}}},
		"unknown":    {inputs: bridge.Tree{"schematic": unknown()}},
		"edit":       {inputs: bridge.Tree{"schematic": text("iscsi-tools")}, edited: bridge.Tree{"schematic": text("util-linux-tools")}, about: "-tools"},
		"edit wrong": {inputs: bridge.Tree{"schematic": text("gvisor")}, edited: bridge.Tree{"schematic": "a: [b"}, about: "gvisor"},
	}
}
