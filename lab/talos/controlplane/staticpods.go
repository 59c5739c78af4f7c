// SPDX-License-Identifier: Apache-2.0
// Copyright the talos-proxmox authors.

package controlplane

import (
	"fmt"
	"maps"
	"path"
	"slices"
	"strconv"
	"strings"

	"github.com/siderolabs/talos/pkg/machinery/config"
	"github.com/siderolabs/talos/pkg/machinery/constants"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/util/intstr"

	"github.com/talos-proxmox/talos-proxmox/lab/talos/machineconfig"
)

// component describes a static pod of the control plane, as Talos 1.12 puts it together.
type component struct {
	name, image  string
	user         int64
	cpu, memory  string
	lone         []string // flags without a value, which come first
	flags        map[string]string
	extra        map[string][]string
	add          []corev1.Capability
	folders      map[string]string // mounted from the node, by the volume's name
	writable     string            // of the volumes
	probes       func(*corev1.Container)
	configurable bool
}

// StaticPods returns a control plane's own pods.
func StaticPods(cfg config.Provider) []StaticPod {
	var pods []StaticPod
	for _, c := range []component{apiServer(cfg), controllerManager(cfg), scheduler(cfg)} {
		pods = append(pods, StaticPod{Name: c.name, Image: c.image, Arguments: fmt.Sprint(c.extra), Manifest: c.pod()})
	}

	return pods
}

// Resource returns the pod as a resource of Talos has it.
func (p StaticPod) Resource() (map[string]any, error) {
	pod, err := runtime.DefaultUnstructuredConverter.ToUnstructured(p.Manifest)
	if err != nil {
		return nil, fmt.Errorf("putting the pod of %s together: %w", p.Name, err)
	}
	if metadata, ok := pod["metadata"].(map[string]any); ok {
		delete(metadata, "creationTimestamp")
	}

	return pod, nil
}

// secretIn returns a file's path in the folder of a component's secrets.
func secretIn(name, file string) string { return path.Join("/system/secrets/kubernetes", name, file) }

// configIn returns a file's path in the folder of a component's configuration.
func configIn(name, file string) string { return path.Join("/system/config/kubernetes", name, file) }

func apiServer(cfg config.Provider) component {
	const name = "kube-apiserver"
	api, endpoint := cfg.K8sAPIServerConfig(), machineconfig.Endpoint(cfg).String()
	flags := map[string]string{
		"advertise-address": "$(POD_IP)", "allow-privileged": "true", "anonymous-auth": "false", "api-audiences": endpoint,
		"audit-log-maxage": "30", "audit-log-maxbackup": "10", "audit-log-maxsize": "100",
		"audit-log-path": constants.KubernetesAuditLogDir + "/kube-apiserver.log", "bind-address": "0.0.0.0",
		"enable-admission-plugins": "NodeRestriction", "enable-bootstrap-token-auth": "true",
		"etcd-servers":                    "https://127.0.0.1:2379",
		"kubelet-preferred-address-types": "InternalIP,ExternalIP,Hostname", "profiling": "false",
		"requestheader-allowed-names": "front-proxy-client", "requestheader-extra-headers-prefix": "X-Remote-Extra-",
		"requestheader-group-headers": "X-Remote-Group", "requestheader-username-headers": "X-Remote-User",
		"secure-port": strconv.Itoa(api.APIPort()), "service-account-issuer": endpoint,
		"service-cluster-ip-range": strings.Join(machineconfig.Prefixes(cfg.K8sNetworkConfig().ServiceCIDRs()), ","),
		"tls-cipher-suites":        strings.Join(apiServerCiphers(), ","), "tls-min-version": "VersionTLS12",
	}
	for flag, file := range map[string]string{
		"admission-control-config-file": "admission-control-config.yaml", "audit-policy-file": "auditpolicy.yaml",
		"authorization-config": "authorization-config.yaml",
	} {
		flags[flag] = configIn(name, file)
	}
	for flag, file := range map[string]string{
		"client-ca-file": "ca.crt", "encryption-provider-config": "encryptionconfig.yaml", "etcd-cafile": "etcd-client-ca.crt",
		"etcd-certfile": "etcd-client.crt", "etcd-keyfile": "etcd-client.key",
		"kubelet-client-certificate": "apiserver-kubelet-client.crt", "kubelet-client-key": "apiserver-kubelet-client.key",
		"proxy-client-cert-file": "front-proxy-client.crt", "proxy-client-key-file": "front-proxy-client.key",
		"requestheader-client-ca-file": "aggregator-ca.crt", "service-account-key-file": "service-account.pub",
		"service-account-signing-key-file": "service-account.key", "tls-cert-file": "apiserver.crt", "tls-private-key-file": "apiserver.key",
	} {
		flags[flag] = secretIn(name, file)
	}
	for flag := range api.ExtraArgs() {
		if flag == "authorization-mode" || strings.HasPrefix(flag, "authorization-webhook-") {
			delete(flags, "authorization-config")
			flags["authorization-mode"] = "Node,RBAC"
		}
	}

	return component{
		name: name, image: api.Image(), user: constants.KubernetesAPIServerRunUser, cpu: "200m", memory: "512Mi",
		flags: flags, extra: api.ExtraArgs(), add: []corev1.Capability{"NET_BIND_SERVICE"}, writable: "audit", configurable: true,
		folders: map[string]string{
			"secrets": secretIn(name, ""), "config": configIn(name, ""), "audit": constants.KubernetesAuditLogDir,
		},
	}
}

func apiServerCiphers() []string {
	const ecdsa, rsa = "TLS_ECDHE_ECDSA_WITH_", "TLS_ECDHE_RSA_WITH_"
	const aes128, aes256, chacha = "AES_128_GCM_SHA256", "AES_256_GCM_SHA384", "CHACHA20_POLY1305"

	return []string{
		"TLS_" + aes128, "TLS_" + aes256, "TLS_" + chacha + "_SHA256", ecdsa + aes128, ecdsa + aes256, ecdsa + chacha, ecdsa + chacha + "_SHA256",
		rsa + aes128, rsa + aes256, rsa + chacha, rsa + chacha + "_SHA256",
	}
}

func controllerManager(cfg config.Provider) component {
	const name = "kube-controller-manager"
	manager, network := cfg.K8sControllerManagerConfig(), cfg.K8sNetworkConfig()
	kubeconfig := secretIn(name, "kubeconfig")

	return component{
		name: name, image: manager.Image(), user: constants.KubernetesControllerManagerRunUser, cpu: "50m", memory: "256Mi",
		lone: []string{"--use-service-account-credentials"}, extra: manager.ExtraArgs(),
		folders: map[string]string{"secrets": secretIn(name, "")},
		flags: map[string]string{
			"allocate-node-cidrs": "true", "authentication-kubeconfig": kubeconfig, "authorization-kubeconfig": kubeconfig,
			"bind-address": "127.0.0.1", "cluster-cidr": strings.Join(machineconfig.Prefixes(network.PodCIDRs()), ","),
			"cluster-signing-cert-file": secretIn(name, "ca.crt"), "cluster-signing-key-file": secretIn(name, "ca.key"),
			"configure-cloud-routes": "false", "controllers": "*,tokencleaner", "kubeconfig": kubeconfig, "leader-elect": "true",
			"profiling": "false", "root-ca-file": secretIn(name, "ca.crt"),
			"service-account-private-key-file": secretIn(name, "service-account.key"),
			"service-cluster-ip-range":         strings.Join(machineconfig.Prefixes(network.ServiceCIDRs()), ","),
			"tls-min-version":                  "VersionTLS13",
		},
		probes: func(c *corev1.Container) {
			c.StartupProbe = probe("/healthz", 10257)
			c.StartupProbe.PeriodSeconds, c.StartupProbe.FailureThreshold = 5, 12
			c.LivenessProbe = probe("/healthz", 10257)
			c.LivenessProbe.TimeoutSeconds = 15
		},
	}
}

func scheduler(cfg config.Provider) component {
	const name = "kube-scheduler"
	kubeconfig := secretIn(name, "kubeconfig")

	return component{
		name: name, image: cfg.K8sSchedulerConfig().Image(), user: constants.KubernetesSchedulerRunUser, cpu: "10m", memory: "64Mi",
		extra: cfg.K8sSchedulerConfig().ExtraArgs(), folders: map[string]string{"secrets": secretIn(name, ""), "config": configIn(name, "")},
		flags: map[string]string{
			"authentication-kubeconfig": kubeconfig, "authentication-tolerate-lookup-failure": "false",
			"authorization-kubeconfig": kubeconfig, "bind-address": "127.0.0.1", "config": configIn(name, "scheduler-config.yaml"),
			"leader-elect": "true", "profiling": "false", "tls-min-version": "VersionTLS13",
		},
		probes: func(c *corev1.Container) {
			c.StartupProbe, c.LivenessProbe, c.ReadinessProbe = probe("/livez", 10259), probe("/livez", 10259), probe("/readyz", 10259)
		},
	}
}

func probe(place string, port int) *corev1.Probe {
	return &corev1.Probe{ProbeHandler: corev1.ProbeHandler{HTTPGet: &corev1.HTTPGetAction{
		Path: place, Host: "localhost", Port: intstr.FromInt(port), Scheme: corev1.URISchemeHTTPS,
	}}}
}

// arguments returns the command line: the stack's own flags replace the defaults, or add to lists of them.
func (c component) arguments() []string {
	flags := maps.Clone(c.flags)
	for name, values := range c.extra {
		value := strings.Join(values, ",")
		switch name {
		case "enable-admission-plugins", "feature-gates", "authorization-mode", "tls-cipher-suites", "controllers":
			value = strings.Trim(flags[name]+","+value, ",")
		}
		flags[name] = value
	}
	args := append([]string{"/usr/local/bin/" + c.name}, c.lone...)
	for _, name := range slices.Sorted(maps.Keys(flags)) {
		args = append(args, "--"+name+"="+flags[name])
	}

	return args
}

func (c component) pod() *corev1.Pod {
	no, yes, priority := false, true, int32(2000000000)
	container := corev1.Container{
		Name: c.name, Image: c.image, Command: c.arguments(),
		Env: []corev1.EnvVar{{
			Name: "POD_IP", ValueFrom: &corev1.EnvVarSource{FieldRef: &corev1.ObjectFieldSelector{FieldPath: "status.podIP"}},
		}},
		Resources: corev1.ResourceRequirements{Requests: corev1.ResourceList{
			corev1.ResourceCPU: resource.MustParse(c.cpu), corev1.ResourceMemory: resource.MustParse(c.memory),
		}},
		SecurityContext: &corev1.SecurityContext{
			AllowPrivilegeEscalation: &no, Capabilities: &corev1.Capabilities{Drop: []corev1.Capability{"ALL"}, Add: c.add},
			SeccompProfile: &corev1.SeccompProfile{Type: corev1.SeccompProfileTypeRuntimeDefault},
		},
	}
	if c.probes != nil {
		c.probes(&container)
	}
	annotations := map[string]string{constants.AnnotationStaticPodSecretsVersion: "1", constants.AnnotationStaticPodConfigVersion: "1"}
	if c.configurable {
		annotations[constants.AnnotationStaticPodConfigFileVersion] = "1111"
	}
	var volumes []corev1.Volume
	for _, name := range []string{"secrets", "config", "audit"} {
		if c.folders[name] == "" {
			continue
		}
		container.VolumeMounts = append(container.VolumeMounts,
			corev1.VolumeMount{Name: name, MountPath: c.folders[name], ReadOnly: name != c.writable})
		volumes = append(volumes, corev1.Volume{
			Name: name, VolumeSource: corev1.VolumeSource{HostPath: &corev1.HostPathVolumeSource{Path: c.folders[name]}},
		})
	}

	return &corev1.Pod{
		TypeMeta: metav1.TypeMeta{APIVersion: "v1", Kind: "Pod"},
		ObjectMeta: metav1.ObjectMeta{
			Name: c.name, Namespace: metav1.NamespaceSystem, Annotations: annotations, Labels: map[string]string{
				"tier": "control-plane", "k8s-app": c.name, "component": c.name, "app.kubernetes.io/name": c.name,
				"app.kubernetes.io/version":   strings.TrimPrefix(machineconfig.ImageVersion(c.image), "v"),
				"app.kubernetes.io/component": "control-plane", "app.kubernetes.io/managed-by": "Talos",
			},
		},
		Spec: corev1.PodSpec{
			Priority: &priority, PriorityClassName: "system-cluster-critical", Containers: []corev1.Container{container}, HostNetwork: true,
			SecurityContext: &corev1.PodSecurityContext{RunAsNonRoot: &yes, RunAsUser: &c.user, RunAsGroup: &c.user}, Volumes: volumes,
		},
	}
}
