// SPDX-License-Identifier: Apache-2.0
// Copyright the talos-proxmox authors.

package main

import (
	"fmt"

	"k8s.io/apimachinery/pkg/util/version"
	versioninfo "k8s.io/apimachinery/pkg/version"
	registry "k8s.io/apiserver/pkg/util/compatibility"
	feature "k8s.io/apiserver/pkg/util/feature"
	"k8s.io/component-base/compatibility"
	builtversion "k8s.io/component-base/version"
	apiserver "k8s.io/kubernetes/cmd/kube-apiserver/app"
)

// oldestMinor is the oldest minor of Kubernetes 1 that this binary plays. A release's own API server
// plays three minors; feature gates that it has no more are then as they are in its own version.
const oldestMinor = 31

// allowOlder lets the components play versions back to the oldest one. It is called before their
// options are made.
func allowOlder() error {
	built, err := version.ParseSemantic(builtversion.Get().GitVersion)
	if err != nil {
		return fmt.Errorf("version of this binary: %w", err)
	}
	floor := version.MajorMinor(built.Major(), oldestMinor)
	registry.DefaultComponentGlobalsRegistry.Reset()
	if err := registry.DefaultComponentGlobalsRegistry.Register(compatibility.DefaultKubeComponent,
		compatibility.NewEffectiveVersion(built, true, floor, floor), feature.DefaultMutableFeatureGate); err != nil {
		return fmt.Errorf("allowing older versions: %w", err)
	}

	return nil
}

// emulation returns the flags that make the components behave as the minor version of want does.
func emulation(want string) ([]string, error) {
	if want == "" {
		return nil, nil
	}

	wanted, err := version.ParseSemantic(want)
	if err != nil {
		return nil, fmt.Errorf("version: %w", err)
	}
	built, err := version.ParseSemantic(builtversion.Get().GitVersion)
	if err != nil {
		return nil, fmt.Errorf("version of this binary: %w", err)
	}

	switch {
	case wanted.Major() != built.Major() || wanted.Minor() > built.Minor():
		return nil, fmt.Errorf("version: this binary is Kubernetes v%s and cannot serve %s", built, want)
	case wanted.Minor() < built.Minor():
		return []string{fmt.Sprintf("--emulated-version=kube=%d.%d", wanted.Major(), wanted.Minor())}, nil
	default:
		return nil, nil
	}
}

// reported wraps an effective version to report another release.
type reported struct {
	compatibility.EffectiveVersion
	version string
}

// Info returns what /version answers.
func (r reported) Info() *versioninfo.Info {
	info := r.EffectiveVersion.Info()
	if wanted, err := version.ParseSemantic(r.version); err == nil && info != nil {
		info.GitVersion = r.version
		info.Major = fmt.Sprint(wanted.Major())
		info.Minor = fmt.Sprint(wanted.Minor())
	}

	return info
}

// report makes every server of the chain report want.
func report(c *apiserver.Config, want string) {
	if want == "" {
		return
	}

	generic := c.KubeAPIs.ControlPlane.Generic
	generic.EffectiveVersion = reported{generic.EffectiveVersion, want}
	c.ApiExtensions.GenericConfig.EffectiveVersion = generic.EffectiveVersion
	c.Aggregator.GenericConfig.EffectiveVersion = generic.EffectiveVersion
}
