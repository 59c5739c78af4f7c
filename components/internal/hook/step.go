// SPDX-License-Identifier: Apache-2.0
// Copyright the talos-proxmox authors.

package hook

import (
	"sync"
	"time"

	"github.com/pulumi/pulumi/sdk/v3/go/pulumi"
)

// Step describes one create or update of a resource to its hook.
type Step struct {
	// Ctx is the program's.
	Ctx *pulumi.Context
	// URN of the resource.
	URN pulumi.URN

	progress *progress
}

// pass shows a line that is not kept.
func (s Step) pass(line string) {
	args := s.at()
	args.Ephemeral = true
	_ = s.Ctx.Log.Info(line, args) // as for Report
}

// Warn writes a warning to the resource's log.
func (s Step) Warn(text string) { _ = s.Ctx.Log.Warn(text, s.at()) }

// Error writes an error to the resource's log.
func (s Step) Error(text string) { _ = s.Ctx.Log.Error(text, s.at()) }

func (s Step) at() *pulumi.LogArgs { return &pulumi.LogArgs{Resource: urnResource{urn: s.URN}} }

// urnResource names the resource whose hook is running: the log takes resources only.
type urnResource struct {
	pulumi.Resource

	urn pulumi.URN
}

// URN returns the resource's name.
func (r urnResource) URN() pulumi.URNOutput { return r.urn.ToURNOutput() }

// begin returns the step of a hook that starts now. Until the returned function is called, people hear from it at least
// every so often: the line that it said last, how long it has been running and how long it may.
func begin(ctx *pulumi.Context, urn pulumi.URN, interval time.Duration) (Step, func()) {
	step := Step{Ctx: ctx, URN: urn, progress: &progress{began: time.Now()}}
	ended := make(chan struct{})
	go func() {
		tick := time.NewTicker(interval / looks)
		defer tick.Stop()
		for {
			select {
			case <-ended:
				return
			case <-tick.C:
				if line := step.progress.beat(time.Now(), interval-interval/looks); line != "" {
					step.pass(line)
				}
			}
		}
	}()

	return step, sync.OnceFunc(func() { close(ended) })
}

// At tells which of the cluster's nodes, counted from 1, the step works on.
func (s Step) At(node, nodes int) {
	if s.progress != nil {
		s.progress.mu.Lock()
		defer s.progress.mu.Unlock()
		s.progress.at, s.progress.of = node, nodes
	}
}

// Within tells how long the step may take, as a setting says.
func (s Step) Within(limit time.Duration) {
	if s.progress != nil {
		s.progress.mu.Lock()
		defer s.progress.mu.Unlock()
		s.progress.limit = limit
	}
}
