// SPDX-License-Identifier: Apache-2.0
// Copyright the talos-proxmox authors.

package manifests

import (
	"net"
	"net/url"
	"strconv"
	"strings"

	"sigs.k8s.io/yaml"

	"github.com/talos-proxmox/talos-proxmox/spec"
)

// ciliumJob installs Cilium from within the cluster: a Job on a control plane runs the Cilium CLI
// with its values from a ConfigMap. It runs on the host's network, before there is any other.
func ciliumJob(cfg spec.Config, settings spec.Cilium, values object) string {
	chart := CiliumChart(cfg)
	name, labels := "cilium-install", object{"app.kubernetes.io/name": "cilium-install"}
	meta := func() object { return object{"name": name, "namespace": ciliumNamespace, "labels": labels} }
	text, err := yaml.Marshal(values)
	if err != nil {
		text = []byte("{}\n")
	}
	args := list{
		"cilium", "install", "--version", "v" + strings.TrimPrefix(*chart.Version, "v"),
		"--namespace", ciliumNamespace, "--values", "/values/values.yaml",
	}
	if *chart.Repository != CiliumRepository {
		args = append(args, "--repository", redact(*chart.Repository))
	}
	host, port := "localhost", "6443"

	return mustYAML(object{"apiVersion": "v1", "kind": "ServiceAccount", "metadata": meta()}) +
		mustYAML(object{
			"apiVersion": "rbac.authorization.k8s.io/v1", "kind": "ClusterRoleBinding",
			"metadata": object{"name": name, "labels": labels},
			"roleRef":  object{"apiGroup": "rbac.authorization.k8s.io", "kind": "ClusterRole", "name": "cluster-admin"},
			"subjects": list{object{"kind": "ServiceAccount", "name": name, "namespace": ciliumNamespace}},
		}) +
		mustYAML(object{"apiVersion": "v1", "kind": "ConfigMap", "metadata": meta(), "data": object{"values.yaml": string(text)}}) +
		mustYAML(object{
			"apiVersion": "batch/v1", "kind": "Job", "metadata": meta(),
			"spec": object{
				"backoffLimit": 10,
				"template": object{"metadata": object{"labels": labels}, "spec": object{
					"restartPolicy":      "OnFailure",
					"serviceAccountName": name,
					"hostNetwork":        true,
					"nodeSelector":       object{"node-role.kubernetes.io/control-plane": ""},
					"tolerations":        list{object{"operator": "Exists"}},
					"containers": list{object{
						"name":    name,
						"image":   spec.Or(settings.CLIImage, CiliumCLIImage),
						"command": args,
						"env": list{
							object{"name": "KUBERNETES_SERVICE_HOST", "value": host},
							object{"name": "KUBERNETES_SERVICE_PORT", "value": port},
						},
						"volumeMounts": list{object{"name": "values", "mountPath": "/values", "readOnly": true}},
					}},
					"volumes": list{object{"name": "values", "configMap": object{"name": name}}},
				}},
			},
		})
}

// splitEndpoint is the host and the port of the Kubernetes API.
func splitEndpoint(endpoint string) (host string, port int) {
	u, err := url.Parse(endpoint)
	if err != nil {
		return "", 0
	}
	host, text, err := net.SplitHostPort(u.Host)
	if err != nil {
		return u.Host, 6443
	}
	if port, err = strconv.Atoi(text); err != nil {
		return host, 6443
	}

	return host, port
}
