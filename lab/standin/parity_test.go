// SPDX-License-Identifier: Apache-2.0
// Copyright the talos-proxmox authors.

package standin_test

import (
	"encoding/json"
	"fmt"
	"io"
	"maps"
	"net/http"
	"net/http/httptest"
	"net/url"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"

	"github.com/pulumi/pulumi/sdk/v3/go/common/resource"
	pulumirpc "github.com/pulumi/pulumi/sdk/v3/proto/go"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/talos-proxmox/talos-proxmox/lab/proxmox"
	"github.com/talos-proxmox/talos-proxmox/lab/site"
	"github.com/talos-proxmox/talos-proxmox/lab/standin/bridge"
)

// story is the life of a resource with a provider, as the engine and the site see it.
type story struct {
	Problems []string // what Check says
	Inputs   any      // what Check makes of the inputs
	Preview  any      // the outputs as planned
	Create   string   // the error
	Calls    []string // what creating asked the site for
	Outputs  any
	Again    string // the difference to itself
	Read     any    // the outputs after a refresh, where they differ
	Drift    string // the difference after a refresh

	Edit        string // the difference that the edit makes
	EditPreview any
	Update      string // the error
	EditCalls   []string
	EditOutputs any
	EditDrift   string

	Delete      string // the error
	DeleteCalls []string
}

// scene is a resource and what happens to it.
type scene struct {
	token  string
	inputs bridge.Tree
	edited bridge.Tree // nil leaves it as it is
	secret string      // the API token, where it is another
	minds  bool        // the program does not ignore what never settles
}

// stage is a provider with a site of its own.
type stage struct {
	// ports by API token: as under an engine, each configuration has a process of its own.
	ports map[string]int
	url   string
	site  *site.Site

	mu    sync.Mutex
	calls []string
}

const (
	viewer   = "viewer@pve!lab=11111111-2222-3333-4444-555555555556"
	stranger = "root@pam!lab=11111111-2222-3333-4444-555555555557"
)

func newStage(t *testing.T, start func() int) *stage {
	t.Helper()

	s, err := site.Open(site.Options{
		Dir: t.TempDir(), Clock: site.Clock{Speed: 1000}, HTTP: http.DefaultClient,
		Guest: func(*site.Machine) site.Guest { return idle{} },
	})
	require.NoError(t, err)
	t.Cleanup(func() { _ = s.Close() })

	st := &stage{site: s, ports: map[string]int{token: start(), viewer: start(), stranger: start()}}
	handler := proxmox.New(s, &proxmox.Auth{Tokens: []proxmox.Token{
		{Value: token}, {Value: viewer, Grants: proxmox.Grants{"/": {"VM.Audit", "Datastore.Audit"}}},
	}})
	api := httptest.NewTLSServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		st.note(r)
		handler.ServeHTTP(w, r)
	}))
	t.Cleanup(api.Close)
	st.url = api.URL

	return st
}

// note keeps calls that change something, parameters sorted.
func (s *stage) note(r *http.Request) {
	if r.Method == http.MethodGet {
		return
	}
	body, _ := io.ReadAll(r.Body) // short
	r.Body = io.NopCloser(strings.NewReader(string(body)))
	form, _ := url.ParseQuery(string(body)) // what is no form is not compared
	maps.Copy(form, r.URL.Query())

	line := r.Method + " " + strings.TrimPrefix(strings.TrimSuffix(r.URL.Path, "/"), "/api2/json/")
	for _, k := range slices.Sorted(maps.Keys(form)) {
		var values []string
		for _, v := range form[k] {
			parts := strings.FieldsFunc(v, func(r rune) bool { return r == ',' })
			slices.Sort(parts) // Proxmox VE takes them in any order
			values = append(values, strings.Join(parts, ","))
		}
		line += " " + k + "=" + strings.Join(values, "|")
	}

	s.mu.Lock()
	defer s.mu.Unlock()
	s.calls = append(s.calls, line)
}

// took are the calls about an object since it was last asked, without what others did meanwhile.
func (s *stage) took(about string) []string {
	s.mu.Lock()
	defer s.mu.Unlock()

	mine := []string{}
	s.calls = slices.DeleteFunc(s.calls, func(c string) bool {
		if concerns(c, about) {
			mine = append(mine, drawn(c))

			return true
		}

		return false
	})

	return mine
}

// concerns tells whether a call is about an object: a machine's id, or a name of its own.
func concerns(call, about string) bool {
	if _, err := strconv.Atoi(about); err == nil {
		return strings.Contains(call, "/qemu/"+about+"/") || strings.Contains(call+" ", " vmid="+about+" ") ||
			strings.Contains(call+" ", "vms="+about+" ")
	}

	return strings.Contains(call, about)
}

// drawn hides what is drawn by lot or differs from site to site.
func drawn(s string) string {
	for pattern, name := range map[string]string{
		`UPID:[^ "]*:`: "UPID", `BC:24:11(:[0-9A-F]{2}){3}`: "MAC", `127\.0\.0\.1:\d+`: "HOST",
		`metadata for ('[^']*'|0x[0-9a-f]+)`: "metadata for URL", // the plugin prints a pointer
		`,?uuid=[0-9a-f-]{36}`:               "",
	} {
		s = regexp.MustCompile(pattern).ReplaceAllString(s, name)
	}

	return s
}

// play tells the story of a scene.
func (s *stage) play(t *testing.T, name string, sc scene) story {
	t.Helper()

	secret := sc.secret
	if secret == "" {
		secret = token
	}
	e := attach(t, s.ports[secret])
	if !sc.minds {
		e.ignore = []string{"disks[0].speed", "disks[1].speed"}
	}
	require.NoError(t, e.configure(bridge.Tree{"endpoint": s.url, "insecure": "true", "apiToken": secret}))

	var st story
	u := urn(sc.token, name)
	about := about(sc.inputs)
	in, problems := e.check(u, sc.inputs.Properties(), nil)
	st.Problems, st.Inputs = problems, seen(in)
	if len(problems) > 0 {
		return st
	}

	_, planned, err := e.create(u, in, true)
	st.Preview = seen(planned)
	if err != nil {
		st.Create = "preview: " + refusal(err)

		return st
	}
	id, out, err := e.create(u, in, false)
	st.Create, st.Calls = refusal(err), s.took(about)
	if err != nil {
		return st
	}
	st.Outputs, st.Again = seen(out), difference(e.diff(u, id, in, out, in))
	st.Drift, st.Read = s.drift(e, u, id, in, out)

	if sc.edited != nil {
		in, out = s.edit(e, u, id, sc.edited, in, out, about, &st)
	}

	st.Delete, st.DeleteCalls = refusal(e.remove(u, id, in, out)), s.took(about)

	return st
}

func (s *stage) edit(
	e engine, u resource.URN, id string, edited bridge.Tree, in, out resource.PropertyMap, about string, st *story,
) (resource.PropertyMap, resource.PropertyMap) {
	news, problems := e.check(u, edited.Properties(), in)
	st.Problems = problems
	d := e.diff(u, id, in, out, news)
	st.Edit = difference(d)
	if len(problems) > 0 || len(d.GetReplaces()) > 0 || d.GetChanges() == pulumirpc.DiffResponse_DIFF_NONE {
		return in, out
	}

	changed, err := e.update(u, id, in, out, news)
	st.Update, st.EditCalls = refusal(err), s.took(about)
	if err != nil {
		return in, out
	}
	st.EditOutputs = seen(changed)
	st.EditDrift, _ = s.drift(e, u, id, news, changed)

	return news, changed
}

// drift is what a refresh finds.
func (s *stage) drift(e engine, u resource.URN, id string, in, out resource.PropertyMap) (string, any) {
	r := e.read(u, id, in, out)
	if r.GetId() == "" {
		return "gone", nil
	}
	props := e.unmarshal(r.GetProperties())

	return difference(e.diff(u, id, in, props, in)), seen(props)
}

// about is what calls concerning a resource have in them.
func about(in bridge.Tree) string {
	if id := in.Int("vmId"); id > 0 {
		return fmt.Sprint(id)
	}
	for _, key := range []string{"fileName", "url", "name", "poolId", "resourceId"} {
		if v := in.Str(key); v != "" {
			return v[strings.LastIndex(v, "/")+1:]
		}
	}

	return ""
}

func refusal(err error) string {
	if err == nil {
		return ""
	}

	return drawn(strings.TrimSpace(err.Error()))
}

// difference is an answer to Diff in a line.
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

// seen is what a person sees of properties: no bookkeeping, secrets and unknown values marked.
func seen(v any) any {
	switch v := v.(type) {
	case resource.PropertyMap:
		m := map[string]any{}
		for k, e := range v {
			if !strings.HasPrefix(string(k), "__") && !e.IsNull() {
				m[string(k)] = seen(e)
			}
		}

		return m
	case resource.PropertyValue:
		switch {
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
// without what the bridges put around them; outputs are not compared, since the plugin's state has
// Terraform's empty values too.
func alike(t *testing.T, plugin, standin story) {
	t.Helper()

	for what, pair := range map[string][2]any{
		"where Check finds mistakes": {places(plugin.Problems), places(standin.Problems)},
		"the error of Create":        {bare(plugin.Create), bare(standin.Create)}, "the calls of Create": {plugin.Calls, standin.Calls},
		"the difference to itself": {plugin.Again, standin.Again}, "the drift": {plugin.Drift, standin.Drift},
		"the edit": {roots(plugin.Edit), roots(asDetailed(plugin.Edit, standin.Edit))}, "the error of Update": {bare(plugin.Update), bare(standin.Update)},
		"the calls of Update": {plugin.EditCalls, standin.EditCalls}, "the drift after the edit": {plugin.EditDrift, standin.EditDrift},
		"the error of Delete": {bare(plugin.Delete), bare(standin.Delete)}, "the calls of Delete": {plugin.DeleteCalls, standin.DeleteCalls},
	} {
		assert.Equal(t, text(t, pair[0]), text(t, pair[1]), what+" (expected: the plugin, actual: the stand-in)")
	}
}

// roots are the top-level properties of a difference, and whether they replace: how the plugin tells
// apart adding, changing and removing within them follows Terraform's state.
func roots(difference string) string {
	all := map[string]bool{}
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

// asDetailed is b no more detailed than a: of some resources the plugin says only that they change.
func asDetailed(a, b string) string {
	if a == "SOME" && strings.HasPrefix(b, "SOME ") {
		return "SOME"
	}

	return b
}

// places are where problems are, "m.cpu.type".
func places(problems []string) []string {
	var all []string
	for _, p := range problems {
		_, at, _ := strings.Cut(p, "Examine values at '")
		all = append(all, strings.TrimRight(at, "'."))
	}
	slices.Sort(all)

	return slices.Compact(all)
}

// bare is an error without what the bridges put around the provider's words.
func bare(message string) string {
	for _, around := range []string{
		`^rpc error: code = \w+ desc = `, `(creating|updating|deleting) (urn:\S*|[\w -]+): `, `\d+ errors? occurred:\s+\* `, `^: `,
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
