// SPDX-License-Identifier: Apache-2.0
// Copyright the talos-proxmox authors.

package tests_test

import (
	"os/exec"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

const module = "github.com/talos-proxmox/talos-proxmox/"

// TestLayersPointOneWay holds main → stack, components → internal → spec.
func TestLayersPointOneWay(t *testing.T) {
	t.Parallel()

	forbidden := map[string][]string{
		"spec/...":       {module, "github.com/pulumi"},
		"stack/...":      {module + "components", module + "lab", "github.com/pulumi"},
		"internal/...":   {module + "components", module + "stack", module + "lab"},
		"components/...": {module + "stack", module + "lab"},
		"policy/...":     {module + "components", module + "stack", module + "lab"},
		"":               {module + "lab"},
	}
	mayUsePulumi := map[string]bool{module + "internal/pulumitest": true}

	for pattern, bad := range forbidden {
		for pkg, imports := range list(t, pattern, `{{.ImportPath}} {{join .Imports " "}}`) {
			for _, imp := range imports {
				for _, prefix := range bad {
					assert.Falsef(t, strings.HasPrefix(imp, prefix), "%s must not import %s", pkg, imp)
				}
				if strings.HasPrefix(pkg, module+"internal/") && !mayUsePulumi[pkg] {
					assert.Falsef(t, strings.HasPrefix(imp, "github.com/pulumi/"), "%s must not import %s", pkg, imp)
				}
			}
		}
	}
}

// TestOnlyLightKubernetesPackages keeps a consumer's compile time down: the heavy generated
// packages of the Kubernetes SDK are tens of megabytes of source.
func TestOnlyLightKubernetesPackages(t *testing.T) {
	t.Parallel()

	const sdk = "github.com/pulumi/pulumi-kubernetes/sdk/v4/go/kubernetes"
	light := map[string]bool{
		sdk: true, sdk + "/apiextensions": true, sdk + "/meta/v1": true,
		sdk + "/internal": true, sdk + "/utilities": true,
	}

	for _, deps := range list(t, "components", `{{.ImportPath}} {{join .Deps " "}}`) {
		for _, dep := range deps {
			if strings.HasPrefix(dep, sdk) {
				assert.Truef(t, light[dep], "components must not pull in %s", dep)
			}
			for _, tool := range []string{"k8s.io/kubectl", "k8s.io/cli-runtime", "sigs.k8s.io/kustomize/api", "plugin"} {
				assert.Falsef(t, dep == tool || strings.HasPrefix(dep, tool+"/"), "components must not pull in %s", dep)
			}
		}
	}
}

// TestProgramKnowsNoLab holds that the program which runs in the lab is the one for real hosts.
func TestProgramKnowsNoLab(t *testing.T) {
	t.Parallel()

	for pkg, deps := range list(t, "", `{{.ImportPath}} {{join .Deps " "}}`) {
		for _, dep := range deps {
			assert.Falsef(t, strings.HasPrefix(dep, module+"lab"), "%s must not pull in %s", pkg, dep)
		}
	}
}

// TestToolLinksNoPulumi holds that tpx builds quickly: it runs the Pulumi CLI instead.
func TestToolLinksNoPulumi(t *testing.T) {
	t.Parallel()

	for _, pattern := range []string{"cmd/tpx", "internal/gitops"} {
		for pkg, deps := range list(t, pattern, `{{.ImportPath}} {{join .Deps " "}}`) {
			for _, dep := range deps {
				assert.Falsef(t, strings.HasPrefix(dep, "github.com/pulumi/"), "%s must not pull in %s", pkg, dep)
			}
		}
	}
}

// list runs go list and returns, by package, the words that follow its path.
func list(t *testing.T, pattern, format string) map[string][]string {
	t.Helper()

	return listIn(t, "..", pattern, format)
}

// listIn does what list does, in another module.
func listIn(t *testing.T, dir, pattern, format string) map[string][]string {
	t.Helper()

	cmd := exec.CommandContext(t.Context(), "go", "list", "-f", format, "./"+pattern)
	cmd.Dir = dir
	out, err := cmd.Output()
	require.NoError(t, err)

	packages := map[string][]string{}
	for line := range strings.Lines(string(out)) {
		if words := strings.Fields(line); len(words) > 0 {
			packages[words[0]] = words[1:]
		}
	}
	require.NotEmpty(t, packages)

	return packages
}

// TestRoomsStaySmall holds that a package is small enough to be looked through: its files, tests apart.
func TestRoomsStaySmall(t *testing.T) {
	t.Parallel()

	const most = 25
	for _, dir := range []string{"..", "../lab"} {
		for pkg, files := range listIn(t, dir, "...", `{{.ImportPath}} {{join .GoFiles " "}}`) {
			assert.LessOrEqual(t, len(files), most, "%s: split it by what its files are about", pkg)
		}
	}
}
