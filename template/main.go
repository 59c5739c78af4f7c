// One typed stack file to a Talos cluster on Proxmox VE that git manages.
package main

import (
	"fmt"
	"os"

	"github.com/pulumi/pulumi/sdk/v3/go/pulumi"

	"github.com/talos-proxmox/talos-proxmox/components"
	"github.com/talos-proxmox/talos-proxmox/stack"
)

func main() {
	settings, err := load()
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
	pulumi.Run(func(ctx *pulumi.Context) error { return run(ctx, settings) })
}

// load reads Pulumi.<stack>.yaml as Pulumi hands it over; everything wrong with it is in the error.
func load() (*stack.Stack, error) {
	dir, err := os.Getwd()
	if err != nil {
		return nil, err
	}
	source, err := stack.FromEnvironment(os.Getenv, dir)
	if err != nil {
		return nil, err
	}

	return stack.Load(source)
}

// run registers the cluster. What else you want Pulumi to make goes here.
func run(ctx *pulumi.Context, settings *stack.Stack) error {
	cluster, err := components.NewCluster(ctx, "cluster", &components.ClusterArgs{
		Config: settings.Config, SecretValues: settings.SecureValues,
	})
	if err != nil {
		return err
	}
	ctx.Export("endpoint", cluster.Endpoint)
	ctx.Export("kubeconfig", cluster.Kubeconfig)
	ctx.Export("talosconfig", cluster.Talosconfig)
	ctx.Export("deployKey", cluster.DeployKey)

	return nil
}
