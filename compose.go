// SPDX-License-Identifier: Apache-2.0
// Copyright the talos-proxmox authors.

package main

import (
	"os"

	"github.com/pulumi/pulumi/sdk/v3/go/pulumi"

	"github.com/talos-proxmox/talos-proxmox/components"
	"github.com/talos-proxmox/talos-proxmox/internal/engine"
	"github.com/talos-proxmox/talos-proxmox/spec"
	"github.com/talos-proxmox/talos-proxmox/stack"
)

// load reads the stack's configuration as Pulumi hands it over; everything wrong with it is in the error.
func load() (*stack.Stack, error) {
	source, err := stack.FromEnvironment(os.Getenv, projectDir())
	if err != nil {
		return nil, err
	}
	file, known := engine.ConfigFile(os.Getenv)
	source.File, source.FileUnknown = file, !known

	return stack.Load(source)
}

// projectDir returns the directory of Pulumi.yaml: Pulumi runs the program there.
func projectDir() string {
	dir, err := os.Getwd()
	if err != nil {
		return "."
	}

	return dir
}

// export exports what the stack made; kubeconfig and talosconfig are secrets.
func export(ctx *pulumi.Context, cfg spec.Config, cluster *components.Cluster) {
	nodes := pulumi.Map{}
	for _, n := range cfg.Nodes {
		nodes[n.Name] = pulumi.StringMap{
			"address": pulumi.String(n.Address().String()),
			"host":    pulumi.String(*n.Host),
			"role":    pulumi.String(string(*n.Role)),
		}
	}
	if *cfg.GitOps.Provider == "flux" && cfg.GitOps.SOPS != nil {
		ctx.Export("ageRecipient", cluster.AgeRecipient)
	}
	ctx.Export("deployKey", cluster.DeployKey)
	if text := manualDeployKey(cfg.GitOps); text != "" {
		ctx.Export("deployKeyStays", pulumi.String(text))
	}
	ctx.Export("endpoint", cluster.Endpoint)
	ctx.Export("kubeconfig", cluster.Kubeconfig)
	ctx.Export("nodes", nodes)
	ctx.Export("talosconfig", cluster.Talosconfig)
	ctx.Export("versions", pulumi.StringMap{
		"kubernetes": pulumi.String(*cfg.Kubernetes.Version),
		"talos":      pulumi.String(*cfg.Talos.Version),
	})
}

// manualDeployKey returns what a destroy leaves behind: it shows the outputs that go with the stack. Empty where
// the key is registered by the stack, or there is none.
func manualDeployKey(g spec.GitOps) string {
	auth := g.Git.Auth
	if *g.Provider == "none" || auth == nil || spec.Value(auth.Type) != "ssh" || auth.Register != nil {
		return ""
	}

	return "the deploy key is allowed by hand at " + spec.Value(g.Git.URL) + ", and `pulumi destroy` leaves it there"
}
