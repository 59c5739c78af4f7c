// SPDX-License-Identifier: Apache-2.0
// Copyright the talos-proxmox authors.

package talos

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/pulumiverse/pulumi-talos/sdk/go/talos/cluster"
	"github.com/siderolabs/talos/pkg/machinery/client"
	"k8s.io/client-go/tools/clientcmd"

	"github.com/talos-proxmox/talos-proxmox/lab/standin/bridge"
)

const defaultRenewal = "720h"

func kubeconfig() *bridge.Resource {
	return &bridge.Resource{
		Args: &cluster.KubeconfigArgs{}, State: cluster.Kubeconfig{},
		Framework: true,
		Secrets: []string{
			"clientConfiguration.clientKey", "kubeconfigRaw", "kubernetesClientConfiguration.clientKey",
		},
		Computed: []string{
			"certificateRenewalDuration", "endpoint", "kubeconfigRaw", "kubernetesClientConfiguration",
		},
		Validate: validTimeouts,
		// The duration is read when there is a certificate to compare it with.
		Refuse: func(op *bridge.Op) error {
			if _, err := time.ParseDuration(renewalOf(op.In)); err != nil {
				return fmt.Errorf("failed to parse certificate renewal duration in plan - %w", err)
			}

			return nil
		},
		Recompute: func([]bridge.Change) []string { return []string{"endpoint"} },
		Plan: func(ctx context.Context, op *bridge.Op) (bridge.Tree, error) {
			out, err := planEndpoint(ctx, op)

			return merged(out, bridge.Tree{"certificateRenewalDuration": renewalOf(op.In)}), err
		},
		Stale: staleKubeconfig,
		Create: func(ctx context.Context, op *bridge.Op) (string, bridge.Tree, error) {
			out, name, err := fetchKubeconfig(ctx, op.In, "timeouts.create")
			if err != nil {
				return "", nil, err
			}
			if err := turnaround(op.In); err != nil {
				return "", nil, err
			}
			out["certificateRenewalDuration"] = renewalOf(op.In)
			return name, out, nil
		},
		Update: updateKubeconfig,
	}
}

func renewalOf(in bridge.Tree) string {
	if d := in.Str("certificateRenewalDuration"); d != "" {
		return d
	}

	return defaultRenewal
}

// staleKubeconfig: the admin certificate ends within the renewal duration.
func staleKubeconfig(op *bridge.Op) []string {
	ends, err := certificateEnd(op.State.Str("kubernetesClientConfiguration.clientCertificate"))
	if err != nil {
		return nil
	}

	before, err := time.ParseDuration(renewalOf(op.In))
	if err != nil || !ends.Before(time.Now().Add(before)) {
		return nil
	}

	return []string{"kubeconfigRaw", "kubernetesClientConfiguration"}
}

// updateKubeconfig fetches it again only if its certificate is about to end: other changes are only
// written down.
func updateKubeconfig(ctx context.Context, op *bridge.Op) (bridge.Tree, error) {
	out := bridge.Tree{
		"kubeconfigRaw":                 op.State.At("kubeconfigRaw"),
		"kubernetesClientConfiguration": op.State.At("kubernetesClientConfiguration"),
		"endpoint":                      endpointOf(op.In),
	}

	if op.Changed("kubeconfigRaw") {
		fresh, _, err := fetchKubeconfig(ctx, op.In, "timeouts.update")
		if err != nil {
			return nil, err
		}
		out = fresh
	}
	out["certificateRenewalDuration"] = renewalOf(op.In)

	return out, nil
}

// fetchKubeconfig returns outputs and the cluster's name.
func fetchKubeconfig(ctx context.Context, in bridge.Tree, timeoutAt string) (bridge.Tree, string, error) {
	t, err := targetOf(in)
	if err != nil {
		return nil, "", err
	}

	timeout, err := timeoutOf(in, timeoutAt)
	if err != nil {
		return nil, "", err
	}

	var raw []byte
	err = retry(ctx, timeout, func(ctx context.Context) error {
		return t.do(ctx, func(ctx context.Context, c *client.Client) (err error) {
			raw, err = c.Kubeconfig(ctx)
			return err
		})
	})
	if err != nil {
		return nil, "", fmt.Errorf("failed to retrieve kubeconfig: %w", err)
	}

	parsed, name, err := parseKubeconfig(raw)
	if err != nil {
		return nil, "", err
	}

	return bridge.Tree{
		"endpoint": t.endpoint, "kubeconfigRaw": string(raw), "kubernetesClientConfiguration": parsed,
	}, name, nil
}

func parseKubeconfig(raw []byte) (bridge.Tree, string, error) {
	k, err := clientcmd.Load(raw)
	if err != nil {
		return nil, "", fmt.Errorf("failed to parse kubeconfig: %w", err)
	}

	current := k.Contexts[k.CurrentContext]
	if current == nil || k.Clusters[current.Cluster] == nil || k.AuthInfos[current.AuthInfo] == nil {
		return nil, "", errors.New("failed to parse kubeconfig") // the plugin itself ends here
	}
	c, auth := k.Clusters[current.Cluster], k.AuthInfos[current.AuthInfo]

	return bridge.Tree{
		"host": c.Server, "caCertificate": encode(c.CertificateAuthorityData),
		"clientCertificate": encode(auth.ClientCertificateData), "clientKey": encode(auth.ClientKeyData),
	}, current.Cluster, nil
}

func lookupKubeconfig(ctx context.Context, op *bridge.Op) (bridge.Tree, error) {
	out, name, err := fetchKubeconfig(ctx, op.In, "timeouts.read")
	if err != nil {
		return nil, err
	}

	return merged(op.In, out, bridge.Tree{"id": name}), nil
}

// merged lays trees over each other; a function gives back its arguments beside its results.
func merged(trees ...bridge.Tree) bridge.Tree {
	out := bridge.Tree{}
	for _, t := range trees {
		for k, v := range t {
			out[k] = v
		}
	}

	return out
}
