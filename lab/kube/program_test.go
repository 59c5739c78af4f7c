// SPDX-License-Identifier: Apache-2.0
// Copyright the talos-proxmox authors.

package kube_test

import (
	"context"
	"errors"
	"fmt"
	"os"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"helm.sh/helm/v3/pkg/chart"
	"helm.sh/helm/v3/pkg/chartutil"
	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/talos-proxmox/talos-proxmox/lab/ciliumcli"
	"github.com/talos-proxmox/talos-proxmox/lab/kube"
)

// tiny packs a chart whose values have a schema.
func tiny(t *testing.T, version string) []byte {
	t.Helper()

	file, err := chartutil.Save(&chart.Chart{
		Metadata: &chart.Metadata{APIVersion: chart.APIVersionV2, Name: "cilium", Version: version},
		Schema:   []byte(`{"properties": {"colour": {"type": "string"}}}`),
		Templates: []*chart.File{{Name: "templates/configmap.yaml", Data: []byte(`apiVersion: v1
kind: ConfigMap
metadata: {name: cilium-config, namespace: {{ .Release.Namespace }}}
data: {colour: {{ .Values.colour | default "none" | quote }}, version: {{ .Chart.Version | quote }}, replicas: {{ .Values.operator.replicas | quote }}}
`)}},
	}, t.TempDir())
	require.NoError(t, err)
	content, err := os.ReadFile(file)
	require.NoError(t, err)

	return content
}

// installs runs a Job that installs with the given values, and waits until its pod shows what the test
// looks for.
func (c *cluster) installs(t *testing.T, name, account, values string, args ...string) {
	t.Helper()

	_, err := c.CoreV1().ConfigMaps("kube-system").Create(t.Context(), &corev1.ConfigMap{
		ObjectMeta: metav1.ObjectMeta{Name: name}, Data: map[string]string{"values.yaml": values},
	}, metav1.CreateOptions{})
	require.NoError(t, err)
	limit := int32(1)
	_, err = c.BatchV1().Jobs("kube-system").Create(t.Context(), &batchv1.Job{
		ObjectMeta: metav1.ObjectMeta{Name: name},
		Spec: batchv1.JobSpec{BackoffLimit: &limit, Template: corev1.PodTemplateSpec{Spec: corev1.PodSpec{
			RestartPolicy: corev1.RestartPolicyOnFailure, HostNetwork: true, ServiceAccountName: account,
			Tolerations: []corev1.Toleration{{Operator: corev1.TolerationOpExists}},
			Containers: []corev1.Container{{
				Name: "install", Image: "quay.io/cilium/cilium-cli:v0.18.7",
				Command: append([]string{"cilium"}, args...), TerminationMessagePolicy: corev1.TerminationMessageFallbackToLogsOnError,
				VolumeMounts: []corev1.VolumeMount{{Name: "values", MountPath: "/values"}},
			}},
			Volumes: []corev1.Volume{{Name: "values", VolumeSource: corev1.VolumeSource{
				ConfigMap: &corev1.ConfigMapVolumeSource{LocalObjectReference: corev1.LocalObjectReference{Name: name}},
			}}},
		}}},
	}, metav1.CreateOptions{})
	require.NoError(t, err)
}

// awaitJob waits until a Job has a condition.
func (c *cluster) awaitJob(t *testing.T, name string, want batchv1.JobConditionType) {
	t.Helper()

	eventually(t, 60*time.Second, func(ctx context.Context) string {
		job, err := c.BatchV1().Jobs("kube-system").Get(ctx, name, metav1.GetOptions{})
		if err != nil {
			return err.Error()
		}
		for _, condition := range job.Status.Conditions {
			if condition.Type == want {
				return ""
			}
		}

		return fmt.Sprintf("job %s: %+v", name, job.Status)
	})
}

// lastWords waits for what the pod of a Job said when it failed.
func (c *cluster) lastWords(t *testing.T, job string) (words string) {
	t.Helper()

	eventually(t, 60*time.Second, func(ctx context.Context) string {
		list, err := c.CoreV1().Pods("kube-system").List(ctx, metav1.ListOptions{LabelSelector: "job-name=" + job})
		if err != nil {
			return err.Error()
		}
		for _, pod := range list.Items {
			for _, status := range pod.Status.ContainerStatuses {
				if last := status.LastTerminationState.Terminated; last != nil {
					assert.Equal(t, corev1.PodRunning, pod.Status.Phase)
					assert.Equal(t, "CrashLoopBackOff", status.State.Waiting.Reason)
					words = last.Message

					return ""
				}
			}
		}

		return "no pod of job " + job + " has failed"
	})

	return words
}

func TestCiliumsCLIInstallsAndUpgrades(t *testing.T) {
	t.Parallel()

	conf := config(t)
	versions := map[string][]byte{"1.0.0": tiny(t, "1.0.0"), "1.1.0": tiny(t, "1.1.0")}
	conf.Programs = []kube.Program{ciliumcli.CLI{Chart: func(repository, name, version string) ([]byte, error) {
		if archive := versions[version]; archive != nil {
			assert.Equal(t, "https://helm.cilium.io/cilium", repository+"/"+name)

			return archive, nil
		}

		return nil, errors.New("no such chart")
	}}}
	c := start(t, conf)
	c.run(t.Context(), controlPlane("cp-1", "10.0.0.11"))
	_, err := c.CoreV1().ServiceAccounts("kube-system").Create(t.Context(),
		&corev1.ServiceAccount{ObjectMeta: metav1.ObjectMeta{Name: "admin"}}, metav1.CreateOptions{})
	require.NoError(t, err)
	_, err = c.RbacV1().ClusterRoleBindings().Create(t.Context(), &rbacv1.ClusterRoleBinding{
		ObjectMeta: metav1.ObjectMeta{Name: "admin"},
		RoleRef:    rbacv1.RoleRef{APIGroup: "rbac.authorization.k8s.io", Kind: "ClusterRole", Name: "cluster-admin"},
		Subjects:   []rbacv1.Subject{{Kind: "ServiceAccount", Name: "admin", Namespace: "kube-system"}},
	}, metav1.CreateOptions{})
	require.NoError(t, err)

	t.Run("without a right", func(t *testing.T) {
		c.installs(t, "nobody", "default", "{}", "install", "--version", "v1.0.0")
		assert.Contains(t, c.lastWords(t, "nobody"), `User "system:serviceaccount:kube-system:default" cannot get resource "configmaps"`)
		c.awaitJob(t, "nobody", batchv1.JobFailed)
	})
	t.Run("with values that the chart refuses", func(t *testing.T) {
		c.installs(t, "wrong", "admin", "colour: [red]\n", "install", "--version=v1.0.0", "--values=/values/values.yaml")
		words := c.lastWords(t, "wrong")
		assert.Contains(t, words, "Error: Unable to install Cilium: values don't meet the specifications of the schema(s)")
		assert.Contains(t, words, "colour")
		c.awaitJob(t, "wrong", batchv1.JobFailed)
	})
	t.Run("with a flag that it does not know", func(t *testing.T) {
		c.installs(t, "flag", "admin", "{}", "install", "--versoin", "v1.0.0")
		assert.Equal(t, "Error: unknown flag: --versoin", c.lastWords(t, "flag"))
	})
	t.Run("an installation", func(t *testing.T) {
		c.installs(t, "right", "admin", "colour: red\n", "install", "--version", "v1.0.0", "--values", "/values/values.yaml")
		c.awaitJob(t, "right", batchv1.JobComplete)
		assert.Equal(t, map[string]string{"colour": "red", "version": "1.0.0", "replicas": "1"}, c.installed(t))
	})
	t.Run("a second installation", func(t *testing.T) {
		c.installs(t, "second", "admin", "{}", "install", "--version", "v1.0.0")
		assert.Equal(t, "Error: Unable to install Cilium: cannot re-use a name that is still in use", c.lastWords(t, "second"))
	})
	t.Run("an upgrade", func(t *testing.T) {
		c.installs(t, "upgrade", "admin", "colour: blue\noperator: {replicas: 2}\n",
			"upgrade", "--version", "v1.1.0", "--values", "/values/values.yaml")
		c.awaitJob(t, "upgrade", batchv1.JobComplete)
		assert.Equal(t, map[string]string{"colour": "blue", "version": "1.1.0", "replicas": "2"}, c.installed(t))
	})
}

// installed returns what the tiny chart made.
func (c *cluster) installed(t *testing.T) map[string]string {
	t.Helper()

	made, err := c.CoreV1().ConfigMaps("kube-system").Get(t.Context(), "cilium-config", metav1.GetOptions{})
	require.NoError(t, err)

	return made.Data
}
