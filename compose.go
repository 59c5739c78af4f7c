// SPDX-License-Identifier: Apache-2.0
// Copyright the talos-proxmox authors.

package main

import (
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"

	"github.com/pulumi/pulumi/sdk/v3/go/pulumi"

	"github.com/talos-proxmox/talos-proxmox/components"
	"github.com/talos-proxmox/talos-proxmox/internal/image"
	"github.com/talos-proxmox/talos-proxmox/spec"
	"github.com/talos-proxmox/talos-proxmox/stack"
)

// load reads the stack's configuration as Pulumi hands it over; everything wrong with it is in the
// error.
func load() (*stack.Stack, error) {
	source := stack.Source{Project: os.Getenv(pulumi.EnvProject), Stack: os.Getenv(pulumi.EnvStack), Dir: projectDir(), Environment: os.Getenv}
	if err := fromEnv(pulumi.EnvConfig, &source.Values); err != nil {
		return nil, err
	}
	if err := fromEnv("PULUMI_CONFIG_SECRET_KEYS", &source.SecretKeys); err != nil {
		return nil, err
	}

	return stack.Load(source)
}

func fromEnv(name string, into any) error {
	text := os.Getenv(name)
	if text == "" {
		return nil
	}
	if err := json.Unmarshal([]byte(text), into); err != nil {
		return fmt.Errorf("reading %s: %w", name, err)
	}

	return nil
}

// projectDir is where Pulumi.yaml is: Pulumi runs the program there.
func projectDir() string {
	dir, err := os.Getwd()
	if err != nil {
		return "."
	}

	return dir
}

// readFile reads a file that the stack names relative to the project.
func readFile(path string) ([]byte, error) {
	if !filepath.IsAbs(path) {
		path = filepath.Join(projectDir(), path)
	}

	return os.ReadFile(path)
}

// providers are the plugins' instances that the whole program uses.
type providers struct {
	proxmoxAndTalos pulumi.ResourceOption
	// images has a Talos provider for each factory.
	images map[string]pulumi.ResourceOption
}

func registerProviders(ctx *pulumi.Context, cfg spec.Config) (*providers, error) {
	identity, err := components.KeepIdentity(ctx, *cfg.Cluster.Name)
	if err != nil {
		return nil, err
	}
	after := pulumi.DependsOn([]pulumi.Resource{identity})
	proxmox, err := components.NewProxmoxProvider(ctx, "proxmox", cfg.Proxmox, after)
	if err != nil {
		return nil, err
	}
	p := &providers{images: map[string]pulumi.ResourceOption{}}
	for _, variant := range variantsOf(cfg) {
		factory := spec.Or(cfg.Images[variant].FactoryURL, image.DefaultFactory)
		if _, there := p.images[factory]; there {
			continue
		}
		name := "talos"
		if len(p.images) > 0 {
			name += "-" + variant
		}
		talos, err := components.NewTalosProvider(ctx, name, &factory, after)
		if err != nil {
			return nil, err
		}
		p.images[factory] = pulumi.Providers(proxmox, talos)
		if p.proxmoxAndTalos == nil {
			p.proxmoxAndTalos = p.images[factory]
		}
	}

	return p, nil
}

// variantsOf are the image variants that nodes boot, in the order of the nodes.
func variantsOf(cfg spec.Config) []string {
	var variants []string
	seen := map[string]bool{}
	for _, n := range cfg.Nodes {
		variant := spec.Or(n.Node.Image, spec.DefaultImage)
		if !seen[variant] {
			seen[variant] = true
			variants = append(variants, variant)
		}
	}

	return variants
}

func registerImages(ctx *pulumi.Context, cfg spec.Config, p *providers) (map[string]*components.TalosImage, error) {
	images := map[string]*components.TalosImage{}
	for _, variant := range variantsOf(cfg) {
		img := cfg.Images[variant]
		made, err := components.NewTalosImage(ctx, *cfg.Cluster.Name+"-"+variant, &components.TalosImageArgs{
			ClusterName: *cfg.Cluster.Name, Variant: variant, TalosVersion: *cfg.Talos.Version, Image: img,
			Targets: components.ImageTargets(cfg, variant), Directory: projectDir(),
		}, p.images[spec.Or(img.FactoryURL, image.DefaultFactory)])
		if err != nil {
			return nil, err
		}
		images[variant] = made
	}

	return images, nil
}

func registerNodes(
	ctx *pulumi.Context, cfg spec.Config, images map[string]*components.TalosImage,
	secrets *components.TalosSecrets, p *providers,
) (map[string]*components.ProxmoxNode, error) {
	nodes := map[string]*components.ProxmoxNode{}
	rebuilds, err := secrets.GuardRebuilds(ctx)
	if err != nil {
		return nil, err
	}
	for _, n := range cfg.Nodes {
		file, err := images[spec.Or(n.Node.Image, spec.DefaultImage)].FileID(*n.Host)
		if err != nil {
			return nil, err
		}
		guard, err := secrets.Guard(ctx, n.Name)
		if err != nil {
			return nil, err
		}
		made, err := components.NewProxmoxNode(ctx, *cfg.Cluster.Name+"-"+n.Name, &components.ProxmoxNodeArgs{
			Cluster: cfg.Cluster, Node: n, Image: cfg.Image(n), ImageFileID: file,
			Proxmox: cfg.Proxmox, Lifecycle: cfg.Lifecycle,
			After: []pulumi.Resource{secrets, rebuilds}, Hooks: guard,
		}, p.proxmoxAndTalos)
		if err != nil {
			return nil, err
		}
		nodes[n.Name] = made
	}

	return nodes, nil
}

func machinesOf(nodes map[string]*components.ProxmoxNode) map[string]pulumi.Resource {
	machines := make(map[string]pulumi.Resource, len(nodes))
	for name, n := range nodes {
		machines[name] = n.VM
	}

	return machines
}

// handedOver is what a git host and a repository's authors must know of the cluster.
type handedOver struct {
	// deployKey is the public key that the git host must allow to read; empty without an SSH key.
	deployKey pulumi.StringInput
	// byHand says where the key was allowed by hand; empty where it is registered, or there is none.
	byHand string
	// ageRecipient is what secrets in the repository are encrypted for; nil without SOPS.
	ageRecipient pulumi.StringInput
}

// handToGit installs the GitOps controller that the stack asks for.
func handToGit(
	ctx *pulumi.Context, cfg spec.Config, cluster *components.TalosCluster, charts components.ChartCache,
) (handedOver, error) {
	name := *cfg.Cluster.Name
	before, err := components.RememberGitOps(ctx, name+"-gitops", cfg.GitOps, cluster.Kubeconfig, cluster.Ready)
	if err != nil {
		return handedOver{}, err
	}
	after := []pulumi.Resource{before}
	key, err := components.NewAgeKey(ctx, name+"-age", name+"-flux")
	if err != nil {
		return handedOver{}, err
	}
	switch *cfg.GitOps.Provider {
	case "flux":
		flux, err := components.NewFluxBootstrap(ctx, name+"-flux", &components.FluxBootstrapArgs{
			ClusterName: name, Kubeconfig: cluster.Kubeconfig, Cluster: cluster, GitOps: cfg.GitOps, Charts: charts, AgeKey: key, After: after,
		})
		if err != nil {
			return handedOver{}, err
		}
		made := handedOver{deployKey: flux.PublicKey, byHand: allowedByHand(cfg.GitOps.Git)}
		if cfg.GitOps.SOPS != nil {
			made.ageRecipient = flux.AgeRecipient
		}

		return made, nil
	case "argocd":
		argo, err := components.NewArgoBootstrap(ctx, name+"-argocd", &components.ArgoBootstrapArgs{
			ClusterName: name, Kubeconfig: cluster.Kubeconfig, Cluster: cluster, GitOps: cfg.GitOps, Charts: charts, After: after,
		})
		if err != nil {
			return handedOver{}, err
		}

		return handedOver{deployKey: argo.PublicKey, byHand: allowedByHand(cfg.GitOps.Git)}, nil
	default:
		return handedOver{deployKey: pulumi.String("")}, nil
	}
}

// allowedByHand says what a destroy leaves behind: it shows the outputs that go with the stack. Empty
// where the key is registered by the stack, or there is none.
func allowedByHand(g spec.Git) string {
	if g.Auth == nil || spec.Or(g.Auth.Type, "") != "ssh" || g.Auth.Register != nil {
		return ""
	}

	return "the deploy key is allowed by hand at " + spec.Or(g.URL, "") + ", and `pulumi destroy` leaves it there"
}

// export says what the stack made; kubeconfig and talosconfig are secrets.
func export(ctx *pulumi.Context, cfg spec.Config, cluster *components.TalosCluster, git handedOver) {
	nodes := pulumi.Map{}
	for _, n := range cfg.Nodes {
		nodes[n.Name] = pulumi.StringMap{
			"address": pulumi.String(n.Address().String()),
			"host":    pulumi.String(*n.Host),
			"role":    pulumi.String(string(*n.Role)),
		}
	}
	if git.ageRecipient != nil {
		ctx.Export("ageRecipient", git.ageRecipient)
	}
	ctx.Export("deployKey", git.deployKey)
	if git.byHand != "" {
		ctx.Export("deployKeyStays", pulumi.String(git.byHand))
	}
	ctx.Export("endpoint", cluster.Endpoint)
	ctx.Export("kubeconfig", cluster.Kubeconfig)
	ctx.Export("nodes", nodes)
	ctx.Export("talosconfig", cluster.Talosconfig)
	ctx.Export("versions", pulumi.StringMap{
		"kubernetes": pulumi.String(*cfg.Kubernetes.Version),
		"talos":      pulumi.String(*cfg.Talos.Version),
	})
}
