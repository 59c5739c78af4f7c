// SPDX-License-Identifier: Apache-2.0
// Copyright the talos-proxmox authors.

package machineconfig

import (
	"fmt"
	"net/url"

	"github.com/siderolabs/talos/pkg/machinery/config/types/k8s"
	"github.com/siderolabs/talos/pkg/machinery/config/types/meta"

	"github.com/talos-proxmox/talos-proxmox/spec"
)

// moveControlPlane moves the control plane's components and what they apply at bootstrap.
func (r *builder) moveControlPlane() error {
	if !r.node.IsControlPlane() {
		return nil
	}
	r.moveSecrets()
	r.moveAPIServer()
	r.moveComponents()
	r.moveCoreDNS()
	if access := r.machine.MachineFeatures.KubernetesTalosAPIAccessConfig; access != nil {
		doc := k8s.NewKubeTalosAPIAccessConfigV1Alpha1()
		doc.AccessAllowedRoles = access.AccessAllowedRoles
		doc.AccessAllowedKubernetesNamespaces = access.AccessAllowedKubernetesNamespaces
		r.add(doc)
	}
	r.machine.MachineFeatures.KubernetesTalosAPIAccessConfig = nil

	return r.moveManifests()
}

// moveSecrets moves the keys that only control planes have.
func (r *builder) moveSecrets() {
	aggregator := k8s.NewKubeAggregatorCAConfigV1Alpha1()
	ca := r.cluster.ClusterAggregatorCA
	aggregator.AggregatorIssuingCA = &meta.CertificateAndKey{Cert: string(ca.Crt), Key: string(ca.Key)}
	account := k8s.NewKubeServiceAccountConfigV1Alpha1()
	account.ServiceIssuer = k8s.IssuerServiceAccountConfig{
		PrivateKey: string(r.cluster.ClusterServiceAccount.Key),
		IssuerURL:  documentOf(r, func(*k8s.KubeClusterConfigV1Alpha1) bool { return true }).ClusterEndpointConfig,
	}
	encryption := k8s.NewKubeEtcdEncryptionConfigV1Alpha1()
	encryption.Config.Object = map[string]any{"resources": []any{map[string]any{
		"resources": []any{"secrets"}, "providers": r.encryptionProviders(),
	}}}
	r.cluster.ClusterAggregatorCA, r.cluster.ClusterServiceAccount = nil, nil
	r.cluster.ClusterSecretboxEncryptionSecret, r.cluster.ClusterAESCBCEncryptionSecret = "", ""
	r.add(aggregator, account, encryption)
}

// encryptionProviders returns the ciphers of secrets in etcd, the one that writes first. Names and
// order are those that Talos makes of the sections, so that what a cluster wrote can still be read.
func (r *builder) encryptionProviders() []any {
	var providers []any
	for _, p := range []struct{ cipher, name, secret string }{
		{"secretbox", "key2", r.cluster.ClusterSecretboxEncryptionSecret},
		{"aescbc", "key1", r.cluster.ClusterAESCBCEncryptionSecret},
	} {
		if p.secret != "" {
			key := map[string]any{"name": p.name, "secret": p.secret}
			providers = append(providers, map[string]any{p.cipher: map[string]any{"keys": []any{key}}})
		}
	}

	return append(providers, map[string]any{"identity": map[string]any{}})
}

// moveAPIServer moves the API server, whom it admits and what it writes down.
func (r *builder) moveAPIServer() {
	api := r.cluster.APIServerConfig
	settings := spec.Value(r.cfg.Kubernetes.APIServer)
	for _, plugin := range api.AdmissionControlConfig {
		doc := k8s.NewKubeAdmissionControlConfigV1Alpha1()
		doc.MetaName, doc.PluginConfig = plugin.PluginName, plugin.PluginConfiguration
		r.add(doc)
	}
	policy := k8s.NewKubeAuditPolicyConfigV1Alpha1()
	policy.AuditConfig = api.AuditPolicyConfig
	authentication := k8s.DefaultAuthenticationConfig()
	if settings.OIDC != nil {
		authentication.AuthConfig.Object["jwt"] = []any{jwtAuthenticator(*settings.OIDC)}
	}
	r.add(policy, authentication)
	for _, authorizer := range k8s.DefaultAuthorizationConfig() {
		r.add(authorizer)
	}
	doc := k8s.NewKubeAPIServerConfigV1Alpha1()
	doc.PodImage = api.ContainerImage
	doc.PodArgs = args(settings.ExtraArgs)
	doc.PodEnv = api.EnvConfig
	doc.PodCertExtraSANs = api.ExtraCertSANs
	r.cluster.APIServerConfig = nil
	r.add(doc)
}

// jwtAuthenticator returns what the flags of [oidcArgs] say, in the structured form: the prefixes that
// the flags leave to the API server are written out.
func jwtAuthenticator(o spec.OIDC) map[string]any {
	claim := spec.Value(o.UsernameClaim)
	prefix := o.IssuerURL + "#"
	if claim == "email" {
		prefix = ""
	}
	if o.UsernamePrefix != nil {
		prefix = *o.UsernamePrefix
	}
	if prefix == "-" {
		prefix = ""
	}
	mappings := map[string]any{"username": map[string]any{"claim": claim, "prefix": prefix}}
	if o.GroupsClaim != nil {
		mappings["groups"] = map[string]any{"claim": *o.GroupsClaim, "prefix": spec.Value(o.GroupsPrefix)}
	}

	return map[string]any{
		"issuer":        map[string]any{"url": o.IssuerURL, "audiences": []any{o.ClientID}},
		"claimMappings": mappings,
	}
}

// moveComponents moves the controller manager, the scheduler and kube-proxy.
func (r *builder) moveComponents() {
	manager := k8s.NewKubeControllerManagerConfigV1Alpha1()
	manager.PodImage = r.cluster.ControllerManagerConfig.ContainerImage
	manager.PodArgs = r.cluster.ControllerManagerConfig.ExtraArgsConfig
	manager.PodEnv = r.cluster.ControllerManagerConfig.EnvConfig
	scheduler := k8s.NewKubeSchedulerConfigV1Alpha1()
	scheduler.PodImage = r.cluster.SchedulerConfig.ContainerImage
	scheduler.PodArgs = r.cluster.SchedulerConfig.ExtraArgsConfig
	scheduler.PodEnv = r.cluster.SchedulerConfig.EnvConfig
	proxy := k8s.NewKubeProxyConfigV1Alpha1()
	if disabled := r.cluster.ProxyConfig.Disabled; disabled != nil {
		proxy.ProxyEnabled = spec.Ptr(!*disabled)
	}
	proxy.ProxyImage = r.cluster.ProxyConfig.ContainerImage
	proxy.ProxyMode = r.cluster.ProxyConfig.ModeConfig
	proxy.ProxyExtraArgs = r.cluster.ProxyConfig.ExtraArgsConfig
	r.cluster.ControllerManagerConfig, r.cluster.SchedulerConfig, r.cluster.ProxyConfig = nil, nil, nil
	r.add(manager, scheduler, proxy)
}

// moveCoreDNS moves Talos's own CoreDNS.
func (r *builder) moveCoreDNS() {
	dns := spec.Value(r.cluster.CoreDNSConfig)
	doc := k8s.NewKubeCoreDNSConfigV1Alpha1()
	doc.PodEnabled = spec.Ptr(!spec.Value(dns.CoreDNSDisabled))
	doc.PodImage = dns.CoreDNSImage
	r.cluster.CoreDNSConfig = nil
	r.add(doc)
}

// moveManifests moves the manifests that are applied at bootstrap.
func (r *builder) moveManifests() error {
	for _, m := range r.cluster.ClusterInlineManifests {
		doc := k8s.NewKubeInlineManifestConfigV1Alpha1()
		doc.MetaName, doc.ManifestSpec = m.InlineManifestName, m.InlineManifestContents
		r.add(doc)
	}
	for i, address := range r.cluster.ExtraManifests {
		parsed, err := url.Parse(address)
		if err != nil {
			return fmt.Errorf("reading the address of an extra manifest: %w", err)
		}
		doc := k8s.NewKubeExternalManifestConfigV1Alpha1()
		doc.MetaName = fmt.Sprintf("extra-%02d", i)
		doc.URLSpec, doc.HeadersSpec = meta.URL{URL: parsed}, r.cluster.ExtraManifestHeaders
		r.add(doc)
	}
	r.cluster.ClusterInlineManifests, r.cluster.ExtraManifests, r.cluster.ExtraManifestHeaders = nil, nil, nil

	return nil
}
