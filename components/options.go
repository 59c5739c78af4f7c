// SPDX-License-Identifier: Apache-2.0
// Copyright the talos-proxmox authors.

package components

import (
	"fmt"

	"github.com/pulumi/pulumi/sdk/v3/go/pulumi"

	"github.com/talos-proxmox/talos-proxmox/spec"
)

// errNoArgs returns the error of a constructor that is called without Args.
func errNoArgs(what, name string) error {
	return invalid(fmt.Sprintf("%s %q", what, name), "args", "is required: describe what is to be made")
}

// invalid returns the error for one thing that is wrong with a subject.
func invalid(subject, path, message string) error {
	return &spec.InvalidError{Subject: subject, Problems: []spec.Problem{{Path: path, Message: message}}}
}

// childOptions splits the options of a component whose resources take some of them: what comes first, and
// hooks that run around the steps of its main resource. The component keeps all others.
func childOptions(opts []pulumi.ResourceOption) (own []pulumi.ResourceOption, given *pulumi.ResourceOptions, err error) {
	given, err = pulumi.NewResourceOptions(opts...)
	if err != nil {
		return nil, nil, fmt.Errorf("reading options: %w", err)
	}
	if given.Hooks == nil {
		return opts, given, nil
	}
	own = []pulumi.ResourceOption{
		pulumi.Aliases(given.Aliases), pulumi.DependsOn(given.DependsOn), pulumi.Parent(given.Parent),
		pulumi.Providers(given.Providers...), pulumi.Transformations(given.Transformations), pulumi.Transforms(given.Transforms),
	}
	if given.Protect {
		own = append(own, pulumi.Protect(true))
	}
	if given.DeletedWith != nil {
		own = append(own, pulumi.DeletedWith(given.DeletedWith))
	}
	for _, inputs := range given.DependsOnInputs {
		own = append(own, pulumi.DependsOnInputs(inputs))
	}

	return own, given, nil
}
