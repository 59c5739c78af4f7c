// SPDX-License-Identifier: Apache-2.0
// Copyright the talos-proxmox authors.

package talos_test

import (
	"encoding/json"
	"net/http"
	"strings"
	"sync"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// fakeAPI serves what a drain asks for, and no kind at all to who discovers them.
type fakeAPI struct {
	mu sync.Mutex
	// down refuses every node, budget every eviction.
	down, budget bool
	pods         []corev1.Pod
	cordoned     map[string]bool
	evicted      []string
}

func (a *fakeAPI) set(change func(*fakeAPI)) {
	a.mu.Lock()
	defer a.mu.Unlock()
	change(a)
}

func (a *fakeAPI) isCordoned(node string) bool {
	a.mu.Lock()
	defer a.mu.Unlock()

	return a.cordoned[node]
}

func (a *fakeAPI) evictions() []string {
	a.mu.Lock()
	defer a.mu.Unlock()

	return append([]string(nil), a.evicted...)
}

func (a *fakeAPI) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	a.mu.Lock()
	defer a.mu.Unlock()
	w.Header().Set("Content-Type", "application/json")
	switch path := r.URL.Path; {
	case path == "/api":
		_, _ = w.Write([]byte(`{"kind":"APIVersions","versions":[]}`))
	case path == "/apis":
		_, _ = w.Write([]byte(`{"kind":"APIGroupList","apiVersion":"v1","groups":[]}`))
	case strings.HasPrefix(path, "/api/v1/nodes/"):
		a.node(w, r, strings.TrimPrefix(path, "/api/v1/nodes/"))
	case path == "/api/v1/pods":
		_ = json.NewEncoder(w).Encode(corev1.PodList{TypeMeta: metav1.TypeMeta{Kind: "PodList", APIVersion: "v1"}, Items: a.pods})
	case strings.HasSuffix(path, "/eviction") && a.budget:
		w.WriteHeader(http.StatusTooManyRequests)
		_, _ = w.Write([]byte(`{"kind":"Status","apiVersion":"v1","status":"Failure","reason":"TooManyRequests","code":429}`))
	case strings.HasSuffix(path, "/eviction"):
		a.evicted = append(a.evicted, strings.Split(path, "/")[6])
		_, _ = w.Write([]byte(`{"kind":"Status","apiVersion":"v1","status":"Success"}`))
	default:
		w.WriteHeader(http.StatusNotFound)
		_, _ = w.Write([]byte(`{"kind":"Status","apiVersion":"v1","status":"Failure","reason":"NotFound","code":404}`))
	}
}

func (a *fakeAPI) node(w http.ResponseWriter, r *http.Request, name string) {
	if a.down {
		w.WriteHeader(http.StatusInternalServerError)

		return
	}
	if a.cordoned == nil {
		a.cordoned = map[string]bool{}
	}
	if r.Method == http.MethodPatch {
		var patch corev1.Node
		_ = json.NewDecoder(r.Body).Decode(&patch)
		a.cordoned[name] = patch.Spec.Unschedulable
	}
	n := corev1.Node{TypeMeta: metav1.TypeMeta{Kind: "Node", APIVersion: "v1"}, ObjectMeta: metav1.ObjectMeta{Name: name}}
	n.Spec.PodCIDRs = []string{"10.244.0.0/24"}
	n.Spec.Unschedulable = a.cordoned[name]
	n.Status.Conditions = []corev1.NodeCondition{{Type: corev1.NodeReady, Status: corev1.ConditionTrue}}
	if a.cordoned[name] {
		n.Annotations = map[string]string{"talos.dev/cordoned": "true"}
	}
	_ = json.NewEncoder(w).Encode(n)
}
