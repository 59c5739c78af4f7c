// SPDX-License-Identifier: Apache-2.0
// Copyright the talos-proxmox authors.

package components

import (
	"fmt"

	"github.com/pulumi/pulumi/sdk/v3/go/pulumi"
)

// errNoArgs returns the error of a constructor that is called without Args.
func errNoArgs(what, name string) error { return fmt.Errorf("%s %q: args are required", what, name) }

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
