// SPDX-License-Identifier: Apache-2.0
// Copyright the talos-proxmox authors.

package talos

import (
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/pulumi/pulumi/sdk/v3/go/pulumi"

	"github.com/talos-proxmox/talos-proxmox/components/internal/hook"
	"github.com/talos-proxmox/talos-proxmox/components/internal/stash"
	"github.com/talos-proxmox/talos-proxmox/internal/cluster"
	"github.com/talos-proxmox/talos-proxmox/internal/rollout"
	"github.com/talos-proxmox/talos-proxmox/spec"
)

// readyState holds what was healthy when the gate opened, as far as it is read again.
type readyState struct {
	Nodes map[string]struct{} `json:"nodes"`
}

// registerReady registers the gate that opens when the cluster is healthy. Its input is what must be healthy:
// any change of it, and a VM that is replaced, runs the checks again.
func registerReady(
	b *Build, fingerprints pulumi.StringMap, objects pulumi.StringOutput, before []pulumi.Resource,
) (*pulumi.Stash, error) {
	wanted, err := mustBeHealthy(b, fingerprints, objects)
	if err != nil {
		return nil, err
	}
	edit, err := stash.EditToken(b.Ctx, b.Name+"-edit", fingerprintOfMap(wanted), pulumi.Parent(b.Parent))
	if err != nil {
		return nil, err
	}
	healthy := pulumi.Map{"edit": edit}
	for key, value := range wanted {
		healthy[key] = value
	}
	opts := []pulumi.ResourceOption{
		pulumi.Parent(b.Parent), pulumi.DependsOn(before),
		pulumi.HideDiffs([]string{"input"}), // fingerprints of what changes elsewhere in the plan
	}
	var vms []pulumi.Resource
	for _, n := range b.Config.Nodes {
		if vm := b.Machines[n.Name]; vm != nil {
			vms = append(vms, vm)
		}
	}
	if len(vms) > 0 {
		opts = append(opts, pulumi.ReplaceWith(vms))
	}

	return stash.RememberInputs(b.Ctx, b.Name+"-ready", healthy, stash.On[readyState]{
		Create: func(step hook.Step, _ readyState) error { return waitReady(b.Session, step, readyState{}) },
		Update: func(step hook.Step, was, _ readyState) error { return waitReady(b.Session, step, was) },
	}, opts...)
}

// mustBeHealthy returns the input of the ready gate.
func mustBeHealthy(b *Build, fingerprints pulumi.StringMap, objects pulumi.StringOutput) (pulumi.Map, error) {
	nodes := pulumi.Map{}
	for _, n := range b.Config.Nodes {
		// An edit of a machine has the cluster looked at too. Secrets among the settings do not count.
		settings, err := stash.Fingerprint(n)
		if err != nil {
			return nil, fmt.Errorf("node %q: %w", n.Name, err)
		}
		healthy := pulumi.StringMap{
			"address":       pulumi.String(n.Address().String()),
			"configuration": fingerprints[n.Name],
			"machine":       pulumi.String(settings),
			"role":          pulumi.String(string(*n.Role)),
		}
		if id := b.MachineIDs[n.Name]; id != nil {
			healthy["machineId"] = id
		}
		nodes[n.Name] = healthy
	}

	return pulumi.Map{
		"kubernetes": pulumi.String(*b.Config.Kubernetes.Version),
		"manifests":  objects,
		"nodes":      nodes,
		"talos":      pulumi.String(*b.Config.Talos.Version),
	}, nil
}

// fingerprintOfMap returns a fingerprint of inputs once they are known.
func fingerprintOfMap(inputs pulumi.Map) pulumi.StringOutput {
	return inputs.ToMapOutput().ApplyT(func(plain map[string]any) (string, error) {
		return stash.Fingerprint(plain)
	}).(pulumi.StringOutput)
}

// waitReady polls until the cluster is healthy.
func waitReady(s *Session, step hook.Step, was readyState) error {
	remote, err := s.APIs.open(s.Ctx.Context())
	if err != nil {
		return err
	}
	defer reapplyLostConfigs(s, step, unseen(s.Cluster.Members, was))()
	step.Within(time.Duration(*s.Config.Lifecycle.ReadyTimeout))
	err = rollout.HealthChecker{
		Access: remote, Cluster: s.Cluster, Poll: pollOptions(s.Config.Lifecycle, s.Config.Lifecycle.ReadyTimeout), Report: s.reporting(step),
	}.Ready(s.Ctx.Context())
	if err != nil {
		return fmt.Errorf("%w\n  %s", err, howToReach(s.Config))
	}
	step.Report(strings.Join(append([]string{summary(s.Config)}, s.work.Lines()...), "\n  "))

	return nil
}

// summary returns what people read at the end of a run that changed something: what is ready, and how to reach it.
func summary(cfg spec.Config) string {
	planes := len(cfg.ControlPlanes())

	return fmt.Sprintf("cluster %q is ready: %s and %s at %s; credentials: `pulumi stack output kubeconfig --show-secrets`, "+
		"`pulumi stack output talosconfig --show-secrets`",
		*cfg.Cluster.Name, counted(planes, "control plane"), counted(len(cfg.Nodes)-planes, "worker"), cfg.Endpoint())
}

func counted(n int, noun string) string {
	if n == 1 {
		return "1 " + noun
	}

	return fmt.Sprintf("%d %ss", n, noun)
}

// howToReach returns where the talosconfig is: after a first run that failed the stack has no outputs.
func howToReach(cfg spec.Config) string {
	if file := spec.Value(cfg.Output.TalosconfigFile); file != "" {
		return "talosconfig: " + file
	}

	return "talosconfig: `pulumi stack output talosconfig --show-secrets`, or set output.talosconfigFile " +
		"and run `pulumi up` again when there are no outputs yet"
}

// unseen returns the members that the ready gate has not seen running before.
func unseen(members []cluster.Member, was readyState) []cluster.Member {
	return slices.DeleteFunc(slices.Clone(members), func(m cluster.Member) bool {
		_, ran := was.Nodes[m.Name]

		return ran
	})
}
