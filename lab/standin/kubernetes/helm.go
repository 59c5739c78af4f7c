// SPDX-License-Identifier: Apache-2.0
// Copyright the talos-proxmox authors.

package kubernetes

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"time"

	"helm.sh/helm/v3/pkg/action"
	"helm.sh/helm/v3/pkg/chart"
	"helm.sh/helm/v3/pkg/chart/loader"
	"helm.sh/helm/v3/pkg/cli"
	"helm.sh/helm/v3/pkg/registry"
	"helm.sh/helm/v3/pkg/release"
	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/client-go/discovery"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd"
	"sigs.k8s.io/yaml"

	"github.com/talos-proxmox/talos-proxmox/lab/standin/bridge"
)

// helm runs Helm's actions for one release.
type helm struct {
	in       bridge.Tree
	settings *cli.EnvSettings
	config   *action.Configuration
}

// getterOf hands Helm the clients of the cluster, in the release's namespace.
type getterOf struct {
	c         *cluster
	namespace string
}

func (g getterOf) ToRESTConfig() (*rest.Config, error) { return g.c.rest, nil }
func (g getterOf) ToDiscoveryClient() (discovery.CachedDiscoveryInterface, error) {
	return g.c.discovery, nil
}
func (g getterOf) ToRESTMapper() (meta.RESTMapper, error) { return g.c.mapper, nil }
func (g getterOf) ToRawKubeConfigLoader() clientcmd.ClientConfig {
	return inNamespace{rawConfig: g.c.kubeconfig, namespace: g.namespace}
}

// inNamespace wraps a kubeconfig to have another namespace.
type inNamespace struct {
	rawConfig
	namespace string
}

// rawConfig is [clientcmd.ClientConfig] under a name that does not hide its method ClientConfig.
type rawConfig = clientcmd.ClientConfig

// Namespace returns where Helm puts what says nothing about its namespace.
func (n inNamespace) Namespace() (string, bool, error) { return n.namespace, true, nil }

func newHelm(c *cluster, in bridge.Tree) (*helm, error) {
	// Helm's caches of a user are not ours to fill.
	dir := filepath.Join(os.TempDir(), fmt.Sprintf("lab-standin-helm-%d", os.Getuid()))
	settings := cli.New()
	settings.RepositoryCache = filepath.Join(dir, "repository")
	settings.RepositoryConfig = filepath.Join(dir, "repositories.yaml")
	settings.RegistryConfig = filepath.Join(dir, "registry.json")
	settings.SetNamespace(in.Str("namespace"))
	if err := os.MkdirAll(settings.RepositoryCache, 0o700); err != nil {
		return nil, fmt.Errorf("making Helm's cache: %w", err)
	}

	client, err := registry.NewClient(registry.ClientOptCredentialsFile(settings.RegistryConfig))
	if err != nil {
		return nil, fmt.Errorf("making a registry client: %w", err)
	}

	h := &helm{in: in, settings: settings, config: &action.Configuration{RegistryClient: client}}
	if c.unreachable != "" {
		return h, nil // enough to find a chart
	}

	err = h.config.Init(getterOf{c: c, namespace: in.Str("namespace")}, in.Str("namespace"), "secret", func(string, ...any) {})
	h.config.RegistryClient = client
	if err != nil {
		return nil, fmt.Errorf("preparing Helm: %w", err)
	}

	return h, nil
}

// load finds the chart: in a directory, an OCI registry or a repository.
func (h *helm) load(ctx context.Context) (*chart.Chart, error) {
	if err := ctx.Err(); err != nil {
		return nil, err
	}

	find := action.NewInstall(h.config)
	h.locate(&find.ChartPathOptions)

	name := h.in.Str("chart")
	path, err := find.LocateChart(name, h.settings)
	if err != nil {
		return nil, fmt.Errorf("locating chart %q: %w", name, err)
	}

	c, err := loader.Load(path)
	if err != nil {
		return nil, fmt.Errorf("loading chart %q: %w", name, err)
	}
	if deps := c.Metadata.Dependencies; deps != nil {
		if err := action.CheckDependencies(c, deps); err != nil {
			return nil, fmt.Errorf("chart %q: %w", name, err)
		}
	}
	if t := c.Metadata.Type; t != "" && t != "application" {
		return nil, fmt.Errorf("chart %q: %s charts are not installable", name, t)
	}

	return c, nil
}

func (h *helm) locate(o *action.ChartPathOptions) {
	opts := h.in.Sub("repositoryOpts")
	o.RepoURL, o.Version = opts.Str("repo"), h.in.Str("version")
	o.Username, o.Password = opts.Str("username"), opts.Str("password")
	o.CaFile, o.CertFile, o.KeyFile = opts.Str("caFile"), opts.Str("certFile"), opts.Str("keyFile")
	o.Keyring, o.Verify = h.in.Str("keyring"), h.in.Bool("verify")
}

// values returns those of the program over those of its files.
func (h *helm) values() (map[string]any, error) {
	if files, _ := h.in.At("valueYamlFiles").([]any); len(files) > 0 {
		return nil, errors.New("the lab's stand-in for the provider kubernetes does not read valueYamlFiles: use values")
	}

	values, ok := jsonish(map[string]any(h.in.Sub("values"))).(map[string]any)
	if !ok || values == nil {
		values = map[string]any{}
	}

	return values, nil
}

func (h *helm) timeout() time.Duration { return time.Duration(h.in.Int("timeout")) * time.Second }

func (h *helm) install(ctx context.Context) (*release.Release, error) {
	c, err := h.load(ctx)
	if err != nil {
		return nil, err
	}
	values, err := h.values()
	if err != nil {
		return nil, err
	}

	i := action.NewInstall(h.config)
	h.locate(&i.ChartPathOptions)
	i.ReleaseName, i.Namespace = h.in.Str("name"), h.in.Str("namespace")
	i.CreateNamespace, i.Atomic = h.in.Bool("createNamespace"), h.in.Bool("atomic")
	i.Wait, i.WaitForJobs = !h.in.Bool("skipAwait"), h.in.Bool("waitForJobs")
	i.SkipCRDs, i.DisableHooks = h.in.Bool("skipCrds"), h.in.Bool("disableWebhooks")
	i.TakeOwnership = h.in.Bool("takeOwnership")
	i.Timeout, i.Description = h.timeout(), h.in.Str("description")
	i.DependencyUpdate, i.Devel = h.in.Bool("dependencyUpdate"), h.in.Bool("devel")
	i.DisableOpenAPIValidation, i.Replace = h.in.Bool("disableOpenapiValidation"), h.in.Bool("replace")
	i.SubNotes = h.in.Bool("renderSubchartNotes")

	return i.RunWithContext(ctx, c, values)
}

func (h *helm) upgrade(ctx context.Context) (*release.Release, error) {
	c, err := h.load(ctx)
	if err != nil {
		return nil, err
	}
	values, err := h.values()
	if err != nil {
		return nil, err
	}

	u := action.NewUpgrade(h.config)
	h.locate(&u.ChartPathOptions)
	u.Namespace, u.Atomic, u.CleanupOnFail = h.in.Str("namespace"), h.in.Bool("atomic"), h.in.Bool("cleanupOnFail")
	u.Wait, u.WaitForJobs = !h.in.Bool("skipAwait"), h.in.Bool("waitForJobs")
	u.SkipCRDs, u.DisableHooks = h.in.Bool("skipCrds"), h.in.Bool("disableWebhooks")
	u.TakeOwnership = h.in.Bool("takeOwnership")
	u.Timeout, u.Description = h.timeout(), h.in.Str("description")
	u.Force, u.Recreate = h.in.Bool("forceUpdate"), h.in.Bool("recreatePods")
	u.ResetValues, u.ReuseValues = h.in.Bool("resetValues"), h.in.Bool("reuseValues")
	u.MaxHistory, u.DisableOpenAPIValidation = h.in.Int("maxHistory"), h.in.Bool("disableOpenapiValidation")
	u.SubNotes = h.in.Bool("renderSubchartNotes")

	return u.RunWithContext(ctx, h.in.Str("name"), c, values)
}

func (h *helm) uninstall(ctx context.Context) error {
	if err := ctx.Err(); err != nil {
		return err
	}

	u := action.NewUninstall(h.config)
	u.Timeout, u.Wait = h.timeout(), !h.in.Bool("skipAwait")
	u.DisableHooks = h.in.Bool("disableWebhooks")
	_, err := u.Run(h.in.Str("name"))

	return err
}

func (h *helm) get() (*release.Release, error) { return action.NewGet(h.config).Run(h.in.Str("name")) }

// resourceNames lists what a manifest holds, by kind.
func resourceNames(manifest string) map[string]any {
	names := map[string]any{}

	for doc := range strings.SplitSeq(manifest, "\n---") {
		o := struct {
			APIVersion, Kind string
			Metadata         struct{ Name, Namespace string }
		}{}
		if err := yaml.Unmarshal([]byte(doc), &o); err != nil || o.Kind == "" {
			continue
		}

		key, name := o.Kind+"/"+o.APIVersion, o.Metadata.Name
		if group, _, grouped := strings.Cut(o.APIVersion, "/"); grouped {
			key = o.Kind + "." + group + "/" + o.APIVersion
		}
		if o.Metadata.Namespace != "" {
			name = o.Metadata.Namespace + "/" + name
		}
		list, _ := names[key].([]any)
		names[key] = append(list, name)
	}

	return names
}
