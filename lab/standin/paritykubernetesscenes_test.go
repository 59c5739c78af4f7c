// SPDX-License-Identifier: Apache-2.0
// Copyright the talos-proxmox authors.

package standin_test

import (
	"fmt"
	"maps"
	"strings"
	"testing"

	"github.com/pulumi/pulumi/sdk/v3/go/common/resource"

	"github.com/talos-proxmox/talos-proxmox/lab/standin/bridge"
)

const (
	namespaceToken  = "kubernetes:core/v1:Namespace"
	secretToken     = "kubernetes:core/v1:Secret"
	repositoryToken = "kubernetes:source.toolkit.fluxcd.io/v1:GitRepository"
	demandToken     = "kubernetes:demo.example.com/v1:Demand"
	releaseToken    = "kubernetes:helm.sh/v3:Release"
)

// The kinds of the scenes: one as Flux has them, and one of the whole cluster that wants its contents right.
const (
	gitRepositories = `{"apiVersion":"apiextensions.k8s.io/v1","kind":"CustomResourceDefinition",
"metadata":{"name":"gitrepositories.source.toolkit.fluxcd.io"},
"spec":{"group":"source.toolkit.fluxcd.io","scope":"Namespaced",
"names":{"kind":"GitRepository","plural":"gitrepositories","singular":"gitrepository","listKind":"GitRepositoryList"},
"versions":[{"name":"v1","served":true,"storage":true,"subresources":{"status":{}},
"schema":{"openAPIV3Schema":{"type":"object","properties":{
"spec":{"type":"object","required":["url"],"properties":{"url":{"type":"string","pattern":"^(http|https|ssh)://"},
"interval":{"type":"string"},"timeout":{"type":"string","default":"60s"},"include":{"type":"array","items":{"type":"string"}}}},
"status":{"type":"object","x-kubernetes-preserve-unknown-fields":true}}}}}]}}`
	demands = `{"apiVersion":"apiextensions.k8s.io/v1","kind":"CustomResourceDefinition",
"metadata":{"name":"demands.demo.example.com"},
"spec":{"group":"demo.example.com","scope":"Cluster",
"names":{"kind":"Demand","plural":"demands","singular":"demand","listKind":"DemandList"},
"versions":[{"name":"v1","served":true,"storage":true,
"schema":{"openAPIV3Schema":{"type":"object","x-kubernetes-preserve-unknown-fields":true}}}]}}`
)

// kubernetesScenes returns all scenes by name: the objects and releases that the program makes.
func kubernetesScenes(t *testing.T) map[string]kubernetesScene {
	t.Helper()

	all := map[string]kubernetesScene{}
	maps.Copy(all, namespaceScenes())
	maps.Copy(all, secretScenes())
	maps.Copy(all, customScenes())
	maps.Copy(all, releaseScenes(t))

	return all
}

func meta(name string, over bridge.Tree) bridge.Tree {
	m := bridge.Tree{"name": name, "namespace": "here"}
	maps.Copy(m, over)

	return m
}

func namespaceScenes() map[string]kubernetesScene {
	named := func(name string, labels bridge.Tree) bridge.Tree {
		in := bridge.Tree{"apiVersion": "v1", "kind": "Namespace", "metadata": bridge.Tree{"name": name}}
		if labels != nil {
			in["metadata"] = bridge.Tree{"name": name, "labels": labels}
		}

		return in
	}
	body := func(name, label string) map[string]string {
		return map[string]string{"/api/v1/namespaces": fmt.Sprintf(
			`{"apiVersion":"v1","kind":"Namespace","metadata":{"name":%q,"labels":{"whose":%q}}}`, name, label)}
	}
	scenes := map[string]kubernetesScene{
		"namespace":          {inputs: named("ns-plain", nil), edited: named("ns-plain", bridge.Tree{"a": "b"})},
		"namespace there":    {inputs: named("ns-there", nil), before: body("ns-there", "theirs")},
		"namespace agreed":   {inputs: named("ns-agreed", bridge.Tree{"whose": "theirs"}), before: body("ns-agreed", "theirs")},
		"namespace disputed": {inputs: named("ns-disputed", bridge.Tree{"whose": "ours"}), before: body("ns-disputed", "theirs")},
		"namespace renamed":  {inputs: named("ns-old", nil), edited: named("ns-new", nil)},
		"namespace wrong":    {inputs: named("Name_Space", nil)},
		"namespace unnamed":  {inputs: bridge.Tree{"apiVersion": "v1", "kind": "Namespace"}},
	}
	for name, sc := range scenes {
		sc.token = namespaceToken
		if m, ok := sc.inputs["metadata"].(bridge.Tree); ok {
			sc.looks = []string{"/api/v1/namespaces/" + m.Str("name")}
		}
		scenes[name] = sc
	}

	return scenes
}

func secretScenes() map[string]kubernetesScene {
	object := func(name string, data any, over bridge.Tree) bridge.Tree {
		return bridge.Tree{"apiVersion": "v1", "kind": "Secret", "type": "Opaque", "metadata": meta(name, over), "stringData": data}
	}
	secret := func(value string) any {
		return resource.MakeSecret(resource.NewProperty(bridge.Tree{"key": value}.Properties()))
	}
	scenes := map[string]kubernetesScene{
		"secret":            {inputs: object("s-plain", secret("one"), nil), edited: object("s-plain", secret("two"), nil)},
		"secret label":      {inputs: object("s-label", secret("one"), nil), edited: object("s-label", secret("one"), bridge.Tree{"labels": bridge.Tree{"a": "b"}})},
		"secret open":       {inputs: object("s-open", bridge.Tree{"key": "open"}, nil)},
		"secret empty":      {inputs: object("s-empty", nil, nil)},
		"secret unknown":    {inputs: object("s-unknown", bridge.Tree{"key": unknown()}, nil)},
		"secret no space":   {inputs: object("s-no-space", secret("one"), bridge.Tree{"namespace": "nowhere"})},
		"secret wrong name": {inputs: object("Under_Score", secret("one"), nil)},
		"secret encoded": {inputs: bridge.Tree{
			"apiVersion": "v1", "kind": "Secret", "metadata": meta("s-encoded", nil), "data": bridge.Tree{"key": "b25l"},
		}},
		"secret not encoded": {inputs: bridge.Tree{
			"apiVersion": "v1", "kind": "Secret", "metadata": meta("s-not-encoded", nil), "data": bridge.Tree{"key": "???"},
		}},
		"secret key": {inputs: bridge.Tree{
			"apiVersion": "v1", "kind": "Secret", "metadata": meta("s-key", nil), "colour": "red",
		}},
	}
	for name, sc := range scenes {
		sc.token = secretToken
		m := sc.inputs["metadata"].(bridge.Tree) // as above
		sc.looks = []string{"/api/v1/namespaces/" + m.Str("namespace") + "/secrets/" + m.Str("name")}
		scenes[name] = sc
	}

	return scenes
}

func customScenes() map[string]kubernetesScene {
	const repositories = "/apis/source.toolkit.fluxcd.io/v1/namespaces/here/gitrepositories"
	object := func(name string, spec, over bridge.Tree) bridge.Tree {
		s := bridge.Tree{"url": "https://git.example.com/a.git", "interval": "1m"}
		maps.Copy(s, spec)

		return bridge.Tree{"apiVersion": "source.toolkit.fluxcd.io/v1", "kind": "GitRepository", "metadata": meta(name, over), "spec": s}
	}
	annotated := func(pairs ...string) bridge.Tree {
		a := bridge.Tree{}
		for i := 0; i+1 < len(pairs); i += 2 {
			a[pairs[i]] = pairs[i+1]
		}

		return bridge.Tree{"annotations": a}
	}
	theirs := func(name string) map[string]string {
		return map[string]string{repositories: fmt.Sprintf(`{"apiVersion":"source.toolkit.fluxcd.io/v1","kind":"GitRepository",
"metadata":{"name":%q},"spec":{"url":"https://git.example.com/theirs.git"}}`, name)}
	}
	scenes := map[string]kubernetesScene{
		"custom":               {inputs: object("c-plain", nil, nil), edited: object("c-plain", bridge.Tree{"interval": "2m"}, nil)},
		"custom more":          {inputs: object("c-more", nil, nil), edited: object("c-more", bridge.Tree{"include": []string{"a", "b"}}, nil)},
		"custom less":          {inputs: object("c-less", bridge.Tree{"include": []string{"a", "b"}}, nil), edited: object("c-less", bridge.Tree{"include": []string{"b"}}, nil)},
		"custom taken out":     {inputs: object("c-out", nil, nil), edited: object("c-out", bridge.Tree{"interval": nil}, nil)},
		"custom the same":      {inputs: object("c-same", nil, nil), edited: object("c-same", nil, nil)},
		"custom renamed":       {inputs: object("c-old", nil, nil), edited: object("c-new", nil, nil)},
		"custom moved":         {inputs: object("c-moved", nil, nil), edited: object("c-moved", nil, bridge.Tree{"namespace": "default"})},
		"custom label":         {inputs: object("c-label", nil, nil), edited: object("c-label", nil, bridge.Tree{"labels": bridge.Tree{"a": "b"}})},
		"custom refused":       {inputs: object("c-refused", nil, nil), edited: object("c-refused", bridge.Tree{"url": "git@example.com:a"}, nil)},
		"custom to know":       {inputs: object("c-to-know", nil, nil), edited: object("c-to-know", bridge.Tree{"url": unknown()}, nil)},
		"custom wrong":         {inputs: object("c-wrong", bridge.Tree{"url": "git@example.com:a"}, nil)},
		"custom number":        {inputs: object("c-number", bridge.Tree{"url": 5}, nil)},
		"custom without":       {inputs: object("c-without", bridge.Tree{"url": nil}, nil)},
		"custom key":           {inputs: object("c-key", bridge.Tree{"colour": "red"}, nil)},
		"custom unknown":       {inputs: object("c-unknown", bridge.Tree{"url": unknown()}, nil)},
		"custom disputed":      {inputs: object("c-disputed", nil, nil), before: theirs("c-disputed")},
		"custom forced":        {inputs: object("c-forced", nil, annotated("pulumi.com/patchForce", "true")), before: theirs("c-forced")},
		"custom awaited":       {inputs: object("c-awaited", nil, annotated("pulumi.com/waitFor", "condition=Ready", "pulumi.com/timeoutSeconds", "2"))},
		"custom not awaited":   {inputs: object("c-not-awaited", nil, annotated("pulumi.com/waitFor", "condition=Ready", "pulumi.com/skipAwait", "true"))},
		"custom wait path":     {inputs: object("c-path", nil, annotated("pulumi.com/waitFor", "jsonpath={.spec.timeout}=60s"))},
		"custom wait nonsense": {inputs: object("c-nonsense", nil, annotated("pulumi.com/waitFor", "patience"))},
		"custom finalizer": {inputs: object("c-finalizer", nil, bridge.Tree{
			"finalizers": []string{"finalizers.fluxcd.io"},
		}), impatient: true},
		"custom secret": {inputs: object("c-secret", bridge.Tree{"url": resource.MakeSecret(resource.NewProperty("https://git.example.com/b.git"))}, nil)},
		"custom unnamed": {inputs: bridge.Tree{
			"apiVersion": "source.toolkit.fluxcd.io/v1", "kind": "GitRepository", "metadata": bridge.Tree{"namespace": "here"},
			"spec": bridge.Tree{"url": "https://git.example.com/a.git"},
		}},
		"custom no space": {inputs: object("c-no-space", nil, bridge.Tree{"namespace": "nowhere"})},
	}
	for name, sc := range scenes {
		sc.token = repositoryToken
		m := sc.inputs["metadata"].(bridge.Tree) // as above
		if m.Has("name") {
			sc.looks = []string{repositories + "/" + m.Str("name")}
		}
		scenes[name] = sc
	}
	scenes["custom no kind"] = kubernetesScene{token: "kubernetes:source.toolkit.fluxcd.io/v1:Bucket", inputs: bridge.Tree{
		"apiVersion": "source.toolkit.fluxcd.io/v1", "kind": "Bucket", "metadata": meta("c-no-kind", nil), "spec": bridge.Tree{},
	}}
	scenes["custom of all"] = kubernetesScene{
		token: demandToken, looks: []string{"/apis/demo.example.com/v1/demands/c-of-all"},
		inputs: bridge.Tree{
			"apiVersion": "demo.example.com/v1", "kind": "Demand", "metadata": bridge.Tree{"name": "c-of-all"}, "data": bridge.Tree{"a": 1},
		},
		edited: bridge.Tree{
			"apiVersion": "demo.example.com/v1", "kind": "Demand", "metadata": bridge.Tree{"name": "c-of-all"}, "data": bridge.Tree{"b": 1.5},
		},
	}

	return scenes
}

// demoChart returns a chart that makes a ConfigMap, and what else is given.
func demoChart(version string, templates map[string]string) map[string]string {
	files := map[string]string{
		"Chart.yaml":          "apiVersion: v2\nname: demo\nversion: " + version + "\nappVersion: 9.9.9\n",
		"values.yaml":         "greeting: hi\n",
		"templates/demo.yaml": "apiVersion: v1\nkind: ConfigMap\nmetadata:\n  name: {{ .Release.Name }}\ndata:\n  greeting: {{ .Values.greeting }}\n",
	}
	for name, text := range templates {
		files["templates/"+strings.TrimPrefix(name, "/")] = text
	}

	return files
}
