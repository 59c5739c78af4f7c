// SPDX-License-Identifier: Apache-2.0
// Copyright the talos-proxmox authors.

package manifests

import (
	"context"
	"encoding/base64"
	"errors"

	"github.com/talos-proxmox/talos-proxmox/internal/check"
	"github.com/talos-proxmox/talos-proxmox/internal/versions"
	"github.com/talos-proxmox/talos-proxmox/spec"
)

const (
	// CiliumRepository holds Cilium's chart where the stack names no other.
	CiliumRepository = "https://helm.cilium.io"

	// ciliumNamespace is where Cilium runs; Talos exempts it from pod security.
	ciliumNamespace = "kube-system"
)

// CiliumChart returns the chart that the cluster's Cilium comes from: the stack's, with defaults.
func CiliumChart(cfg spec.Config) spec.Chart {
	ch := spec.Value(cfg.CNI.Cilium).Chart
	if ch.Repository == nil {
		ch.Repository = spec.Ptr(CiliumRepository)
	}
	if ch.Name == nil {
		ch.Name = spec.Ptr("cilium")
	}
	if ch.Version == nil {
		ch.Version = spec.Ptr(versions.CiliumChart)
	}

	return ch
}

// cilium returns the pod network: the chart or the Job that installs it, and the objects that say what it
// announces and allows.
func (in Input) cilium(ctx context.Context) ([]part, error) {
	settings := spec.Value(in.Config.CNI.Cilium)
	values, err := in.ciliumValues(settings)
	if err != nil {
		return nil, check.At("cni.cilium.chart.values", err)
	}
	var install part
	if spec.Value(settings.Install) == "job" {
		install = part{name: "cilium-install", contents: ciliumJob(in.Config, settings, values)}
	} else {
		contents, err := in.ciliumChart(ctx, values)
		if err != nil {
			return nil, check.At("cni.cilium.chart", err)
		}
		install = part{name: "cilium", contents: contents}
	}
	crds, err := in.gatewayFiles(settings)
	if err != nil {
		return nil, err
	}
	parts := append(crds, install)
	if announced := announcements(in.Config, settings); announced != "" {
		parts = append(parts, part{name: "cilium-announcements", contents: announced})
	}
	if gateway := spec.Value(settings.GatewayAPI); gateway.APIServer != nil {
		parts = append(parts, part{name: "kubernetes-api-gateway", contents: apiServerGateway(*gateway.APIServer)})
	}
	if spec.Value(settings.DefaultDeny) {
		parts = append(parts, part{name: "cilium-default-deny", contents: defaultDeny(in.Config)})
	}

	return parts, nil
}

// ciliumChart renders the chart.
func (in Input) ciliumChart(ctx context.Context, values object) (string, error) {
	loaded, err := in.Charts.Load(ctx, CiliumChart(in.Config))
	if err != nil {
		return "", err
	}

	return in.Renders.render(loaded, in.ciliumRelease(values))
}

// ciliumRelease returns how the chart is rendered.
func (in Input) ciliumRelease(values object) Release {
	return Release{
		Name: "cilium", Namespace: ciliumNamespace, Kubernetes: spec.Value(in.Config.Kubernetes.Version), Values: values,
		// Its templates ask for the kinds that Gateway API brings.
		APIs: []string{"gateway.networking.k8s.io/v1/GatewayClass", "gateway.networking.k8s.io/v1"},
	}
}

// CiliumJobImages returns the images of what the install Job installs; none where there is no such Job.
func (in Input) CiliumJobImages(ctx context.Context) ([]string, error) {
	settings := spec.Value(in.Config.CNI.Cilium)
	if !in.Config.UsesCilium() || spec.Value(settings.Install) != "job" {
		return nil, nil
	}
	values, err := in.ciliumValues(settings)
	if err != nil {
		return nil, check.At("cni.cilium.chart.values", err)
	}
	loaded, err := in.Charts.Load(ctx, CiliumChart(in.Config))
	if err != nil {
		return nil, check.At("cni.cilium.chart", err)
	}
	text, err := renderOnce(loaded, in.ciliumRelease(values))
	if err != nil {
		return nil, check.At("cni.cilium.chart", err)
	}

	return Images(text)
}

// ciliumValues returns the values that Talos needs, what the settings turn on, and the user's over both.
func (in Input) ciliumValues(settings spec.Cilium) (object, error) {
	values := talosValues()
	if spec.Value(settings.KubeProxyReplacement) {
		values["kubeProxyReplacement"] = true
	}
	host, port := in.apiServer()
	values["k8sServiceHost"], values["k8sServicePort"] = host, port
	in.families(values)
	if settings.L2 != nil {
		values["l2announcements"] = object{"enabled": true}
		values["externalIPs"] = object{"enabled": true}
		// Every lease that is held costs requests; the default limit is too low for a few dozen.
		values["k8sClientRateLimit"] = object{"qps": 50, "burst": 100}
	}
	if settings.BGP != nil {
		values["bgpControlPlane"] = object{"enabled": true}
	}
	if settings.GatewayAPI != nil {
		values["gatewayAPI"] = object{"enabled": true, "enableAlpn": true, "enableAppProtocol": true}
	}
	// An edit of the values takes effect: pods start anew with the settings that they read at their start.
	operator := object{"rollOutPods": true}
	switch job := spec.Value(settings.Install) == "job"; {
	case len(in.Config.Nodes) == 1:
		operator["replicas"] = 1
	case job:
		operator["replicas"] = 2 // the chart's default, of which the CLI makes 1
	}
	values["rollOutCiliumPods"], values["operator"] = true, operator
	hubble := spec.Value(settings.Hubble)
	values["hubble"] = object{"enabled": hubble, "relay": object{"enabled": hubble}, "ui": object{"enabled": hubble}}
	if spec.Value(settings.Install) == "chart" {
		if in.Certificates == nil {
			return nil, errors.New("Cilium's certificates are missing")
		}
		values = MergeValues(values, in.Certificates.values())
	}
	over, err := valuesOf(settings.Chart.Values)
	if err != nil {
		return nil, err
	}

	return MergeValues(values, over), nil
}

// families turns on the IP families of the pods' networks, where they are others than the chart's own.
func (in Input) families(values object) {
	four, six := false, false
	for _, text := range in.Config.Cluster.PodSubnets {
		if p, err := spec.ParseNetwork(text); err == nil {
			four, six = four || p.Addr().Is4(), six || p.Addr().Is6()
		}
	}
	if six {
		values["ipv6"] = object{"enabled": true}
	}
	if six && !four {
		values["ipv4"] = object{"enabled": false}
	}
}

// apiServer returns where Cilium reaches the Kubernetes API while it provides the services itself: the
// load balancer on every node, else the endpoint.
func (in Input) apiServer() (host string, port int) {
	prism := spec.Value(in.Config.Talos.KubePrism)
	if spec.Value(prism.Enabled) {
		return "localhost", spec.Value(prism.Port)
	}

	return splitEndpoint(in.Config.Endpoint())
}

// talosValues returns what Cilium needs on Talos: no right to load kernel modules, cgroups where Talos
// mounts them, and addresses from the cluster's pod networks.
func talosValues() object {
	return object{
		"ipam": object{"mode": "kubernetes"},
		"cgroup": object{
			"autoMount": object{"enabled": false},
			"hostRoot":  "/sys/fs/cgroup",
		},
		"securityContext": object{"capabilities": object{
			"ciliumAgent": list{
				"CHOWN", "KILL", "NET_ADMIN", "NET_RAW", "IPC_LOCK", "SYS_ADMIN", "SYS_RESOURCE",
				"DAC_OVERRIDE", "FOWNER", "SETGID", "SETUID",
			},
			"cleanCiliumState": list{"NET_ADMIN", "SYS_ADMIN", "SYS_RESOURCE"},
		}},
	}
}

// base64Of returns what the chart takes certificates as.
func base64Of(pem string) string { return base64.StdEncoding.EncodeToString([]byte(pem)) }
