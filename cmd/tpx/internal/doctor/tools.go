// SPDX-License-Identifier: Apache-2.0
// Copyright the talos-proxmox authors.

package doctor

import (
	"cmp"
	"encoding/json"
	"fmt"
	"maps"
	"os/exec"
	"slices"
	"strings"

	"github.com/Masterminds/semver/v3"

	"github.com/talos-proxmox/talos-proxmox/cmd/tpx/internal/stackfile"
	"github.com/talos-proxmox/talos-proxmox/internal/gitops"
	"github.com/talos-proxmox/talos-proxmox/internal/versions"
	"github.com/talos-proxmox/talos-proxmox/spec"
)

// engine checks the version of the Pulumi CLI.
func (e *examiner) engine() error {
	text, err := e.Pulumi(e.ctx, "version")
	if err != nil {
		e.found("", "the Pulumi CLI does not run: "+firstLine(err.Error()), "install it: https://www.pulumi.com/docs/install/")

		return nil
	}
	have, err := semver.NewVersion(strings.TrimSpace(string(text)))
	if err != nil {
		return skipf("pulumi calls its version %q", strings.TrimSpace(string(text)))
	}
	if have.LessThan(semver.MustParse(versions.PulumiCLI)) {
		e.found("", fmt.Sprintf("the Pulumi CLI is v%s; the program needs v%s or newer", have, versions.PulumiCLI),
			"install a newer one: https://www.pulumi.com/docs/install/")
	}

	return nil
}

// neededPlugins returns the plugins that the stack uses, with their versions.
func neededPlugins(c spec.Config) map[string]string {
	needed := map[string]string{
		"proxmoxve": versions.ProxmoxPlugin, "talos": versions.TalosPlugin, "kubernetes": versions.KubernetesPlugin,
	}
	if auth := c.GitOps.Git.Auth; auth != nil && auth.Register != nil {
		switch auth.Register.Kind {
		case "github":
			needed["github"] = versions.GitHubPlugin
		case "gitlab":
			needed["gitlab"] = versions.GitLabPlugin
		default:
			needed["command"] = versions.CommandPlugin
		}
	}

	return needed
}

// plugins checks that the stack's plugins are installed. Pulumi fetches what is missing, where it may.
func (e *examiner) plugins() error {
	text, err := e.Pulumi(e.ctx, "plugin ls", "--json")
	if err != nil {
		return skipf("%s", firstLine(err.Error()))
	}
	var installed []struct {
		Name    string `json:"name"`
		Version string `json:"version"`
	}
	if err := json.Unmarshal(text, &installed); err != nil {
		return skipf("reading the list of plugins: %s", err)
	}
	have := map[string]bool{}
	for _, p := range installed {
		have[p.Name+" "+strings.TrimPrefix(p.Version, "v")] = true
	}
	needed := neededPlugins(e.Config)
	if _, err := exec.LookPath("tpx"); err != nil && needed["command"] != "" {
		e.found("gitops.git.auth.register", "tpx, which registers the deploy key, is not on PATH",
			"go install github.com/talos-proxmox/talos-proxmox/cmd/tpx@latest")
	}
	var missing, commands []string
	for _, name := range slices.Sorted(maps.Keys(needed)) {
		if have[name+" "+needed[name]] {
			continue
		}
		missing = append(missing, name+" v"+needed[name])
		from := ""
		if name == "proxmoxve" {
			from = " --server github://api.github.com/muhlba91/pulumi-proxmoxve"
		}
		commands = append(commands, "pulumi plugin install resource "+name+" v"+needed[name]+from)
	}
	if len(missing) > 0 {
		e.warn("", "plugins are not installed: "+strings.Join(missing, ", ")+"; the first up fetches them",
			strings.Join(commands, "\n"))
	}

	return nil
}

// charts checks that the charts are in the cache, or can be fetched.
func (e *examiner) charts() error {
	cfg, err := gitops.DayZero(e.Config)
	if err != nil {
		e.found("gitops", err.Error(), "choose another name")

		return nil
	}
	if !e.Live {
		e.Charts.Fetch = nil
	}
	for _, ch := range stackfile.Charts(cfg) {
		if _, err := e.Charts.Load(e.ctx, ch); err == nil {
			continue
		} else if !e.Live {
			e.warn("", firstLine(err.Error()), "tpx charts "+e.Stack)
		} else {
			repository := cmp.Or(spec.Value(ch.Repository), "its repository")
			e.found("", firstLine(err.Error()), "see that "+repository+" can be reached, then: tpx charts "+e.Stack)
		}
	}

	return nil
}

func firstLine(text string) string {
	line, _, _ := strings.Cut(strings.TrimSpace(text), "\n")

	return line
}
