// SPDX-License-Identifier: Apache-2.0
// Copyright the talos-proxmox authors.

package components

import (
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"time"

	"github.com/pulumi/pulumi/sdk/v3/go/pulumi"

	"github.com/talos-proxmox/talos-proxmox/internal/cluster"
	"github.com/talos-proxmox/talos-proxmox/internal/rollout"
	"github.com/talos-proxmox/talos-proxmox/spec"
)

// ready registers the gate that opens when the cluster is healthy. Its input says what must be
// healthy, so that the gate is passed anew when any of it changes or a machine was replaced.
func (c *TalosCluster) ready(
	ctx *pulumi.Context, name string, digests pulumi.StringMap, objects pulumi.StringOutput,
	before []pulumi.Resource, machines map[string]pulumi.Resource,
) (*pulumi.Stash, error) {
	wait, err := registerHook(ctx, TalosClusterType, name, "ready", c.waitReady(ctx))
	if err != nil {
		return nil, err
	}

	edit, err := attempt(ctx, name+"-edit", textOf(c.mustBeHealthy(digests, objects)), pulumi.Parent(c))
	if err != nil {
		return nil, err
	}
	healthy := c.mustBeHealthy(digests, objects)
	healthy["edit"] = edit
	opts := []pulumi.ResourceOption{
		pulumi.Parent(c), pulumi.DependsOn(before),
		pulumi.ResourceHooks(&pulumi.ResourceHookBinding{
			BeforeCreate: []*pulumi.ResourceHook{wait}, BeforeUpdate: []*pulumi.ResourceHook{wait},
		}),
	}
	var vms []pulumi.Resource
	for _, n := range c.config.Nodes {
		if vm := machines[n.Name]; vm != nil {
			vms = append(vms, vm)
		}
	}
	if len(vms) > 0 {
		opts = append(opts, pulumi.ReplaceWith(vms))
	}
	stash, err := pulumi.NewStash(ctx, name+"-ready", &pulumi.StashArgs{Input: healthy}, opts...)
	if err != nil {
		return nil, fmt.Errorf("registering the ready gate of cluster %q: %w", name, err)
	}

	return stash, nil
}

// mustBeHealthy says what the gate stands for.
func (c *TalosCluster) mustBeHealthy(digests pulumi.StringMap, objects pulumi.StringOutput) pulumi.Map {
	nodes := pulumi.Map{}
	for _, n := range c.config.Nodes {
		nodes[n.Name] = pulumi.StringMap{
			"address":       pulumi.String(n.Address().String()),
			"configuration": digests[n.Name],
			"machine":       pulumi.String(machineDigest(n)),
			"role":          pulumi.String(string(spec.Or(n.Role, spec.Worker))),
		}
	}

	return pulumi.Map{
		"kubernetes": pulumi.String(spec.Or(c.config.Kubernetes.Version, "")),
		"manifests":  objects,
		"nodes":      nodes,
		"talos":      pulumi.String(spec.Or(c.config.Talos.Version, "")),
	}
}

// textOf is a fingerprint of what the gate stands for.
func textOf(healthy pulumi.Map) pulumi.StringOutput {
	return healthy.ToMapOutput().ApplyT(func(plain map[string]any) (string, error) {
		return fingerprint(plain)
	}).(pulumi.StringOutput) //nolint:forcetypeassert // the function's type
}

// fingerprint is a short text that is another when the value is.
func fingerprint(plain any) (string, error) {
	text, err := json.Marshal(plain)
	if err != nil {
		return "", fmt.Errorf("reading what must be healthy: %w", err)
	}
	sum := sha256.Sum256(text)

	return hex.EncodeToString(sum[:8]), nil
}

// machineDigest is a fingerprint of everything that was said about a node, so that an edit of its
// machine has the cluster looked at too. Secrets do not count in it.
func machineDigest(n spec.NamedNode) string {
	text, err := json.Marshal(n)
	if err != nil {
		return "" // plain settings can always be written
	}
	sum := sha256.Sum256(text)

	return hex.EncodeToString(sum[:8])
}

// waitReady is the hook that looks at the cluster until it is healthy.
func (c *TalosCluster) waitReady(ctx *pulumi.Context) pulumi.ResourceHookFunction {
	timeout := duration(c.config.Lifecycle.ReadyTimeout, 15*time.Minute)

	return func(args *pulumi.ResourceHookArgs) error {
		remote, err := c.secrets.access.open(ctx.Context())
		if err != nil {
			return err
		}
		defer c.mindForgotten(ctx, args.URN, unseen(c.secrets.access.cluster.Members, args.OldInputs))()
		err = rollout.HealthChecker{
			Access: remote, Cluster: c.secrets.access.cluster, Poll: cluster.DefaultPollOptions(timeout),
			Report: reportTo(ctx, args.URN),
		}.Ready(ctx.Context())
		if err != nil {
			return fmt.Errorf("%w\n  %s", err, c.howToReach())
		}

		return nil
	}
}

// howToReach says where the talosconfig is: after a first run that did not succeed the stack has no
// outputs.
func (c *TalosCluster) howToReach() string {
	if file := spec.Or(c.config.Output.TalosconfigFile, ""); file != "" {
		return "talosconfig: " + file
	}

	return "talosconfig: `pulumi stack output talosconfig --show-secrets`, or set output.talosconfigFile " +
		"and run `pulumi up` again when there are no outputs yet"
}

// reportTo writes each line to the resource's log, where people see what is awaited.
func reportTo(ctx *pulumi.Context, urn pulumi.URN) func(string) {
	return func(line string) {
		// A log that cannot be written must not end the work that it is about.
		_ = ctx.Log.Info(line, &pulumi.LogArgs{Resource: urnResource{urn: urn}})
	}
}

// urnResource is a resource of which only the name is known: the one whose hook is running.
type urnResource struct {
	pulumi.Resource

	urn pulumi.URN
}

// URN is the resource's name.
func (r urnResource) URN() pulumi.URNOutput { return r.urn.ToURNOutput() }
