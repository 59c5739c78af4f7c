// SPDX-License-Identifier: Apache-2.0
// Copyright the talos-proxmox authors.

package ciliumcli

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"path"
	"slices"
	"strings"

	"github.com/spf13/pflag"
	"helm.sh/helm/v3/pkg/action"
	"helm.sh/helm/v3/pkg/chart"
	"helm.sh/helm/v3/pkg/chart/loader"
	"helm.sh/helm/v3/pkg/strvals"
	corev1 "k8s.io/api/core/v1"
	"sigs.k8s.io/yaml"

	"github.com/talos-proxmox/talos-proxmox/lab/kube"
)

// repository is where the CLI looks where nothing else is said.
const repository = "https://helm.cilium.io"

// CLI plays the Cilium CLI as a [kube.Program].
type CLI struct {
	// Chart returns the archive of a chart's version in a repository. Required.
	Chart func(repository, name, version string) ([]byte, error)
}

// Does implements [kube.Program]. The image's entry point is the CLI.
func (CLI) Does(c *corev1.Container) bool {
	if len(c.Command) > 0 {
		return path.Base(c.Command[0]) == "cilium"
	}
	name, _, _ := strings.Cut(path.Base(c.Image), ":")

	return name == "cilium-cli"
}

// Run implements [kube.Program].
func (cli CLI) Run(ctx context.Context, p kube.Process) error {
	args := p.Args
	if len(args) > 0 && path.Base(args[0]) == "cilium" {
		args = args[1:]
	}
	if len(args) == 0 {
		return nil // it prints its help
	}
	c := command{verb: args[0]}
	if !slices.Contains([]string{"install", "upgrade"}, c.verb) {
		return fmt.Errorf("Error: unknown command %q for \"cilium\"", c.verb) // the CLI's own words
	}
	if err := c.parse(args[1:]); err != nil {
		return fmt.Errorf("Error: %w", err) // the CLI's own words
	}
	if err := cli.apply(ctx, c, p); err != nil {
		return fmt.Errorf("Error: Unable to %s Cilium: %w", c.verb, err) // the CLI's own words
	}

	return nil
}

// command holds what the arguments say.
type command struct {
	verb, version, namespace, repository, release string
	values, set                                   []string
	reset, reuse, wait                            bool
}

func (c *command) parse(args []string) error {
	flags := pflag.NewFlagSet(c.verb, pflag.ContinueOnError)
	flags.StringVar(&c.version, "version", "", "")
	flags.StringVarP(&c.namespace, "namespace", "n", "kube-system", "")
	flags.StringVar(&c.repository, "repository", repository, "")
	flags.StringVar(&c.release, "helm-release-name", "cilium", "")
	flags.StringSliceVarP(&c.values, "values", "f", nil, "")
	flags.StringArrayVar(&c.set, "set", nil, "")
	flags.BoolVar(&c.wait, "wait", false, "")
	if c.verb == "upgrade" {
		flags.BoolVar(&c.reset, "reset-values", false, "")
		flags.BoolVar(&c.reuse, "reuse-values", false, "")
	}
	if err := flags.Parse(args); err != nil {
		return err // the CLI's own words
	}
	if c.version == "" {
		// The genuine CLI knows a newest version; here it would be another one than any cluster's.
		return errors.New("the lab's stand-in for the Cilium CLI needs --version")
	}

	return nil
}

// apply installs the chart, or upgrades it.
func (cli CLI) apply(ctx context.Context, c command, p kube.Process) error {
	loaded, err := cli.load(c)
	if err != nil {
		return err
	}
	values, err := c.merge(p.Files)
	if err != nil {
		return err
	}
	config := &action.Configuration{}
	if err := config.Init(newGetter(p.API, c.namespace), c.namespace, "secret", func(string, ...any) {}); err != nil {
		return err // Helm's own words
	}
	if c.verb == "upgrade" {
		upgrade := action.NewUpgrade(config)
		upgrade.Namespace, upgrade.ResetValues, upgrade.ReuseValues, upgrade.Wait = c.namespace, c.reset, c.reuse, c.wait
		_, err = upgrade.RunWithContext(ctx, c.release, loaded, values)

		return err // Helm's own words
	}
	install := action.NewInstall(config)
	install.ReleaseName, install.Namespace, install.Wait = c.release, c.namespace, c.wait
	_, err = install.RunWithContext(ctx, loaded, values)

	return err // Helm's own words
}

// load fetches the chart.
func (cli CLI) load(c command) (*chart.Chart, error) {
	at, name := c.repository, "cilium"
	if registry, ok := strings.CutPrefix(at, "oci://"); ok {
		// The CLI takes all of it for the chart's name.
		at, name = "oci://"+path.Dir(registry), path.Base(registry)
	}
	archive, err := cli.Chart(at, name, strings.TrimPrefix(c.version, "v"))
	if err != nil {
		return nil, err
	}

	return loader.LoadArchive(bytes.NewReader(archive)) // Helm's own words
}

// merge returns the values of the files, in their order, and what the flags set over them. What the CLI
// sets itself at an installation is below.
func (c command) merge(files map[string][]byte) (map[string]any, error) {
	values := map[string]any{}
	if c.verb == "install" {
		values["operator"] = map[string]any{"replicas": int64(1)}
	}
	for _, name := range c.values {
		content, ok := files[name]
		if !ok {
			return nil, fmt.Errorf("open %s: no such file or directory", name)
		}
		var more map[string]any
		if err := yaml.Unmarshal(content, &more); err != nil {
			return nil, fmt.Errorf("failed to parse %s: %w", name, err)
		}
		values = mergeMaps(values, more)
	}
	for _, text := range c.set {
		if err := strvals.ParseInto(text, values); err != nil {
			return nil, fmt.Errorf("failed parsing --set data: %w", err)
		}
	}

	return values, nil
}

func mergeMaps(base, over map[string]any) map[string]any {
	merged := map[string]any{}
	for key, value := range base {
		merged[key] = value
	}
	for key, value := range over {
		below, isMap := value.(map[string]any)
		under, wasMap := merged[key].(map[string]any)
		if isMap && wasMap {
			value = mergeMaps(under, below)
		}
		merged[key] = value
	}

	return merged
}
