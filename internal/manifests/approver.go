// SPDX-License-Identifier: Apache-2.0
// Copyright the talos-proxmox authors.

package manifests

import (
	"context"

	"github.com/talos-proxmox/talos-proxmox/spec"
)

// certificateApprover lets kubelets have the serving certificates that they ask for. It stands in
// kube-system, which Talos exempts from pod security, and runs on control planes too.
func (in Input) certificateApprover(context.Context) ([]part, error) {
	kubelet := spec.Value(in.Config.Kubernetes.Kubelet)
	if !spec.Value(kubelet.RotateServerCertificates) || kubelet.CertificateApprover == nil ||
		!spec.Value(kubelet.CertificateApprover.Enabled) {
		return nil, nil
	}
	const name = "kubelet-serving-cert-approver"
	labels := object{"app.kubernetes.io/name": name}
	meta := func() object { return object{"name": name, "namespace": ciliumNamespace, "labels": labels} }
	contents := mustYAML(object{"apiVersion": "v1", "kind": "ServiceAccount", "metadata": meta()}) +
		approverAccess(name, labels) +
		mustYAML(object{
			"apiVersion": "apps/v1", "kind": "Deployment", "metadata": meta(),
			"spec": object{
				"replicas": 1,
				"selector": object{"matchLabels": labels},
				"template": object{
					"metadata": object{"labels": labels},
					"spec":     approverPod(name, spec.Value(kubelet.CertificateApprover.Image)),
				},
			},
		})

	return []part{{name: name, contents: contents}}, nil
}

// approverAccess lets it read requests, sign off those for kubelets' serving certificates and nothing
// else, and tell of it.
func approverAccess(name string, labels object) string {
	rule := func(group, resource string, verbs ...string) object {
		return object{"apiGroups": list{group}, "resources": list{resource}, "verbs": texts(verbs)}
	}
	signer := rule("certificates.k8s.io", "signers", "approve")
	signer["resourceNames"] = list{"kubernetes.io/kubelet-serving"}

	return mustYAML(object{
		"apiVersion": "rbac.authorization.k8s.io/v1", "kind": "ClusterRole", "metadata": object{"name": name, "labels": labels},
		"rules": list{
			rule("certificates.k8s.io", "certificatesigningrequests", "get", "list", "watch"),
			rule("certificates.k8s.io", "certificatesigningrequests/approval", "update"),
			signer,
			rule("authorization.k8s.io", "subjectaccessreviews", "create"),
			rule("", "events", "create", "patch"),
		},
	}) + mustYAML(object{
		"apiVersion": "rbac.authorization.k8s.io/v1", "kind": "ClusterRoleBinding", "metadata": object{"name": name, "labels": labels},
		"roleRef":  object{"apiGroup": "rbac.authorization.k8s.io", "kind": "ClusterRole", "name": name},
		"subjects": list{object{"kind": "ServiceAccount", "name": name, "namespace": ciliumNamespace}},
	})
}

// approverPod runs as the user nobody, on any node.
func approverPod(name, image string) object {
	probe := func(path string) object { return object{"httpGet": object{"path": path, "port": "health"}} }

	return object{
		"serviceAccountName": name,
		"priorityClassName":  "system-cluster-critical",
		"securityContext": object{
			"runAsUser": 65534, "runAsGroup": 65534, "fsGroup": 65534, "seccompProfile": object{"type": "RuntimeDefault"},
		},
		"tolerations": list{object{"key": "node-role.kubernetes.io/control-plane", "operator": "Exists", "effect": "NoSchedule"}},
		"containers": list{object{
			"name": "approver", "image": image, "args": list{"serve"},
			"env": list{object{
				"name": "NAMESPACE", "valueFrom": object{"fieldRef": object{"fieldPath": "metadata.namespace"}},
			}},
			"ports":          list{object{"name": "health", "containerPort": 8080}, object{"name": "metrics", "containerPort": 9090}},
			"livenessProbe":  probe("/healthz"),
			"readinessProbe": probe("/readyz"),
			"resources":      object{"requests": object{"cpu": "10m", "memory": "16Mi"}, "limits": object{"memory": "64Mi"}},
			"securityContext": object{
				"allowPrivilegeEscalation": false, "readOnlyRootFilesystem": true, "runAsNonRoot": true,
				"capabilities": object{"drop": list{"ALL"}},
			},
		}},
	}
}
