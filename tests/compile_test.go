// SPDX-License-Identifier: Apache-2.0
// Copyright the talos-proxmox authors.

package tests_test

import (
	"bytes"
	"cmp"
	"encoding/json"
	"errors"
	"io"
	"maps"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"go.yaml.in/yaml/v3"
)

// compileBudget limits what a program has to compile that imports the components.
type compileBudget struct {
	Packages  int `yaml:"packages"`
	Kilobytes int `yaml:"kilobytes"`
	// Other is the most that a module may have that is not named, and Modules are the others.
	Other   int            `yaml:"other"`
	Modules map[string]int `yaml:"modules"`
}

// TestWhatAConsumerCompiles counts the packages and the bytes of source that a program compiles which imports the
// components, by module, against the budget in testdata/compile.yaml. Bytes and not seconds, so that the figures are the
// same on every machine. Whoever raises the budget says in his commit what it is worth.
func TestWhatAConsumerCompiles(t *testing.T) {
	t.Parallel()
	text, err := os.ReadFile(filepath.Join("testdata", "compile.yaml"))
	require.NoError(t, err)
	var budget compileBudget
	require.NoError(t, yaml.Unmarshal(text, &budget))

	packages, modules := compiled(t, "github.com/talos-proxmox/talos-proxmox/components")
	total := 0
	for _, size := range modules {
		total += size
	}
	t.Logf("%d packages, %d kB", packages, total/1000)
	assert.LessOrEqual(t, packages, budget.Packages, "packages")
	assert.LessOrEqual(t, total/1000, budget.Kilobytes, "kilobytes of source")
	for _, name := range slices.SortedFunc(maps.Keys(modules), func(a, b string) int { return cmp.Compare(modules[b], modules[a]) }) {
		allowed, named := budget.Modules[name]
		if !named {
			allowed = budget.Other
		}
		if modules[name] > 200_000 {
			t.Logf("%6d kB  %s", modules[name]/1000, name)
		}
		assert.LessOrEqualf(t, modules[name]/1000, allowed, "kilobytes of %s", name)
	}
	for name := range budget.Modules {
		assert.Contains(t, modules, name, "nothing of it is compiled any more: take it out of the budget")
	}
}

// compiled returns how many packages a package is compiled from, and the bytes of source by module; Go's own library
// comes with the toolchain.
func compiled(t *testing.T, of string) (packages int, modules map[string]int) {
	t.Helper()
	cmd := exec.CommandContext(t.Context(), "go", "list", "-deps", "-json=Dir,GoFiles,CgoFiles,SFiles,Standard,Module", of)
	cmd.Env = append(os.Environ(), "GOOS=linux", "GOARCH=amd64", "CGO_ENABLED=0")
	out, err := cmd.Output()
	require.NoError(t, err)
	modules = map[string]int{}
	decoder := json.NewDecoder(bytes.NewReader(out))
	for {
		var p struct {
			Dir                       string
			GoFiles, CgoFiles, SFiles []string
			Standard                  bool
			Module                    struct{ Path string }
		}
		err := decoder.Decode(&p)
		if errors.Is(err, io.EOF) {
			return packages, modules
		}
		require.NoError(t, err)
		if p.Standard {
			continue
		}
		packages++
		for _, file := range slices.Concat(p.GoFiles, p.CgoFiles, p.SFiles) {
			info, err := os.Stat(filepath.Join(p.Dir, file))
			require.NoError(t, err)
			modules[p.Module.Path] += int(info.Size())
		}
	}
}

// TestToolsShareWhatTheyCompile holds that the lab, its Kubernetes and the program have one version of each module that
// packages of several are from: Go then compiles these once for all of them, a quarter of what a first `make` compiles.
func TestToolsShareWhatTheyCompile(t *testing.T) {
	t.Parallel()
	type use struct{ by, version string }
	uses := map[string][]use{}
	for by, dir := range map[string]string{"the program": "..", "lab": "../lab/cmd/lab", "lab-kubernetes": "../tools/kubernetes"} {
		cmd := exec.CommandContext(t.Context(), "go", "list", "-deps",
			"-f", `{{with .Module}}{{if not .Main}}{{.Path}} {{if .Replace}}{{.Replace.Version}}{{else}}{{.Version}}{{end}}{{end}}{{end}}`, ".")
		cmd.Dir, cmd.Env = dir, append(os.Environ(), "GOOS=linux", "GOARCH=amd64", "CGO_ENABLED=0")
		out, err := cmd.Output()
		require.NoError(t, err, by)
		seen := map[string]bool{}
		for line := range strings.Lines(string(out)) {
			module, version, found := strings.Cut(strings.TrimSpace(line), " ")
			if found && !seen[module] {
				seen[module] = true
				uses[module] = append(uses[module], use{by, version})
			}
		}
	}
	shared := 0
	for module, all := range uses {
		if len(all) > 1 {
			shared++
		}
		for _, u := range all[1:] {
			assert.Equalf(t, all[0].version, u.version, "%s of %s and of %s", module, all[0].by, u.by)
		}
	}
	assert.Greater(t, shared, 100)
}
