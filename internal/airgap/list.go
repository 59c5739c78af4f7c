// SPDX-License-Identifier: Apache-2.0
// Copyright the talos-proxmox authors.

package airgap

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"net/url"
	"slices"
	"strings"

	"github.com/siderolabs/talos/pkg/machinery/config"
	"github.com/siderolabs/talos/pkg/machinery/config/configloader"
	"github.com/siderolabs/talos/pkg/machinery/config/types/k8s"

	"github.com/talos-proxmox/talos-proxmox/internal/image"
	"github.com/talos-proxmox/talos-proxmox/internal/machineconfig"
	"github.com/talos-proxmox/talos-proxmox/internal/manifests"
	"github.com/talos-proxmox/talos-proxmox/internal/versions"
	"github.com/talos-proxmox/talos-proxmox/spec"
)

// Who pulls.
const (
	// Node pulls through the nodes' registry mirrors.
	Node = "node"
	// Host is a Proxmox host that downloads boot images.
	Host = "host"
	// Program is the machine that runs Pulumi.
	Program = "program"
	// Cluster is a workload in the cluster that reads from git.
	Cluster = "cluster"
)

// Pull describes an image, chart or file that is pulled.
type Pull struct {
	// By says who: [Node], [Host], [Program] or [Cluster].
	By string
	// Name as the configuration has it: an image reference or a URL, without credentials.
	Name string
	// From is where it comes from once mirrors are applied; Name itself where there is none.
	From string
	// Why says what it is for.
	Why string
	// Outside is true when From is not one of the stack's mirrors.
	Outside bool
}

// Input holds what the list is made from.
type Input struct {
	// Config is the cluster, complete.
	Config spec.Config
	// Manifests are the day-0 manifests.
	Manifests []machineconfig.Manifest
	// Releases are charts that the program installs later, by name of the release.
	Releases map[string]spec.DayZeroChart
	// Charts holds the chart archives.
	Charts manifests.Cache
	// ReadFile reads a file relative to the project directory.
	ReadFile func(string) ([]byte, error)
}

// List returns everything that is pulled, sorted, and notes on what cannot be known here.
func List(ctx context.Context, in Input) (pulls []Pull, notes []string, err error) {
	l := &lister{in: in, cfg: in.Config}
	errs := errors.Join(l.boot(), l.nodes(), l.workloads(), l.charts(ctx))
	if errs != nil {
		return nil, nil, errs
	}
	slices.SortFunc(l.pulls, func(a, b Pull) int {
		return cmp.Or(strings.Compare(a.By, b.By), strings.Compare(a.Name, b.Name), strings.Compare(a.Why, b.Why))
	})
	l.pulls = slices.CompactFunc(l.pulls, func(a, b Pull) bool { return a.By == b.By && a.Name == b.Name })

	return l.pulls, l.notes, nil
}

// lister collects.
type lister struct {
	in    Input
	cfg   spec.Config
	pulls []Pull
	notes []string
}

// image adds a container image that nodes pull.
func (l *lister) image(reference, why string) {
	if reference == "" {
		return
	}
	from := Mirrored(l.cfg.Talos.Registries, reference)
	l.pulls = append(l.pulls, Pull{By: Node, Name: reference, From: from, Why: why, Outside: !l.mirror(hostOf(from))})
}

// url adds something that is downloaded.
func (l *lister) url(by, name, why string) {
	if u, err := url.Parse(name); err == nil {
		u.User = nil
		name = u.String()
	}
	l.pulls = append(l.pulls, Pull{By: by, Name: name, From: name, Why: why, Outside: !l.mirror(hostOf(name))})
}

// note says what cannot be known.
func (l *lister) note(format string, args ...any) {
	l.notes = append(l.notes, fmt.Sprintf(format, args...))
}

// boot adds the boot images, their registration and the installers, of every variant in use.
func (l *lister) boot() error {
	talos := spec.Value(l.cfg.Talos.Version)
	for _, n := range l.cfg.Nodes {
		img := l.cfg.Image(n)
		schematic, err := image.Resolve(img, talos, l.in.ReadFile)
		if err != nil {
			return fmt.Errorf("image of node %q: %w", n.Name, err)
		}
		l.url(Host, image.DownloadURL(img, schematic.ID, talos), "boot image")
		l.image(image.Installer(img, schematic.ID, talos), "installer")
		if spec.Value(img.Register) {
			factory := strings.TrimRight(spec.Value(img.FactoryURL), "/")
			l.url(Program, factory+"/schematics", "registration of the schematic")
		}
	}

	return nil
}

// nodes adds what Talos runs by itself, as the rendered configurations say.
func (l *lister) nodes() error {
	if len(l.cfg.Nodes) == 0 {
		return nil
	}
	secrets, err := machineconfig.ThrowAwaySecrets()
	if err != nil {
		return fmt.Errorf("rendering the nodes' configurations: %w", err)
	}
	in := machineconfig.Input{Config: l.cfg, ReadFile: l.in.ReadFile}
	for _, n := range l.cfg.Nodes {
		text, err := machineconfig.Render(in, n.Name, secrets)
		if err != nil {
			return err
		}
		provider, err := configloader.NewFromBytes([]byte(text))
		if err != nil {
			return fmt.Errorf("reading the configuration of node %q: %w", n.Name, err)
		}
		l.node(n, provider)
	}

	return nil
}

// node adds one node's images.
func (l *lister) node(n spec.NamedNode, provider config.Provider) {
	own, exact := versions.ImagesOf(spec.Value(l.cfg.Talos.Version))
	if !exact {
		l.noteOnce("the images that Talos %s brings itself (etcd, CoreDNS, flannel, pause) are those of %s: "+
			"compare with `talosctl image default`",
			spec.Value(l.cfg.Talos.Version), own.Talos)
	}
	l.image(own.Pause, "sandbox of every pod")
	if k := provider.K8sKubeletConfig(); k != nil {
		l.image(k.Image(), "kubelet")
	}
	if spec.Value(l.cfg.CNI.Name) == "flannel" {
		l.image(own.Flannel, "pod network")
	}
	if !n.IsControlPlane() {
		return
	}
	for _, service := range provider.DiscoveryServiceConfigs() {
		l.url(Node, service.Endpoint().String(), "cluster discovery")
	}
	l.image(provider.K8sAPIServerConfig().Image(), "API server")
	l.image(provider.K8sControllerManagerConfig().Image(), "controller manager")
	l.image(provider.K8sSchedulerConfig().Image(), "scheduler")
	l.image(cmp.Or(provider.RawV1Alpha1().ClusterConfig.EtcdConfig.ContainerImage, own.Etcd), "etcd")
	if proxy := provider.K8sProxyConfig(); proxy.Enabled() {
		l.image(proxy.Image(), "kube-proxy")
	}
	if provider.K8sCoreDNSConfig().Enabled() {
		l.image(cmp.Or(coreDNSImage(provider), own.CoreDNS), "CoreDNS")
	}
}

// coreDNSImage returns the image that the configuration names for CoreDNS, empty when it names none:
// the machinery would then name that of its own release.
func coreDNSImage(provider config.Provider) string {
	for _, doc := range provider.Documents() {
		if dns, ok := doc.(*k8s.KubeCoreDNSConfigV1Alpha1); ok {
			return dns.PodImage
		}
	}
	if dns := provider.RawV1Alpha1().ClusterConfig.CoreDNSConfig; dns != nil {
		return dns.CoreDNSImage
	}

	return ""
}

// noteOnce says it once.
func (l *lister) noteOnce(format string, args ...any) {
	if text := fmt.Sprintf(format, args...); !slices.Contains(l.notes, text) {
		l.notes = append(l.notes, text)
	}
}

// workloads adds what the manifests run, and what control planes download to apply.
func (l *lister) workloads() error {
	for _, m := range l.in.Manifests {
		images, err := manifests.Images(m.Contents)
		if err != nil {
			return fmt.Errorf("manifest %s: %w", m.Name, err)
		}
		for _, i := range images {
			l.image(i, "manifest "+m.Name)
		}
	}
	extra, err := manifests.ExtraURLs(l.cfg)
	if err != nil {
		return err
	}
	for _, u := range extra {
		l.url(Node, u, "extra manifest")
	}
	if len(l.cfg.Manifests.Extra) > 0 {
		l.note("the images that extra manifests name are not known here")
	}
	if g := l.cfg.GitOps; spec.Value(g.Provider) != "none" && g.Git.URL != nil {
		l.url(Cluster, *g.Git.URL, "repository that "+*g.Provider+" follows")
		l.note("the images that the repository's own workloads name are not known here")
	}

	return nil
}

// charts adds the chart archives, and what later releases run.
func (l *lister) charts(ctx context.Context) error {
	if l.cfg.UsesCilium() {
		if err := l.cilium(ctx); err != nil {
			return err
		}
	}
	for _, c := range l.cfg.Manifests.Charts {
		l.archive(c.Chart)
	}
	for name, c := range l.in.Releases {
		l.archive(c.Chart)
		text, err := manifests.RenderChart(ctx, l.in.Charts, l.cfg, name, c)
		if err != nil {
			return fmt.Errorf("release %s: %w", name, err)
		}
		images, err := manifests.Images(text)
		if err != nil {
			return fmt.Errorf("release %s: %w", name, err)
		}
		for _, i := range images {
			l.image(i, "release "+name)
		}
	}

	return nil
}

// cilium adds the pod network's chart. What the install Job brings is not among the manifests.
func (l *lister) cilium(ctx context.Context) error {
	ch := manifests.CiliumChart(l.cfg)
	if spec.Value(l.cfg.CNI.Cilium.Install) != "job" {
		l.archive(ch)

		return nil
	}
	l.url(Cluster, strings.TrimRight(*ch.Repository, "/"),
		fmt.Sprintf("chart %s %s, unless the Cilium CLI has it", *ch.Name, *ch.Version))
	images, err := manifests.Input{Config: l.cfg, Charts: l.in.Charts}.CiliumJobImages(ctx)
	if err != nil {
		return err
	}
	for _, i := range images {
		l.image(i, "Cilium")
	}

	return nil
}

// archive adds a chart's archive, unless it is a path.
func (l *lister) archive(ch spec.Chart) {
	if repository := spec.Value(ch.Repository); strings.Contains(repository, "://") {
		why := fmt.Sprintf("chart %s %s, unless it is in the cache", spec.Value(ch.Name), spec.Value(ch.Version))
		l.url(Program, strings.TrimRight(repository, "/"), why)
	}
}
