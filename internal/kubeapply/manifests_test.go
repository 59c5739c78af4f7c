// SPDX-License-Identifier: Apache-2.0
// Copyright the talos-proxmox authors.

package kubeapply_test

import (
	"context"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	appsv1 "k8s.io/api/apps/v1"
	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/dynamic"
	dynamicfake "k8s.io/client-go/dynamic/fake"
	"k8s.io/client-go/kubernetes/scheme"
	clienttesting "k8s.io/client-go/testing"

	"github.com/talos-proxmox/talos-proxmox/internal/cluster"
	"github.com/talos-proxmox/talos-proxmox/internal/kubeapply"
)

// anyObjects plays a Kubernetes API in memory for objects of any kind.
type anyObjects struct {
	api    *dynamicfake.FakeDynamicClient
	mapper forgetful
}

// forgetful never has anything to forget.
type forgetful struct{ meta.RESTMapper }

func (forgetful) Reset() {}

func (a *anyObjects) Objects(context.Context) (dynamic.Interface, meta.ResettableRESTMapper, error) {
	return a.api, a.mapper, nil
}

// kubernetesWith has objects and the kinds that they need; what is applied replaces what is there.
func kubernetesWith(objects ...runtime.Object) *anyObjects {
	mapper := meta.NewDefaultRESTMapper(nil)
	mapper.Add(corev1.SchemeGroupVersion.WithKind("Namespace"), meta.RESTScopeRoot)
	for _, kind := range []schema.GroupVersionKind{
		corev1.SchemeGroupVersion.WithKind("ConfigMap"), appsv1.SchemeGroupVersion.WithKind("Deployment"),
		batchv1.SchemeGroupVersion.WithKind("Job"),
	} {
		mapper.Add(kind, meta.RESTScopeNamespace)
	}
	a := &anyObjects{api: dynamicfake.NewSimpleDynamicClient(scheme.Scheme, objects...), mapper: forgetful{mapper}}
	a.api.PrependReactor("patch", "*", func(action clienttesting.Action) (bool, runtime.Object, error) {
		patch, ok := action.(clienttesting.PatchAction)
		if !ok || patch.GetPatchType() != types.ApplyPatchType {
			return false, nil, nil
		}
		o := &unstructured.Unstructured{}
		if err := o.UnmarshalJSON(patch.GetPatch()); err != nil {
			return true, nil, err
		}
		o.SetNamespace(patch.GetNamespace())
		_, err := a.api.Tracker().Get(patch.GetResource(), patch.GetNamespace(), patch.GetName())
		if apierrors.IsNotFound(err) {
			return true, o, a.api.Tracker().Create(patch.GetResource(), o, patch.GetNamespace())
		}
		if o.GetKind() == "Job" {
			return true, nil, apierrors.NewInvalid(schema.GroupKind{Kind: "Job"}, o.GetName(), nil)
		}

		return true, o, a.api.Tracker().Update(patch.GetResource(), o, patch.GetNamespace())
	})

	return a
}

// get returns an object, nil when there is none.
func (a *anyObjects) get(t *testing.T, resource schema.GroupVersionResource, namespace, name string) *unstructured.Unstructured {
	t.Helper()
	o, err := a.api.Resource(resource).Namespace(namespace).Get(context.Background(), name, metav1.GetOptions{})
	if apierrors.IsNotFound(err) {
		return nil
	}
	require.NoError(t, err)

	return o
}

var configMaps = corev1.SchemeGroupVersion.WithResource("configmaps")

// configMap returns one that somebody wrote.
func configMap(name, manager string, finalizers ...string) *corev1.ConfigMap {
	return &corev1.ConfigMap{
		TypeMeta: metav1.TypeMeta{APIVersion: "v1", Kind: "ConfigMap"},
		ObjectMeta: metav1.ObjectMeta{
			Name: name, Namespace: "one", Finalizers: finalizers,
			ManagedFields: []metav1.ManagedFieldsEntry{{
				Manager: manager, Operation: metav1.ManagedFieldsOperationUpdate, APIVersion: "v1",
				//nolint:staticcheck // the fake API server keeps it like this
				FieldsType: "FieldsV1", FieldsV1: &metav1.FieldsV1{Raw: []byte(`{"f:data":{"f:a":{}}}`)},
			}},
		},
		Data: map[string]string{"a": "old"},
	}
}

func object(id kubeapply.ObjectID, json string) kubeapply.ManifestObject {
	return kubeapply.ManifestObject{ID: id, JSON: []byte(json)}
}

// edit runs manifests and returns what was reported.
func (a *anyObjects) edit(apply []kubeapply.ManifestObject, remove ...kubeapply.ObjectID) (string, error) {
	var lines []string
	err := kubeapply.Manifests{
		Access: a, Report: func(line string) { lines = append(lines, line) },
		Poll: cluster.PollOptions{Timeout: time.Second, Interval: 10 * time.Millisecond, Call: time.Second},
	}.Run(context.Background(), apply, remove)

	return strings.Join(lines, "\n"), err
}

func TestManifestsAreAppliedNamespacesFirst(t *testing.T) {
	t.Parallel()
	a := kubernetesWith(configMap("edited", "talos"))
	said, err := a.edit([]kubeapply.ManifestObject{
		object("v1/ConfigMap/one/edited", `{"apiVersion":"v1","kind":"ConfigMap","metadata":{"name":"edited","namespace":"one"},"data":{"a":"new"}}`),
		object("v1/ConfigMap//plain", `{"apiVersion":"v1","kind":"ConfigMap","metadata":{"name":"plain"}}`),
		object("v1/Namespace//one", `{"apiVersion":"v1","kind":"Namespace","metadata":{"name":"one"}}`),
	})
	require.NoError(t, err)
	assert.Equal(t, "Namespace one is as its manifest says\nConfigMap one/edited is as its manifest says\n"+
		"ConfigMap plain is as its manifest says", said)

	data, _, _ := unstructured.NestedString(a.get(t, configMaps, "one", "edited").Object, "data", "a")
	assert.Equal(t, "new", data)
	assert.NotNil(t, a.get(t, configMaps, "default", "plain"), "where Talos puts what names no namespace")
}

func TestJobsAreMadeAnew(t *testing.T) {
	t.Parallel()
	a := kubernetesWith(&batchv1.Job{
		TypeMeta:   metav1.TypeMeta{APIVersion: "batch/v1", Kind: "Job"},
		ObjectMeta: metav1.ObjectMeta{Name: "install", Namespace: "one", UID: "the-old-one"},
	})
	said, err := a.edit([]kubeapply.ManifestObject{
		object("batch/v1/Job/one/install", `{"apiVersion":"batch/v1","kind":"Job","metadata":{"name":"install","namespace":"one"}}`),
	})
	require.NoError(t, err)
	assert.Contains(t, said, "Job one/install is recreated and runs again")
	assert.Empty(t, a.get(t, batchv1.SchemeGroupVersion.WithResource("jobs"), "one", "install").GetUID())
}

func TestJobsUpgradeWhatTheyInstalledBefore(t *testing.T) {
	t.Parallel()
	const job = `{"apiVersion":"batch/v1","kind":"Job","metadata":{"name":"install","namespace":"one","annotations":` +
		`{"talos-proxmox.dev/again":"{\"when\":\"v1/ConfigMap/one/installed\",\"command\":[\"cilium\",\"upgrade\"]}"}},` +
		`"spec":{"template":{"spec":{"containers":[{"name":"a","command":["cilium","install"]}]}}}}`
	for name, c := range map[string]struct {
		before []runtime.Object
		want   []any
	}{
		"nothing is installed": {want: []any{"cilium", "install"}},
		"it is installed":      {before: []runtime.Object{configMap("installed", "helm")}, want: []any{"cilium", "upgrade"}},
	} {
		a := kubernetesWith(append(c.before, &batchv1.Job{
			TypeMeta:   metav1.TypeMeta{APIVersion: "batch/v1", Kind: "Job"},
			ObjectMeta: metav1.ObjectMeta{Name: "install", Namespace: "one"},
		})...)
		_, err := a.edit([]kubeapply.ManifestObject{object("batch/v1/Job/one/install", job)})
		require.NoError(t, err, name)
		made := a.get(t, batchv1.SchemeGroupVersion.WithResource("jobs"), "one", "install")
		containers, _, err := unstructured.NestedSlice(made.Object, "spec", "template", "spec", "containers")
		require.NoError(t, err)
		require.Len(t, containers, 1)
		assert.Equal(t, c.want, containers[0].(map[string]any)["command"], name)
	}
}

func TestObjectsGoWithTheirManifest(t *testing.T) {
	t.Parallel()
	a := kubernetesWith(configMap("gone", "talos"), configMap("flux", "kustomize-controller"), configMap("held", "talos", "example.com/clean"))
	said, err := a.edit(nil, "v1/ConfigMap/one/gone", "v1/ConfigMap/one/flux", "v1/ConfigMap/one/held",
		"v1/ConfigMap/one/never-was", "v1/Namespace//one", "example.com/v1/Unknown/one/a")
	require.NoError(t, err)
	assert.ElementsMatch(t, []string{
		"Namespace one stays, since what is in it would go too: delete it yourself when it is no longer needed",
		"ConfigMap one/held stays, since example.com/clean must clean up behind it: delete it yourself",
		"ConfigMap one/flux stays: kustomize-controller manages it by now",
		"ConfigMap one/gone is deleted, since its manifest is gone",
	}, strings.Split(said, "\n"))
	assert.Nil(t, a.get(t, configMaps, "one", "gone"))
	assert.NotNil(t, a.get(t, configMaps, "one", "flux"))
	assert.NotNil(t, a.get(t, configMaps, "one", "held"))
}

func TestWhatWasHandedOverIsLeftAlone(t *testing.T) {
	t.Parallel()
	a := kubernetesWith(configMap("theirs", "helm-controller"))
	said, err := a.edit([]kubeapply.ManifestObject{
		object("v1/ConfigMap/one/theirs", `{"apiVersion":"v1","kind":"ConfigMap","metadata":{"name":"theirs","namespace":"one"},"data":{"a":"new"}}`),
	})
	require.NoError(t, err)
	assert.Equal(t, "ConfigMap one/theirs is left to helm-controller, which manages it", said)
	data, _, _ := unstructured.NestedString(a.get(t, configMaps, "one", "theirs").Object, "data", "a")
	assert.Equal(t, "old", data)
}

func TestObjectsOfAnUnknownKindAreWaitedFor(t *testing.T) {
	t.Parallel()
	_, err := kubernetesWith().edit([]kubeapply.ManifestObject{
		object("example.com/v1/Unknown/one/a", `{"apiVersion":"example.com/v1","kind":"Unknown","metadata":{"name":"a","namespace":"one"}}`),
	})
	assert.EqualError(t, err, `applying Unknown one/a: it could not be done in 1s: asking for kind Unknown: `+
		`no matches for kind "Unknown" in version "example.com/v1"`)
}
