// SPDX-License-Identifier: Apache-2.0
// Copyright the talos-proxmox authors.

package standin_test

import (
	"encoding/json"
	"slices"
	"testing"

	"github.com/stretchr/testify/require"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	client "k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"

	"github.com/talos-proxmox/talos-proxmox/lab/standin/bridge"
)

// TestKubernetesIsLikeThePlugin tells the same stories with the stand-in and with the genuine plugin, each
// on a real API server of its own, and wants them alike: what is checked, planned, made, owned, kept,
// changed, replaced and said.
func TestKubernetesIsLikeThePlugin(t *testing.T) {
	t.Parallel()

	told := narrate(t, "kubernetes")
	var plugin *kubernetesStage
	standin := newKubernetesStage(t, serve(t, "kubernetes"))
	if told.live {
		plugin = newKubernetesStage(t, genuine(t, "kubernetes"))
	}

	for name, sc := range kubernetesScenes(t) {
		t.Run(name, func(t *testing.T) {
			t.Parallel()

			alikeInStates(t, told.story(t, name, func() story { return plugin.play(t, sc) }), standin.play(t, sc))
		})
	}
}

// kubernetesScene describes an object or a release, and what happens to it.
type kubernetesScene struct {
	token          string
	inputs, edited bridge.Tree
	before         map[string]string // what somebody else made before: the body by the path of its collection
	impatient      bool              // a deletion gets two seconds
	looks          []string          // the paths of what may come about
}

// kubernetesStage runs a provider with a cluster of its own.
type kubernetesStage struct {
	engine engine
	api    rest.Interface
}

func newKubernetesStage(t *testing.T, port int) *kubernetesStage {
	t.Helper()

	kubeconfig, c := realCluster(t)
	k, err := client.NewForConfig(c.AdminConfig())
	require.NoError(t, err)
	s := &kubernetesStage{engine: attach(t, port), api: k.CoreV1().RESTClient()}
	for _, kind := range []string{gitRepositories, demands} {
		s.post(t, "/apis/apiextensions.k8s.io/v1/customresourcedefinitions", kind)
	}
	s.post(t, "/api/v1/namespaces", `{"apiVersion":"v1","kind":"Namespace","metadata":{"name":"here"}}`)
	require.NoError(t, s.engine.configure(bridge.Tree{"kubeconfig": kubeconfig}))

	return s
}

// post makes something as somebody else.
func (s *kubernetesStage) post(t *testing.T, collection, body string) {
	t.Helper()

	err := s.api.Post().AbsPath(collection).Param("fieldManager", "somebody").
		SetHeader("Content-Type", "application/json").Body([]byte(body)).Do(t.Context()).Error()
	require.NoError(t, err)
}

func (s *kubernetesStage) play(t *testing.T, sc kubernetesScene) story {
	t.Helper()

	for collection, body := range sc.before {
		s.post(t, collection, body)
	}
	e := s.engine
	e.t, e.deleteTimeout = t, 60
	if sc.impatient {
		e.deleteTimeout = 2
	}
	p := player{
		e: e, took: func() []string { return nil },
		look: func() any {
			found := map[string]any{}
			for _, path := range sc.looks {
				found[path] = s.get(t, path)
			}

			return found
		},
	}

	return p.play(t, urn(sc.token, "it"), sc.inputs, sc.edited)
}

// get returns what stands at a path, without what differs from cluster to cluster.
func (s *kubernetesStage) get(t *testing.T, path string) any {
	t.Helper()

	text, err := s.api.Get().AbsPath(path).DoRaw(t.Context())
	if apierrors.IsNotFound(err) {
		return nil
	}
	require.NoError(t, err)
	var object map[string]any
	require.NoError(t, json.Unmarshal(text, &object))

	if f, _ := object["metadata"].(map[string]any)["finalizers"].([]any); slices.Equal(f, []any{"foregroundDeletion"}) {
		return nil // as good as gone
	}

	return settled(object)
}

// settled returns an object without what differs from cluster to cluster: times, versions, names of managers
// that are drawn by lot.
func settled(v any) any {
	switch v := v.(type) {
	case map[string]any:
		kept := map[string]any{}
		for key, e := range v {
			switch key {
			case "uid", "resourceVersion", "creationTimestamp", "deletionTimestamp", "time", "modifiedAt", "release":
				kept[key] = "DRAWN"
			case "status", "deployment.kubernetes.io/revision": // controllers of the cluster are about to write it
			case "managedFields":
				kept[key] = owners(e)
			default:
				kept[key] = settled(e)
			}
		}

		return kept
	case []any:
		all := []any{}
		for _, e := range v {
			all = append(all, settled(e))
		}

		return all
	case string:
		return drawn(v)
	}

	return v
}

// owners returns what managers own, without their own names.
func owners(fields any) any {
	list, _ := fields.([]any)
	all := []any{}
	for _, f := range list {
		if entry, ok := f.(map[string]any); ok {
			name, _ := entry["manager"].(string)
			if name == "kube-controller-manager" {
				continue // in its own time
			}
			if name != "somebody" {
				delete(entry, "manager")
			}
			all = append(all, settled(entry))
		}
	}

	return all
}
