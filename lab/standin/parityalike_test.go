// SPDX-License-Identifier: Apache-2.0
// Copyright the talos-proxmox authors.

package standin_test

import (
	"encoding/json"
	"fmt"
	"maps"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/pulumi/pulumi/sdk/v3/go/common/resource"
	pulumirpc "github.com/pulumi/pulumi/sdk/v3/proto/go"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

func refusal(err error) string {
	if err == nil {
		return ""
	}

	return drawn(strings.TrimSpace(err.Error()))
}

// difference returns an answer to Diff in a line.
func difference(d *pulumirpc.DiffResponse) string {
	line := strings.TrimPrefix(d.GetChanges().String(), "DIFF_")
	for _, k := range slices.Sorted(maps.Keys(d.GetDetailedDiff())) {
		line += fmt.Sprintf(" %s=%s", k, d.GetDetailedDiff()[k].GetKind())
	}
	if replaces := slices.Sorted(slices.Values(d.GetReplaces())); len(replaces) > 0 {
		line += fmt.Sprintf(" replaces %v", replaces)
		if d.GetDeleteBeforeReplace() {
			line += ", deletes first"
		}
	}

	return line
}

// seen returns what a person sees of properties: no bookkeeping, secrets and unknown values marked.
func seen(v any) any {
	switch v := v.(type) {
	case resource.PropertyMap:
		m := map[string]any{}
		for k, e := range v {
			if !strings.HasPrefix(string(k), "__") && !e.IsNull() {
				m[string(k)] = seen(e)
			}
		}

		if len(m) > 0 && !slices.ContainsFunc(slices.Collect(maps.Values(m)), func(v any) bool { return v != "unknown" }) {
			return "unknown" // as a whole
		}

		return m
	case resource.PropertyValue:
		switch {
		case v.IsSecret() && v.SecretValue().Element.IsComputed(): // whether it is secret is told when it is known
			return "unknown"
		case v.IsSecret():
			return map[string]any{"secret": seen(v.SecretValue().Element)}
		case v.IsComputed(), v.IsOutput() && !v.OutputValue().Known:
			return "unknown"
		case v.IsOutput():
			return seen(v.OutputValue().Element)
		case v.IsObject():
			return seen(v.ObjectValue())
		case v.IsArray():
			l := []any{}
			for _, e := range v.ArrayValue() {
				l = append(l, seen(e))
			}

			return l
		case v.IsString():
			return drawn(v.StringValue())
		}

		return v.V
	}

	return v
}

// alike compares two stories line by line. What is checked is compared by where it is wrong, errors
// without what the bridges put around them; outputs are not compared, since the state of the plugin for
// Proxmox VE has Terraform's empty values too.
func alike(t *testing.T, plugin, standin story) {
	t.Helper()

	for what, pair := range map[string][2]any{
		"where Check finds mistakes": {places(plugin.Problems), places(standin.Problems)},
		"the error of Check":         {bare(plugin.Refused), bare(standin.Refused)},
		"the error of Create":        {bare(plugin.Create), bare(standin.Create)}, "the calls of Create": {plugin.Calls, standin.Calls},
		"what was made":            {plugin.Made, standin.Made},
		"the difference to itself": {plugin.Again, asDetailed(plugin.Again, standin.Again)}, "the drift": {plugin.Drift, asDetailed(plugin.Drift, standin.Drift)},
		"the edit": {roots(plugin.Edit), roots(asDetailed(plugin.Edit, standin.Edit))}, "the error of Update": {bare(plugin.Update), bare(standin.Update)},
		"the calls of Update": {plugin.EditCalls, standin.EditCalls}, "the drift after the edit": {plugin.EditDrift, asDetailed(plugin.EditDrift, standin.EditDrift)},
		"what was edited":     {plugin.Edited, standin.Edited},
		"the error of Delete": {bare(plugin.Delete), bare(standin.Delete)}, "the calls of Delete": {plugin.DeleteCalls, standin.DeleteCalls},
		"what was left": {plugin.Left, standin.Left},
	} {
		assert.Equal(t, text(t, pair[0]), text(t, pair[1]), what+" (expected: the plugin, actual: the stand-in)")
	}
}

// alikeInStates compares what an engine keeps and shows of two stories too.
func alikeInStates(t *testing.T, plugin, standin story) {
	t.Helper()

	alike(t, plugin, standin)
	for what, pair := range map[string][2]any{
		"the inputs": {plugin.Inputs, standin.Inputs}, "the plan": {plugin.Preview, standin.Preview},
		"the outputs": {plugin.Outputs, standin.Outputs}, "the outputs after a refresh": {plugin.Read, standin.Read},
		"the plan of the edit": {plugin.EditPreview, standin.EditPreview}, "the outputs of the edit": {plugin.EditOutputs, standin.EditOutputs},
	} {
		assert.Equal(t, text(t, settled(pair[0])), text(t, settled(pair[1])), what+" (expected: the plugin, actual: the stand-in)")
	}
}

// roots returns the top-level properties of a difference, and whether they replace: how the plugin tells
// apart adding, changing and removing within them follows Terraform's state.
func roots(difference string) string {
	all := map[string]bool{}
	if strings.Contains(difference, " replaces [") {
		all["replaces"] = true
	}
	words := strings.Fields(difference)
	for _, w := range words[min(1, len(words)):] {
		if w == "deletes" {
			all["deletes first"] = true
		}
		if root, _, ok := strings.Cut(w, "="); ok {
			root = regexp.MustCompile(`^\w+`).FindString(root)
			if strings.HasSuffix(w, "REPLACE") {
				root += " replaces"
			}
			all[root] = true
		}
	}
	first := strings.Join(words[:min(1, len(words))], "")

	return first + " " + strings.Join(slices.Sorted(maps.Keys(all)), " ")
}

// asDetailed returns b no more detailed than a: of some resources the plugin says only that they change.
func asDetailed(a, b string) string {
	if strings.HasPrefix(a, "SOME") && !strings.Contains(a, "=") {
		return regexp.MustCompile(` \S+=\w+`).ReplaceAllString(b, "")
	}

	return b
}

// places returns where problems are, "m.cpu.type".
func places(problems []string) []string {
	var all []string
	for _, p := range problems {
		_, at, _ := strings.Cut(p, "Examine values at '")
		all = append(all, strings.TrimRight(at, "'."))
	}
	slices.Sort(all)

	return slices.Compact(all)
}

// bare returns an error without what the bridges put around the provider's words.
func bare(message string) string {
	for _, around := range []string{
		`^rpc error: code = \w+ desc = `, `(creating|updating|deleting|planning) (urn:\S*|[\w -]+): `, `\d+ errors? occurred:\s+\* `, `^preview: `, `^rpc error: code = \w+ desc = `, `(creating|updating|deleting|planning) (urn:\S*|[\w -]+): `, `^: `,
		`yaml: line \d+: `, `go-yaml load error in \w+ \(`, // Talos machinery that is newer than the plugin's has another parser
		`error decoding document \S+ \(line \d+\): `, // newer Talos machinery than the plugin's says where
	} {
		message = regexp.MustCompile(around).ReplaceAllString(message, "")
	}

	return strings.TrimSpace(message)
}

func text(t *testing.T, v any) string {
	t.Helper()

	data, err := json.MarshalIndent(v, "", " ")
	require.NoError(t, err)

	return string(data)
}
