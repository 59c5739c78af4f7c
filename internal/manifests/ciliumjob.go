// SPDX-License-Identifier: Apache-2.0
// Copyright the talos-proxmox authors.

package manifests

import (
	"cmp"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"net"
	"net/url"
	"strconv"
	"strings"

	"sigs.k8s.io/yaml"

	"github.com/talos-proxmox/talos-proxmox/internal/versions"
	"github.com/talos-proxmox/talos-proxmox/spec"
)

// ciliumJob installs Cilium from within the cluster: a Job on a control plane runs the Cilium CLI
// with its values from a ConfigMap. It runs on the host's network, before there is any other. An edit
// of the values or the version makes the Job anew, which then upgrades: the CLI installs only once. Its
// image has no shell that could choose (Dockerfile of cilium-cli).
func ciliumJob(cfg spec.Config, settings spec.Cilium, values object) string {
	name, labels := "cilium-install", object{"app.kubernetes.io/name": "cilium-install"}
	meta := func() object { return object{"name": name, "namespace": ciliumNamespace, "labels": labels} }
	text, err := yaml.Marshal(values)
	if err != nil {
		text = []byte("{}\n")
	}
	sum := sha256.Sum256(text)
	job := meta()
	// Helm's release makes the account first; objects that can be written can be JSON.
	again, _ := json.Marshal(object{
		"when": "v1/ServiceAccount/" + ciliumNamespace + "/cilium", "command": ciliumCommand(cfg, "upgrade"),
	})
	job["annotations"] = object{jobAgainAnnotation: string(again)}
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
			"apiVersion": "batch/v1", "kind": "Job", "metadata": job,
			"spec": object{
				"backoffLimit": 10,
				"template": object{"metadata": object{
					"labels": labels, "annotations": object{"checksum/values": hex.EncodeToString(sum[:])},
				}, "spec": object{
					"restartPolicy":      "OnFailure",
					"serviceAccountName": name,
					"hostNetwork":        true,
					"nodeSelector":       object{"node-role.kubernetes.io/control-plane": ""},
					"tolerations":        list{object{"operator": "Exists"}},
					"containers": list{object{
						"name":    name,
						"image":   cmp.Or(spec.Value(settings.CLIImage), versions.CiliumCLIImage),
						"command": ciliumCommand(cfg, "install"),
						"env": list{
							object{"name": "KUBERNETES_SERVICE_HOST", "value": host},
							object{"name": "KUBERNETES_SERVICE_PORT", "value": port},
						},
						// The pod's status then says why it failed, and the ready gate too.
						"terminationMessagePolicy": "FallbackToLogsOnError",
						"volumeMounts":             list{object{"name": "values", "mountPath": "/values", "readOnly": true}},
					}},
					"volumes": list{object{"name": "values", "configMap": object{"name": name}}},
				}},
			},
		})
}

// jobAgainAnnotation has the value of cluster.RerunAnnotation, whose package needs a Kubernetes client.
const jobAgainAnnotation = "talos-proxmox.dev/again"

// ciliumCommand returns the arguments of the CLI. Of an OCI repository it wants the chart's own name too.
func ciliumCommand(cfg spec.Config, verb string) list {
	chart := CiliumChart(cfg)
	args := list{
		"cilium", verb, "--version", "v" + strings.TrimPrefix(*chart.Version, "v"),
		"--namespace", ciliumNamespace, "--values", "/values/values.yaml",
	}
	repository := strings.TrimRight(redact(*chart.Repository), "/")
	if strings.HasPrefix(repository, "oci://") && !strings.HasSuffix(repository, "/cilium") {
		repository += "/cilium"
	}
	if repository != CiliumRepository {
		args = append(args, "--repository", repository)
	}

	return args
}

// splitEndpoint returns the host and the port of the Kubernetes API.
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
