// SPDX-License-Identifier: Apache-2.0
// Copyright the talos-proxmox authors.

// Package pulumitest runs a Pulumi program without an engine and keeps what it registered, so that
// tests look at resources as an engine would get them.
package pulumitest

import (
	"maps"
	"slices"
	"strings"
	"sync"

	"github.com/pulumi/pulumi/sdk/v3/go/common/resource"
	"github.com/pulumi/pulumi/sdk/v3/go/pulumi"
	pulumirpc "github.com/pulumi/pulumi/sdk/v3/proto/go"
)

// Recorder keeps what a program registers. Its zero value is ready to use, for one run.
type Recorder struct {
	// State gives a resource its id and outputs; by default the id is the resource's name followed by
	// "-id", and the outputs are the inputs. It may be called by several goroutines at once.
	State func(pulumi.MockResourceArgs) (id string, outputs resource.PropertyMap)

	mu         sync.Mutex
	registered map[string]pulumi.MockResourceArgs
	all        []pulumi.MockResourceArgs
	preview    bool
}

// Run runs the program as the engine would at preview or at up. At preview ids are not known.
func (r *Recorder) Run(preview bool, program pulumi.RunFunc) error {
	r.preview = preview
	r.registered, r.all = map[string]pulumi.MockResourceArgs{}, nil

	return pulumi.RunErr(program, pulumi.WithMocks("project", "stack", r), func(info *pulumi.RunInfo) {
		info.DryRun = preview
	})
}

// NewResource records a resource.
func (r *Recorder) NewResource(args pulumi.MockResourceArgs) (string, resource.PropertyMap, error) {
	r.mu.Lock()
	r.registered[args.Name] = args
	r.all = append(r.all, args)
	r.mu.Unlock()

	if r.State != nil {
		id, outputs := r.State(args)

		return id, outputs, nil
	}
	id := args.Name + "-id"
	if r.preview && args.Custom && !strings.HasPrefix(args.TypeToken, "pulumi:providers:") {
		id = ""
	}

	return id, args.Inputs, nil
}

// Call answers a provider's function with its arguments.
func (r *Recorder) Call(args pulumi.MockCallArgs) (resource.PropertyMap, error) {
	return args.Args, nil
}

// All returns what was registered, in the order of its registration.
func (r *Recorder) All() []pulumi.MockResourceArgs {
	r.mu.Lock()
	defer r.mu.Unlock()

	return slices.Clone(r.all)
}

// Get returns the resource of that name.
func (r *Recorder) Get(name string) (pulumi.MockResourceArgs, bool) {
	r.mu.Lock()
	defer r.mu.Unlock()
	args, ok := r.registered[name]

	return args, ok
}

// Names returns the names of all resources of a type, in order; of every type when it is empty.
func (r *Recorder) Names(typeToken string) []string {
	r.mu.Lock()
	defer r.mu.Unlock()

	return slices.DeleteFunc(slices.Sorted(maps.Keys(r.registered)), func(name string) bool {
		return typeToken != "" && r.registered[name].TypeToken != typeToken
	})
}

// Register returns what the engine was sent for the resource of that name; empty when there is none.
func (r *Recorder) Register(name string) *pulumirpc.RegisterResourceRequest {
	args, _ := r.Get(name)

	return args.RegisterRPC
}
