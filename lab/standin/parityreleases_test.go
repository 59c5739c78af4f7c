// SPDX-License-Identifier: Apache-2.0
// Copyright the talos-proxmox authors.

package standin_test

import (
	"maps"
	"os"
	"path/filepath"
	"testing"

	"github.com/pulumi/pulumi/sdk/v3/go/common/resource"
	"github.com/stretchr/testify/require"

	"github.com/talos-proxmox/talos-proxmox/lab/standin/bridge"
)

// neverReady is a workload in a cluster that runs none.
const neverReady = `apiVersion: apps/v1
kind: Deployment
metadata: {name: "{{ .Release.Name }}"}
spec:
  selector: {matchLabels: {app: demo}}
  template: {metadata: {labels: {app: demo}}, spec: {containers: [{name: demo, image: demo}]}}
`

// chartIn writes a chart and returns its directory.
func chartIn(t *testing.T, files map[string]string) string {
	t.Helper()

	dir := t.TempDir()
	require.NoError(t, os.Mkdir(filepath.Join(dir, "templates"), 0o700))
	for file, text := range files {
		require.NoError(t, os.WriteFile(filepath.Join(dir, file), []byte(text), 0o600))
	}

	return dir
}

// releaseScenes returns charts that are released, by a path as the program does it.
func releaseScenes(t *testing.T) map[string]kubernetesScene {
	t.Helper()

	one, two := chartIn(t, demoChart("1.2.3", nil)), chartIn(t, demoChart("1.3.0", nil))
	broken := chartIn(t, demoChart("1.2.3", map[string]string{"broken.yaml": "{{ .Values.nothing.there }}\n"}))
	wrong := chartIn(t, demoChart("1.2.3", map[string]string{"wrong.yaml": "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: Under_Score}\n"}))
	slow := chartIn(t, demoChart("1.2.3", map[string]string{"slow.yaml": neverReady}))
	stranger := chartIn(t, demoChart("1.2.3", map[string]string{"x.yaml": "apiVersion: example.com/v1\nkind: Thing\nmetadata: {name: x}\n"}))

	release := func(name string, over bridge.Tree) bridge.Tree {
		in := bridge.Tree{"chart": one, "name": name, "namespace": "here", "values": bridge.Tree{"greeting": "hello"}, "timeout": 600}
		maps.Copy(in, over)

		return in
	}
	scenes := map[string]kubernetesScene{}
	for name, over := range map[string]bridge.Tree{
		"plain": nil, "version": {"version": "1.2.3"}, "no values": {"values": nil}, "defaults": {"timeout": nil, "namespace": nil},
		"no chart": {"chart": "/nowhere/demo"}, "chart missing": {"chart": nil}, "chart name": {"chart": "demo"},
		"broken": {"chart": broken}, "wrong": {"chart": wrong}, "stranger": {"chart": stranger},
		"slow": {"chart": slow, "timeout": 2}, "not awaited": {"chart": slow, "skipAwait": true},
		"no space": {"namespace": "nowhere"}, "own space": {"namespace": "r-own", "createNamespace": true},
		"values text": {"values": "greeting"}, "key": {"colour": "red"}, "number": {"name": 5},
		"secret":       {"values": bridge.Tree{"greeting": resource.MakeSecret(resource.NewProperty("psst"))}},
		"wrong name":   {"name": "Under_Score"},
		"no version":   {"version": "9.9.9"},
		"atomic":       {"chart": slow, "timeout": 2, "atomic": true},
		"unnamed":      {"name": nil},
		"no repo":      {"chart": "demo", "repositoryOpts": bridge.Tree{"repo": "http://127.0.0.1:9"}},
		"deep values":  {"values": bridge.Tree{"a": bridge.Tree{"b": []any{1, "two", true, 1.5}}, "greeting": "deep"}},
		"null in list": {"values": bridge.Tree{"greeting": "null", "list": []any{}}},
	} {
		scenes[name] = kubernetesScene{inputs: release("r-"+slug(name), over)}
		if over.Has("name") || name == "unnamed" {
			scenes[name] = kubernetesScene{inputs: release("", over)}
		}
	}
	for name, over := range map[string]bridge.Tree{
		"values": {"values": bridge.Tree{"greeting": "again"}}, "values gone": {"values": nil}, "nothing": {}, "chart": {"chart": two}, "broken": {"chart": broken},
		"slow": {"chart": slow, "timeout": 2}, "name": {"name": "r-another"}, "namespace": {"namespace": "default"}, "timeout": {"timeout": 300},
		"empty list": {"values": bridge.Tree{"greeting": "hello", "list": []any{}}},
		"no version": {"version": "9.9.9"},
	} {
		scenes["edit "+name] = kubernetesScene{inputs: release("r-edit-"+slug(name), nil), edited: release("r-edit-"+slug(name), over)}
	}

	all := map[string]kubernetesScene{}
	for name, sc := range scenes {
		sc.token = releaseToken
		r, space := sc.inputs.Str("name"), sc.inputs.Str("namespace")
		if r != "" {
			sc.looks = []string{
				"/api/v1/namespaces/" + space + "/configmaps/" + r, "/apis/apps/v1/namespaces/" + space + "/deployments/" + r,
				"/api/v1/namespaces/" + space + "/secrets/sh.helm.release.v1." + r + ".v1", "/api/v1/namespaces/" + space + "/secrets/sh.helm.release.v1." + r + ".v2",
			}
		}
		all["release "+name] = sc
	}

	return all
}

// slug returns a name as Kubernetes takes it.
func slug(name string) string {
	out := []rune(name)
	for i, r := range out {
		if r == ' ' {
			out[i] = '-'
		}
	}

	return string(out)
}
