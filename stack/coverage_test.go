// SPDX-License-Identifier: Apache-2.0
// Copyright the talos-proxmox authors.

package stack_test

import (
	"go/ast"
	"go/parser"
	"go/token"
	"io/fs"
	"path/filepath"
	"reflect"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"go.yaml.in/yaml/v3"

	"github.com/talos-proxmox/talos-proxmox/internal/check"
	"github.com/talos-proxmox/talos-proxmox/spec"
	"github.com/talos-proxmox/talos-proxmox/stack"
)

// message holds what a rule says.
type message struct {
	at   string
	form *regexp.Regexp
}

// recorders are the functions that record a problem, with the place of the message among their arguments.
var recorders = map[string]int{"Addf": 1, "fail": 1, "Between": 2, "KeysMatch": 4, "Each": 3}

var verb = regexp.MustCompile(`%[-+# 0-9.]*[a-zA-Z]`)

// messagesOf returns what the rules below a directory say, taken from their sources. Messages that are made elsewhere ("%s") are
// counted apart.
func messagesOf(t *testing.T, directory string) (all []message, others int) {
	t.Helper()
	fileset := token.NewFileSet()
	require.NoError(t, filepath.WalkDir(directory, func(path string, entry fs.DirEntry, err error) error {
		if err != nil || entry.IsDir() || !strings.HasSuffix(path, ".go") || strings.HasSuffix(path, "_test.go") {
			return err
		}
		file, err := parser.ParseFile(fileset, path, nil, parser.SkipObjectResolution)
		require.NoError(t, err)
		ast.Inspect(file, func(n ast.Node) bool {
			call, ok := n.(*ast.CallExpr)
			if !ok {
				return true
			}
			selector, ok := call.Fun.(*ast.SelectorExpr)
			if !ok {
				return true
			}
			place, records := recorders[selector.Sel.Name]
			if !records || place >= len(call.Args) {
				return true
			}
			form := formOf(call.Args[place])
			if len(strings.ReplaceAll(form, ".*", "")) < 6 {
				others++

				return true
			}
			at := fileset.Position(call.Pos())
			all = append(all, message{filepath.ToSlash(at.Filename) + ":" + strconv.Itoa(at.Line), regexp.MustCompile("(?s)" + form)})

			return true
		})

		return nil
	}))

	return all, others
}

// formOf returns the form that a message has.
func formOf(e ast.Expr) string {
	switch e := e.(type) {
	case *ast.BasicLit:
		text, _ := strconv.Unquote(e.Value)
		var form strings.Builder
		for i, part := range verb.Split(strings.ReplaceAll(text, "%%", "%"), -1) {
			if i > 0 {
				form.WriteString(".*")
			}
			form.WriteString(regexp.QuoteMeta(part))
		}

		return form.String()
	case *ast.BinaryExpr:
		return formOf(e.X) + formOf(e.Y)
	default:
		return ".*"
	}
}

// elsewhere are messages of which other tests make sure: on what YAML has twice (TestMutations), on secure values without a file
// (TestSecureValueThatCannotBeFoundIsRefused), on keys that the scan for credentials finds first, and on what no YAML brings about.
var elsewhere = []string{
	"(?s)is written twice", "(?s)holds a secure value where only plain settings stand: only secrets and free text may be secure",
	"(?s)is no YAML that can be written as text", "(?s)must be .*: .* does not fit", "(?s)must name a datastore that holds ISO images",
	`(?s)is a private key: give the public one \(age1…\), and keep this one away from the cluster`,
	"(?s)needs a name and an image, such as rpi_generic and siderolabs/sbc-raspberrypi",
}

// TestEveryRuleIsBroken demands that the suites which break stacks bring every rule of internal/rules and of this package to speak.
func TestEveryRuleIsBroken(t *testing.T) {
	t.Parallel()
	var said []string
	for _, m := range mistakes(t) {
		for _, p := range m.problems(t) {
			said = append(said, p.Message)
		}
	}
	files, err := filepath.Glob("testdata/rules/*.yaml")
	require.NoError(t, err)
	for _, file := range files {
		var cases []ruleCase
		require.NoError(t, yaml.Unmarshal([]byte(read(t, file)), &cases), file)
		for _, c := range cases { // TestRules holds that they are what is said
			said = append(said, c.Want...)
		}
	}

	rules, others := messagesOf(t, "../internal/rules")
	own, ownOthers := messagesOf(t, ".")
	var silent []string
	for _, m := range slices.Concat(rules, own) {
		if slices.Contains(elsewhere, m.form.String()) {
			continue
		}
		if !slices.ContainsFunc(said, m.form.MatchString) {
			silent = append(silent, m.at+" "+m.form.String())
		}
	}
	total := len(rules) + len(own)
	t.Logf("%d of %d messages of rules were said (%.1f %%), of which %d files make %d problems; %d more pass on what others say",
		total-len(silent), total, 100*float64(total-len(silent))/float64(total), len(mistakes(t)), len(said), others+ownOthers)
	assert.Empty(t, silent, "%d rules that no stack breaks", len(silent))
}

// TestEveryKeyIsTyped breaks every key that a stack file can have, as its type gives it: a value of another type, one out of its
// range, and a name that is misspelt. Each is told at the key.
func TestEveryKeyIsTyped(t *testing.T) {
	t.Parallel()
	keys := spec.KeysOf(reflect.TypeFor[stack.File](), "")
	tried := map[string]int{}
	for _, k := range keys {
		for kind, value := range wrongValues(k) {
			path := k.Path
			if kind == "misspelt" {
				path += "Q"
			}
			tried[kind]++
			at := pathOf(path)
			text := overlay(t, map[string]any{strings.Split(path, ".")[0]: nested(strings.Split(path, ".")[1:], value)})
			problems := problemsOf(t, text)
			assert.True(t, slices.ContainsFunc(problems, func(p string) bool {
				return strings.HasPrefix(p, at+":") || strings.HasPrefix(p, at+"[") || strings.HasPrefix(p, at+".")
			}), "%s of %s is not told at %s: %v", kind, k.Path, at, problems)
		}
	}
	t.Logf("%d keys, broken by %v", len(keys), tried)
}

// wrongValues returns values that a key cannot have, by what is wrong with them.
func wrongValues(k spec.Key) map[string]any {
	wrong := map[string]any{}
	if strings.Contains(k.Path, ".") { // top-level keys are told by another name: with the project's before them
		wrong["misspelt"] = "x"
	}
	switch t := k.Type; {
	case t == reflect.TypeFor[spec.Secret]():
		wrong["plain"] = "hunter2"
	case t == reflect.TypeFor[spec.Text]():
		wrong["type"] = 12
	case t.Kind() == reflect.Slice, t.Kind() == reflect.Map, spec.HoldsSettings(t):
		wrong["type"] = "text"
	default:
		wrong["type"] = []any{map[string]any{}}
	}
	if k.Enum != nil {
		wrong["choice"] = "nonsense"
	}
	if least, err := strconv.Atoi(k.Min); err == nil {
		wrong["too small"] = least - 1
	}
	if most, err := strconv.Atoi(k.Max); err == nil {
		wrong["too large"] = most + 1
	}

	return wrong
}

// nested wraps a value in the blocks of a path, in which * is a name and [] a list's element.
func nested(path []string, value any) any {
	if len(path) == 0 {
		return value
	}
	name, list := strings.CutSuffix(path[0], "[]")
	below := nested(path[1:], value)
	if list {
		below = []any{below}
	}
	if name == "*" {
		name = "one"
	}

	return map[string]any{name: below}
}

func pathOf(path string) string {
	at := ""
	for _, name := range strings.Split(path, ".") {
		name, list := strings.CutSuffix(name, "[]")
		if name == "*" {
			name = "one"
		}
		at = check.Key(at, name)
		if list {
			at = check.Index(at, 0)
		}
	}

	return at
}
