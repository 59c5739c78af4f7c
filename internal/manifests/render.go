// SPDX-License-Identifier: Apache-2.0
// Copyright the talos-proxmox authors.

package manifests

import (
	"errors"
	"fmt"
	"path"
	"regexp"
	"slices"
	"strings"

	"helm.sh/helm/v3/pkg/chart"
	"helm.sh/helm/v3/pkg/chartutil"
	"helm.sh/helm/v3/pkg/engine"
	"helm.sh/helm/v3/pkg/release"
	"helm.sh/helm/v3/pkg/releaseutil"
)

// Release says how a chart is rendered.
type Release struct {
	// Name of the release.
	Name string
	// Namespace of the release.
	Namespace string
	// Kubernetes is the version that the chart sees, "v1.35.0".
	Kubernetes string
	// Values override the chart's own.
	Values map[string]any
	// APIs are API versions that the chart sees beside Kubernetes's own.
	APIs []string
}

// nondeterministic finds functions by which a template may give another text each time.
var nondeterministic = regexp.MustCompile(
	`\b(gen(CA|SelfSigned|Signed|PrivateKey)|rand|uuidv4|now\b|derivePassword|htpasswd|bcrypt|shuffle)`)

// render renders a chart without a cluster: custom resource definitions, hooks that come before,
// objects in Helm's order of installation, hooks that come after. A chart that gives another text
// each time is refused, since every plan would then change every control plane.
func render(c *chart.Chart, r Release) (string, error) {
	text, err := renderOnce(c, r)
	if err != nil {
		return "", fmt.Errorf("rendering chart %s %s: %w", c.Name(), c.Metadata.Version, err)
	}
	if !hasUnsteady(c) {
		return text, nil
	}
	again, err := renderOnce(c, r)
	if err != nil {
		return "", fmt.Errorf("rendering chart %s %s: %w", c.Name(), c.Metadata.Version, err)
	}
	if again != text {
		return "", fmt.Errorf("chart %s %s renders differently each time: %s; "+
			"give the certificates or passwords that it makes up as values",
			c.Name(), c.Metadata.Version, strings.Join(differing(text, again), ", "))
	}

	return text, nil
}

// renderOnce renders a chart.
func renderOnce(c *chart.Chart, r Release) (string, error) {
	if err := FitsKubernetes(c, r.Kubernetes); err != nil {
		return "", err
	}
	version, err := chartutil.ParseKubeVersion(r.Kubernetes)
	if err != nil {
		return "", fmt.Errorf("reading the Kubernetes version: %w", err)
	}
	capabilities := chartutil.DefaultCapabilities.Copy()
	capabilities.KubeVersion = *version
	capabilities.APIVersions = append(slices.Clone(capabilities.APIVersions), r.APIs...)
	values := MergeValues(object{}, r.Values)
	if err := chartutil.ProcessDependenciesWithMerge(c, values); err != nil {
		return "", fmt.Errorf("reading its dependencies: %w", err)
	}
	top, err := chartutil.ToRenderValues(c, values,
		chartutil.ReleaseOptions{Name: r.Name, Namespace: r.Namespace, Revision: 1, IsInstall: true}, capabilities)
	if err != nil {
		return "", errors.New(withoutValues(err.Error()))
	}
	files, err := engine.Engine{}.Render(c, top)
	if err != nil {
		return "", fmt.Errorf("running its templates: %w", err)
	}
	for name := range files {
		if path.Base(name) == "NOTES.txt" {
			delete(files, name)
		}
	}
	hooks, sorted, err := releaseutil.SortManifests(files, nil, releaseutil.InstallOrder)
	if err != nil {
		return "", fmt.Errorf("sorting its objects: %w", err)
	}

	return join(c, hooks, sorted), nil
}

// join writes everything into one text.
func join(c *chart.Chart, hooks []*release.Hook, sorted []releaseutil.Manifest) string {
	var b strings.Builder
	write := func(text string) {
		if trimmed := strings.TrimSpace(text); trimmed != "" {
			b.WriteString("---\n" + strings.TrimPrefix(trimmed, "---\n") + "\n")
		}
	}
	for _, crd := range c.CRDObjects() {
		write(string(crd.File.Data))
	}
	slices.SortStableFunc(hooks, func(a, b *release.Hook) int {
		if a.Weight != b.Weight {
			return a.Weight - b.Weight
		}

		return strings.Compare(a.Path+a.Name, b.Path+b.Name)
	})
	for _, h := range hooks {
		if slices.Contains(h.Events, release.HookPreInstall) {
			write(h.Manifest)
		}
	}
	for _, m := range sorted {
		write(m.Content)
	}
	for _, h := range hooks {
		if slices.Contains(h.Events, release.HookPostInstall) && !slices.Contains(h.Events, release.HookPreInstall) {
			write(h.Manifest)
		}
	}

	return b.String()
}

// hasUnsteady reports whether any template could give another text each time.
func hasUnsteady(c *chart.Chart) bool {
	if slices.ContainsFunc(c.Templates, func(f *chart.File) bool { return nondeterministic.Match(f.Data) }) {
		return true
	}

	return slices.ContainsFunc(c.Dependencies(), hasUnsteady)
}

// differing names the objects that differ between two renders.
func differing(a, b string) []string {
	one, errOne := objects(a)
	two, errTwo := objects(b)
	if errOne != nil || errTwo != nil || len(one) != len(two) {
		return []string{"the number of objects"}
	}
	var names []string
	for i := range one {
		if mustYAML(one[i]) != mustYAML(two[i]) {
			names = append(names, stringAt(one[i], "kind")+" "+stringAt(one[i], "metadata", "name"))
		}
	}

	return names
}
