// SPDX-License-Identifier: Apache-2.0
// Copyright the talos-proxmox authors.

package components

import (
	"context"
	"slices"
	"time"

	"github.com/pulumi/pulumi/sdk/v3/go/common/resource"
	"github.com/pulumi/pulumi/sdk/v3/go/pulumi"

	"github.com/talos-proxmox/talos-proxmox/internal/cluster"
	"github.com/talos-proxmox/talos-proxmox/internal/rollout"
	"github.com/talos-proxmox/talos-proxmox/internal/talosapi"
)

// forgottenInterval is how often a node that is waited for is asked whether it waits for a
// configuration. It takes longer to start an installation than to say that it has begun.
const forgottenInterval = 10 * time.Second

// mindForgotten gives nodes their configuration again which died before they had it on their disks,
// while somebody waits for them: their resource says that they have it. Only nodes that were never seen
// to run count; a machine that was wiped on purpose is not configured behind its owner's back.
func (c *TalosCluster) mindForgotten(ctx *pulumi.Context, urn pulumi.URN, members []cluster.Member) (stop func()) {
	watching, cancel := context.WithCancel(ctx.Context())
	done := make(chan struct{})
	go func() {
		defer close(done)
		rollout.ConfigReapplier{
			Members: members, Interval: forgottenInterval, Report: reportTo(ctx, urn),
			InMaintenance: talosapi.InMaintenance, Apply: talosapi.Configure,
			Config: func(node string) (string, bool) {
				text, known := c.configs.Load(node)
				if !known {
					return "", false
				}
				config, ok := text.(string)

				return config, ok
			},
		}.Watch(watching)
	}()

	return func() {
		cancel()
		<-done
	}
}

// unseen are the members of which the ready gate did not say before that they run.
func unseen(members []cluster.Member, was resource.PropertyMap) []cluster.Member {
	input := was["input"]
	if !input.IsObject() || !input.ObjectValue()["nodes"].IsObject() {
		return members
	}
	seen := input.ObjectValue()["nodes"].ObjectValue()

	return slices.DeleteFunc(slices.Clone(members), func(m cluster.Member) bool {
		_, ran := seen[resource.PropertyKey(m.Name)]

		return ran
	})
}
