// SPDX-License-Identifier: Apache-2.0
// Copyright the talos-proxmox authors.

package talos

import (
	"context"
	"fmt"
	"net/url"
	"strings"

	"github.com/siderolabs/talos/pkg/machinery/config"
	"github.com/siderolabs/talos/pkg/machinery/config/bundle"
	"github.com/siderolabs/talos/pkg/machinery/config/configpatcher"
	"github.com/siderolabs/talos/pkg/machinery/config/encoder"
	"github.com/siderolabs/talos/pkg/machinery/config/generate"
	talosmachine "github.com/siderolabs/talos/pkg/machinery/config/machine"
	"github.com/siderolabs/talos/pkg/machinery/constants"

	"github.com/talos-proxmox/talos-proxmox/lab/standin/bridge"
)

// machineConfiguration generates a configuration offline.
func machineConfiguration(_ context.Context, op *bridge.Op) (bridge.Tree, error) {
	in := op.In

	var kind talosmachine.Type
	switch in.Str("machineType") {
	case "controlplane":
		kind = talosmachine.TypeControlPlane
	case "worker":
		kind = talosmachine.TypeWorker
	default:
		return nil, fmt.Errorf(`Attribute machine_type value must be one of: ["controlplane" "worker"], got: %q`,
			in.Str("machineType")) // the plugin's text
	}

	if err := validEndpoint(in.Str("clusterEndpoint")); err != nil {
		return nil, fmt.Errorf("cluster_endpoint is invalid: %w", err)
	}

	kubernetes := in.Str("kubernetesVersion")
	if kubernetes == "" {
		kubernetes = defaultKubernetes
	}

	text, err := generated(in, kind, kubernetes)
	if err != nil {
		return nil, fmt.Errorf("failed to generate machine configuration: %w", err)
	}

	return merged(in, bridge.Tree{
		"id": in.Str("clusterName"), "machineConfiguration": text,
		"kubernetesVersion": kubernetes, "talosVersion": contractOf(in),
	}), nil
}

func generated(in bridge.Tree, kind talosmachine.Type, kubernetes string) (string, error) {
	contract, err := config.ParseContractFromVersion(contractOf(in))
	if err != nil {
		return "", err
	}

	secrets, err := bundleOf(in.Sub("machineSecrets"))
	if err != nil {
		return "", err
	}

	patches, err := configpatcher.LoadPatches(in.Strs("configPatches"))
	if err != nil {
		return "", fmt.Errorf("error parsing config patch: %w", err)
	}

	patch := bundle.WithPatchControlPlane(patches)
	if kind == talosmachine.TypeWorker {
		patch = bundle.WithPatchWorker(patches)
	}

	made, err := bundle.NewBundle(bundle.WithVerbose(false), patch, bundle.WithInputOptions(&bundle.InputOptions{
		ClusterName: in.Str("clusterName"), Endpoint: in.Str("clusterEndpoint"),
		KubeVersion: strings.TrimPrefix(kubernetes, "v"),
		GenOptions: []generate.Option{
			generate.WithClusterDiscovery(true), generate.WithDNSDomain(constants.DefaultDNSDomain),
			generate.WithInstallDisk("/dev/sda"), generate.WithInstallImage(defaultInstaller),
			generate.WithSecretsBundle(secrets), generate.WithVersionContract(contract),
		},
	}))
	if err != nil {
		return "", err
	}

	comments := encoder.CommentsDisabled
	if in.Bool("docs") {
		comments |= encoder.CommentsDocs
	}
	if in.Bool("examples") {
		comments |= encoder.CommentsExamples
	}

	text, err := made.Serialize(comments, kind)

	return string(text), err
}

func validEndpoint(endpoint string) error {
	u, err := url.Parse(endpoint)
	if err != nil && strings.Contains(endpoint, "/") {
		return fmt.Errorf("failed to parse the cluster endpoint URL: %w", err)
	}

	switch {
	case err != nil || u.Scheme == "" || u.Host == "":
		return fmt.Errorf("no scheme specified for the cluster endpoint URL\ntry: %q", "https://"+withPort(endpoint))
	case u.Scheme != "https":
		return fmt.Errorf("the control plane endpoint URL should have scheme https://\ntry: %q",
			"https://"+withPort(u.Host))
	}

	return nil
}

func withPort(host string) string {
	if strings.Contains(host, ":") {
		return host
	}

	return host + ":6443"
}

// talosConfig makes a talosconfig offline.
func talosConfig(_ context.Context, op *bridge.Op) (bridge.Tree, error) {
	name := op.In.Str("clusterName")

	cfg, err := clientConfig(name, op.In.Sub("clientConfiguration"))
	if err != nil {
		return nil, fmt.Errorf("failed to generate talos config: %w", err)
	}

	if e := op.In.Strs("endpoints"); len(e) > 0 {
		cfg.Contexts[name].Endpoints = e
	}
	if n := op.In.Strs("nodes"); len(n) > 0 {
		cfg.Contexts[name].Nodes = n
	}

	text, err := cfg.Bytes()
	if err != nil {
		return nil, fmt.Errorf("failed to generate talos config: %w", err)
	}

	return merged(op.In, bridge.Tree{"id": name, "talosConfig": string(text)}), nil
}
