// SPDX-License-Identifier: Apache-2.0
// Copyright the talos-proxmox authors.

package addons

import (
	"net/netip"
	"regexp"
	"strings"

	"github.com/talos-proxmox/talos-proxmox/internal/check"
	"github.com/talos-proxmox/talos-proxmox/internal/rules/scope"
	"github.com/talos-proxmox/talos-proxmox/spec"
)

// cni checks the pod network.
func (r *rules) cni() {
	if !r.Config.UsesCilium() {
		r.otherCNI()

		return
	}
	c := *r.Config.CNI.Cilium
	r.ciliumJob(c)
	r.chart("cni.cilium.chart", c.Chart)
	if said := r.Said.CNI.Cilium; said != nil {
		r.chartOfRepository("cni.cilium.chart", said.Chart, "cilium")
	}
	if v := c.Chart.Version; v != nil && strings.TrimPrefix(*v, "v") == strings.TrimPrefix(*r.Config.Talos.Version, "v") {
		r.Addf("cni.cilium.chart.version",
			"%s is the version of Talos: give the version of the Cilium chart, such as 1.18.4", *v)
	}
	if *c.Install != "job" && c.CLIImage != nil {
		r.Addf("cni.cilium.cliImage", "is for install job, and install is %s: remove it", *c.Install)
	}
	if !*c.KubeProxyReplacement {
		for field, used := range map[string]bool{"l2": c.L2 != nil, "gatewayApi": c.GatewayAPI != nil} {
			if used {
				r.Addf("cni.cilium."+field, "needs kubeProxyReplacement: set it to true")
			}
		}
	}
	r.ciliumValues(c)
	r.announcements(c)
	r.bgp(c.BGP)
	if c.GatewayAPI != nil {
		r.gatewayAPI(c, *c.GatewayAPI)
	}
}

// ciliumJob checks what the Cilium CLI can be told of a chart.
func (r *rules) ciliumJob(c spec.Cilium) {
	if *c.Install != "job" {
		return
	}
	const at, instead = "cni.cilium.chart.", "set cni.cilium.install to chart"
	if repository := spec.Value(c.Chart.Repository); repository != "" && !strings.Contains(repository, "://") {
		r.Addf(at+"repository", "%s is a path in the project, which the install Job cannot read: "+
			"write https://… or oci://…, or %s", repository, instead)
	}
	if spec.Value(c.Chart.Name) != "cilium" {
		r.Addf(at+"name", "the install Job installs the chart cilium alone: remove it, or %s", instead)
	}
	if c.Chart.Digest != nil {
		r.Addf(at+"digest", "the install Job cannot check a digest: remove it, or %s", instead)
	}
	if c.Chart.Username != nil {
		r.Addf(at+"username", "the install Job cannot log in to a repository: remove username and password, or %s", instead)
	}
}

// gatewayAPI checks the definitions' version, and what stands in front of the API servers.
func (r *rules) gatewayAPI(c spec.Cilium, g spec.GatewayAPI) {
	const at = "cni.cilium.gatewayApi"
	if g.Version != nil {
		r.ChartVersion(at+".version", g.Version)
	}
	if g.Version != nil && len(g.CRDs) > 0 {
		r.Addf(at+".version", "is the release of the definitions, and crds names them: keep one of the two")
	}
	r.definitions(at+".crds", g.CRDs)
	a := g.APIServer
	if a == nil {
		return
	}
	r.frontDoor(at+".apiServer", c, *a)
	if _, err := spec.ParseAddr(a.Hostname); err == nil || !scope.DomainForm.MatchString(a.Hostname) {
		r.Addf(at+".apiServer.hostname", "%q is no name: write one such as api.example.com, which clients ask by", a.Hostname)
	}
	if a.Address == nil {
		return
	}
	address, err := spec.ParseAddr(*a.Address)
	if err != nil {
		r.Addf(at+".apiServer.address", "%s", err)
	} else if len(c.Pools) > 0 && !inPools(c.Pools, address) && !r.Wrong("cni.cilium.pools") {
		r.Addf(at+".apiServer.address", "%s is in none of the pools: choose an address of cni.cilium.pools", address)
	}
}

// inPools reports whether one of the pools has the address.
func inPools(pools map[string]spec.CiliumPool, a netip.Addr) bool {
	for _, p := range pools {
		if addresses, ok := scope.PoolRange(p); ok && addresses.Contains(a) {
			return true
		}
	}

	return false
}

// announcements checks who announces which LoadBalancer addresses.
func (r *rules) announcements(c spec.Cilium) {
	if c.L2 != nil {
		r.Twice("cni.cilium.l2.interfaces", c.L2.Interfaces)
		for i, expression := range c.L2.Interfaces {
			if _, err := regexp.Compile(expression); err != nil || expression == "" {
				r.Addf(check.Index("cni.cilium.l2.interfaces", i),
					"%q is no regular expression of interface names such as ^eth0$", expression)
			}
		}
	}
	r.pools(c)
	r.announced(c)
}

// otherCNI checks what is written beside another pod network than Cilium.
func (r *rules) otherCNI() {
	if r.Config.CNI.Cilium != nil {
		r.Addf("cni.cilium", "is written while cni.name is %s: set cni.name to cilium, or remove it", *r.Config.CNI.Name)
	}
	m := r.Config.Manifests
	if r.Config.CNI.Cilium == nil && *r.Config.CNI.Name == "none" && len(m.Inline)+len(m.Charts)+len(m.Extra) == 0 &&
		!spec.Value(r.Config.Lifecycle.SkipKubernetesChecks) {
		r.Addf("cni.name", "is none and no manifest brings a pod network, so that nodes never get ready: "+
			"add one under manifests, or set lifecycle.skipKubernetesChecks to true")
	}
}

func (r *rules) bgp(b *spec.CiliumBGP) {
	if b == nil {
		return
	}
	if len(b.Peers) == 0 {
		r.Addf("cni.cilium.bgp.peers", "is empty: name at least one peer")
	}
	for _, name := range scope.SortedKeys(b.Peers) {
		at := check.Key("cni.cilium.bgp.peers", name)
		r.peer(at, name, *b)
	}
	r.asNumber("cni.cilium.bgp.localAsn", b.LocalASN)
}

// pool checks a pool of LoadBalancer addresses: its form, and that none of them is in use.
func (r *rules) pool(path string, p spec.CiliumPool) {
	switch {
	case p.CIDR != nil && (p.Start != nil || p.Stop != nil):
		r.Addf(path, "has a cidr beside start or stop: keep one of the two forms")
	case p.CIDR != nil:
		if network, ok := r.CIDR(path+".cidr", *p.CIDR); ok {
			r.poolApart(path+".cidr", scope.RangeOf(network))
		}
	case p.Start == nil || p.Stop == nil:
		r.Addf(path, "needs start and stop, or cidr")
	default:
		start, errStart := spec.ParseAddr(*p.Start)
		stop, errStop := spec.ParseAddr(*p.Stop)
		if errStart != nil {
			r.Addf(path+".start", "%s", errStart)
		}
		if errStop != nil {
			r.Addf(path+".stop", "%s", errStop)
		}
		if errStart != nil || errStop != nil {
			return
		}
		if start.Is4() != stop.Is4() || stop.Less(start) {
			r.Addf(path+".stop", "%s is before %s: write the last address of the pool", stop, start)

			return
		}
		r.poolApart(path, scope.Range{First: start, Last: stop})
	}
}

// chart checks where a chart comes from, and what is set with it.
func (r *rules) chart(path string, c spec.Chart) {
	remote := r.chartRepository(path+".repository", c)
	if c.Name != nil && !scope.QualifiedForm.MatchString(*c.Name) {
		r.Addf(path+".name", "%q is no name of a chart", *c.Name)
	}
	if c.Version != nil || remote {
		r.ChartVersion(path+".version", c.Version)
	}
	for field, used := range map[string]bool{
		"digest": c.Digest != nil, "username": c.Username != nil, "password": c.Password != nil,
	} {
		if used && !remote && c.Repository != nil {
			r.Addf(path+"."+field, "is for a repository in the network, and this one is a path: remove it")
		}
	}
	if c.Digest != nil && !scope.DigestForm.MatchString(*c.Digest) {
		r.Addf(path+".digest", "%q is no digest: write sha256: and 64 hexadecimal digits", *c.Digest)
	}
	if c.Values != nil && !scope.IsYAMLMap(*c.Values) {
		r.Addf(path+".values", "are not a block of YAML")
	}
	r.Together(path, c.Username != nil, c.Password != nil)
}

// chartOfRepository checks the name of a chart whose repository is the default one, which has one chart that fits.
func (r *rules) chartOfRepository(path string, said spec.Chart, name string) {
	if said.Repository == nil && said.Name != nil && *said.Name != name && !r.Wrong(path+".name") {
		r.Addf(path+".name", "is %s, and the default repository has %s: remove it, or name your own repository", *said.Name, name)
	}
}

// chartRepository checks where a chart comes from, and reports whether that is the network.
func (r *rules) chartRepository(path string, c spec.Chart) bool {
	switch repository := spec.Value(c.Repository); {
	case c.Repository == nil:
		r.Addf(path, "is required: write an URL, oci://… or a path in the project")
	case strings.Contains(repository, "://"):
		if _, ok := scope.WebURL(repository, "https", "http", "oci"); !ok {
			r.Addf(path,
				"%q is no chart repository: write https://…, oci://… or a path in the project", repository)
		}
		if strings.HasPrefix(repository, "http://") && c.Password != nil {
			r.Addf(path, "sends username and password in plain text: write https://")
		}
	default:
		r.File(path, c.Repository)
		r.chartFolder(path, c)

		return false
	}

	return true
}

// manifests checks what the cluster gets at day 0.
func (r *rules) manifests() {
	m := r.Config.Manifests
	r.inlineManifests(m)
	for _, name := range scope.SortedKeys(m.Charts) {
		at := check.Key("manifests.charts", name)
		if !scope.LabelForm.MatchString(name) {
			r.Addf(at, "%q is no name of a release: use lower-case letters, digits and dashes", name)
		}
		r.chart(at, m.Charts[name].Chart)
		if ns := m.Charts[name].Namespace; ns != nil && !scope.LabelForm.MatchString(*ns) {
			r.Addf(at+".namespace", "%q is no name of a namespace", *ns)
		}
	}
	r.headers(m)
	r.extraURLs(m)
	r.coreDNS(m.CoreDNS)
	if d := m.CoreDNS; d != nil {
		r.coreDNSSettings(*d)
	}
}

// extraURLs checks the manifests that control planes fetch.
func (r *rules) extraURLs(m spec.Manifests) {
	r.Twice("manifests.extra", m.Extra)
	for i, extra := range m.Extra {
		if u, ok := scope.WebURL(extra, "https", "http"); !ok || scope.Loopback(u.Hostname()) {
			r.Addf(check.Index("manifests.extra", i), "%q is no URL that control planes could fetch", extra)
		}
	}
	for i, extra := range m.Extra {
		if len(m.ExtraHeaders) > 0 && strings.HasPrefix(extra, "http://") {
			r.Addf(check.Index("manifests.extra", i), "sends manifests.extraHeaders in plain text: write https://")
		}
	}
	if len(m.ExtraHeaders) > 0 && len(m.Extra) == 0 {
		r.Addf("manifests.extraHeaders", "is for the URLs under extra, and there are none: remove it")
	}
}

// coreDNSSettings checks settings of CoreDNS that are no part of its configuration.
func (r *rules) coreDNSSettings(d spec.CoreDNS) {
	if d.Image != nil && !imageForm.MatchString(*d.Image) {
		r.Addf("manifests.coreDns.image", "%q is no image such as registry.k8s.io/coredns/coredns:v1.13.2", *d.Image)
	}
	if spec.Value(d.Disabled) &&
		(d.Image != nil || d.Corefile != nil || spec.Value(r.Said.Manifests.CoreDNS).Replicas != nil) {
		r.Addf("manifests.coreDns.disabled", "is true while other settings of CoreDNS are written: remove one of them")
	}
}

// inlineManifests checks manifests that stand in the file, or beside it.
func (r *rules) inlineManifests(m spec.Manifests) {
	held := map[string]string{}
	for _, name := range scope.SortedKeys(m.Inline) {
		manifest := m.Inline[name]
		at := check.Key("manifests.inline", name)
		r.BlockName(at, name)
		switch {
		case manifest.Inline == nil && manifest.File == nil:
			r.Addf(at, "needs inline or file")
		case manifest.Inline != nil && manifest.File != nil:
			r.Addf(at, "has both inline and file: keep one")
		case manifest.Inline != nil:
			r.objects(at+".inline", string(*manifest.Inline), held)
		}
		r.File(at+".file", manifest.File)
		if manifest.File != nil && !r.Wrong(at) {
			r.objectsIn(at+".file", *manifest.File, held)
		}
	}
}
