// SPDX-License-Identifier: Apache-2.0
// Copyright the talos-proxmox authors.

package machineconfig

import (
	"slices"

	"github.com/siderolabs/talos/pkg/machinery/config/types/meta"
	"github.com/siderolabs/talos/pkg/machinery/config/types/v1alpha1"

	"github.com/talos-proxmox/talos-proxmox/internal/check"
	"github.com/talos-proxmox/talos-proxmox/spec"
)

// addKubernetes writes the control plane's components and what they apply at bootstrap. Workers have
// none of it.
func (r *builder) addKubernetes() error {
	if !r.node.IsControlPlane() {
		return nil
	}
	if err := r.addAPIServer(); err != nil {
		return err
	}
	c := r.cluster
	manager := spec.Value(r.cfg.Kubernetes.ControllerManager)
	c.ControllerManagerConfig.ExtraArgsConfig = args(manager.ExtraArgs)
	c.ControllerManagerConfig.EnvConfig = environment(manager.Env)
	scheduler := spec.Value(r.cfg.Kubernetes.Scheduler)
	c.SchedulerConfig.ExtraArgsConfig = args(scheduler.ExtraArgs)
	c.SchedulerConfig.EnvConfig = environment(scheduler.Env)

	proxy := spec.Value(r.cfg.Kubernetes.Proxy)
	if !r.cfg.KubeProxyEnabled() {
		c.ProxyConfig.Disabled = spec.Ptr(true)
	}
	c.ProxyConfig.ModeConfig = spec.Value(proxy.Mode)
	c.ProxyConfig.ExtraArgsConfig = args(proxy.ExtraArgs)

	etcd := spec.Value(r.cfg.Kubernetes.Etcd)
	c.EtcdConfig.EtcdExtraArgs = args(etcd.ExtraArgs)
	c.EtcdConfig.EtcdAdvertisedSubnets = etcd.AdvertisedSubnets
	r.encryptAtRest()

	r.addCoreDNS()
	for _, m := range r.in.Manifests {
		c.ClusterInlineManifests = append(c.ClusterInlineManifests,
			v1alpha1.ClusterInlineManifest{InlineManifestName: m.Name, InlineManifestContents: m.Contents})
	}
	c.ExtraManifests = append(c.ExtraManifests, r.cfg.Manifests.Extra...)
	for name, value := range r.cfg.Manifests.ExtraHeaders {
		c.ExtraManifestHeaders = with(c.ExtraManifestHeaders, name, value.Reveal())
	}

	return nil
}

// encryptAtRest encrypts Kubernetes secrets in etcd. The bundle's key serves either cipher: both
// take 32 bytes. A key that the bundle has for the other cipher stays, so that what an adopted
// cluster wrote can still be read.
func (r *builder) encryptAtRest() {
	secrets := r.bundle.Secrets
	r.cluster.ClusterSecretboxEncryptionSecret = secrets.SecretboxEncryptionSecret
	r.cluster.ClusterAESCBCEncryptionSecret = secrets.AESCBCEncryptionSecret
	if spec.Value(r.cfg.Kubernetes.EtcdEncryption) == "aescbc" && secrets.AESCBCEncryptionSecret == "" {
		r.cluster.ClusterAESCBCEncryptionSecret = secrets.SecretboxEncryptionSecret
		r.cluster.ClusterSecretboxEncryptionSecret = ""
	}
}

// addAPIServer writes the API server's settings.
func (r *builder) addAPIServer() error {
	settings := spec.Value(r.cfg.Kubernetes.APIServer)
	api := r.cluster.APIServerConfig
	api.ExtraArgsConfig = args(merge(oidcArgs(settings.OIDC), settings.ExtraArgs))
	api.EnvConfig = environment(settings.Env)
	if settings.AuditPolicy != nil {
		object, err := objectOf(*settings.AuditPolicy)
		if err != nil {
			return check.At("kubernetes.apiServer.auditPolicy", err)
		}
		api.AuditPolicyConfig = meta.Unstructured{Object: object}
	}
	if spec.Value(settings.DisablePodSecurity) {
		api.AdmissionControlConfig = nil
	}
	for _, plugin := range sortedKeys(settings.AdmissionPlugins) {
		object, err := objectOf(settings.AdmissionPlugins[plugin])
		if err != nil {
			return check.At(check.Key("kubernetes.apiServer.admissionPlugins", plugin), err)
		}
		api.AdmissionControlConfig = slices.DeleteFunc(api.AdmissionControlConfig,
			func(c *v1alpha1.AdmissionPluginConfig) bool { return c.PluginName == plugin })
		api.AdmissionControlConfig = append(api.AdmissionControlConfig,
			&v1alpha1.AdmissionPluginConfig{PluginName: plugin, PluginConfiguration: meta.Unstructured{Object: object}})
	}

	return nil
}

// oidcArgs returns the API server's flags for OpenID Connect.
func oidcArgs(o *spec.OIDC) map[string]string {
	if o == nil {
		return nil
	}
	args := map[string]string{
		"oidc-issuer-url":     o.IssuerURL,
		"oidc-client-id":      o.ClientID,
		"oidc-username-claim": spec.Value(o.UsernameClaim),
	}
	for flag, value := range map[string]*string{
		"oidc-username-prefix": o.UsernamePrefix, "oidc-groups-claim": o.GroupsClaim, "oidc-groups-prefix": o.GroupsPrefix,
	} {
		if value != nil {
			args[flag] = *value
		}
	}

	return args
}

// addCoreDNS turns Talos's CoreDNS off where there is none, or where the day-0 manifests bring one.
func (r *builder) addCoreDNS() {
	dns := r.cfg.Manifests.CoreDNS
	if dns == nil {
		return
	}
	r.cluster.CoreDNSConfig = &v1alpha1.CoreDNS{}
	if CoreDNSReplaced(*dns) || spec.Value(dns.Disabled) {
		r.cluster.CoreDNSConfig.CoreDNSDisabled = spec.Ptr(true)

		return
	}
	r.cluster.CoreDNSConfig.CoreDNSImage = spec.Value(dns.Image)
}

// CoreDNSReplaced reports whether the settings ask for more than Talos's CoreDNS can be told, so that
// the day-0 manifests bring one of their own.
func CoreDNSReplaced(dns spec.CoreDNS) bool {
	return !spec.Value(dns.Disabled) && (dns.Corefile != nil || spec.Value(dns.Replicas) != 2)
}

// environment returns a component's environment in the form Talos takes.
func environment(env map[string]spec.Text) v1alpha1.Env {
	if len(env) == 0 {
		return nil
	}
	out := v1alpha1.Env{}
	for name, value := range env {
		out[name] = string(value)
	}

	return out
}
