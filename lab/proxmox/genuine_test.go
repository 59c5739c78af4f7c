// SPDX-License-Identifier: Apache-2.0
// Copyright the talos-proxmox authors.

package proxmox_test

import (
	"encoding/json"
	"fmt"
	"maps"
	"net/http"
	"net/http/httptest"
	"net/url"
	"os"
	"path/filepath"
	"reflect"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/talos-proxmox/talos-proxmox/lab/fault"
	"github.com/talos-proxmox/talos-proxmox/lab/proxmox"
	"github.com/talos-proxmox/talos-proxmox/lab/recorded"
	"github.com/talos-proxmox/talos-proxmox/lab/site"
	"github.com/talos-proxmox/talos-proxmox/lab/site/guest"
)

// TestGenuineProxmox asks the lab what Proxmox VE's own code was asked, and compares the answers: status, words, what
// changed in the configuration files, and how tasks ended. PVE_DIFFERENCES=file gets every difference.
func TestGenuineProxmox(t *testing.T) {
	t.Parallel()
	for _, major := range recorded.ProxmoxMajors() {
		t.Run(fmt.Sprint(major), func(t *testing.T) {
			t.Parallel()
			scenes, version, err := recorded.Proxmox(major)
			require.NoError(t, err)
			accepted, err := recorded.ProxmoxAccepted(major)
			require.NoError(t, err)
			report := newReport(t, major)
			used, equal, all := map[string]bool{}, 0, 0
			for _, s := range scenes {
				for i, problem := range playScene(t, major, s) {
					all++
					if problem == "" {
						equal++
					}
					name := fmt.Sprintf("%s / %d", s.Name, i)
					why := recorded.ProxmoxReason(accepted, name)
					used[why] = used[why] || problem != ""
					if problem != "" && why == "" {
						report(name, problem)
					}
				}
			}
			for why := range accepted {
				assert.True(t, used[why], "nothing differs any more because: %s", why)
			}
			page, err := os.ReadFile(filepath.Join("..", "..", "docs", "lab.md"))
			require.NoError(t, err)
			assert.Contains(t, string(page), fmt.Sprintf("| Proxmox VE's API | Proxmox VE %d: %s | %d of %d |\n", major, version, equal, all),
				"docs/lab.md has another line")
		})
	}
}

func newReport(t *testing.T, major int) func(name, problem string) {
	t.Helper()
	file := os.Getenv("PVE_DIFFERENCES")
	if file == "" {
		return func(name, problem string) { t.Errorf("%s: %s", name, problem) }
	}
	out, err := os.Create(fmt.Sprintf("%s.%d", file, major))
	require.NoError(t, err)
	t.Cleanup(func() { _ = out.Close() })

	return func(name, problem string) { _, _ = fmt.Fprintf(out, "%s: %s\n", name, problem) }
}

// genuineDefinition is the cluster that Proxmox VE's code was told to be.
func genuineDefinition(major int) *site.Definition {
	bridges := []string{"vmbr0", "vmbr1"}

	return &site.Definition{Clusters: []site.ClusterDef{{
		Name: "lab", PVE: major,
		Hosts: []site.HostDef{
			{Name: "alpha", Cores: 64, MemoryMiB: 1 << 20, Bridges: bridges, Address: "192.0.2.1"},
			{Name: "beta", Cores: 64, MemoryMiB: 1 << 20, Bridges: bridges, Address: "192.0.2.2"},
		},
		Storages: []site.StorageDef{
			{ID: "local", Type: site.StorageDir, Content: []string{"iso", "vztmpl", "backup", "snippets", "import"}, SizeBytes: 1 << 40},
			{ID: "local-lvm", Type: site.StorageLVMThin, Content: []string{"images", "rootdir"}, SizeBytes: 8 << 40},
			{
				ID: "nas", Type: site.StorageDir, Content: []string{"images", "iso", "vztmpl", "backup", "snippets"}, Shared: true,
				SizeBytes: 1 << 40,
			},
			{ID: "far", Type: site.StorageNFS, Content: []string{"images"}, Nodes: []string{"beta"}, Shared: true, SizeBytes: 1 << 40},
		},
	}}}
}

// playScene plays a scene on a new site and tells of each answer what differs, "" for nothing.
func playScene(t *testing.T, major int, s recorded.ProxmoxScene) []string {
	t.Helper()
	p := newScenePlayer(t, major, s)
	var found []string
	for _, r := range s.Requests {
		if len(r.Running) > 0 {
			for _, id := range r.Running {
				p.powerOn(id)
			}

			continue
		}
		want := s.Answers[len(found)]
		got := p.ask(r)
		if strings.HasPrefix(s.Name, "ha ") { // no HA manager ran where the answers were recorded
			got.Tasks = slices.DeleteFunc(got.Tasks, func(task recorded.ProxmoxTask) bool {
				return !slices.ContainsFunc(want.Tasks, func(w recorded.ProxmoxTask) bool { return w.Type == task.Type })
			})
		}
		found = append(found, strings.Join(differences(want, got), "; "))
	}

	return found
}

type scenePlayer struct {
	*testing.T
	server  *httptest.Server
	site    *site.Site
	cluster *site.Cluster
}

func newScenePlayer(t *testing.T, major int, s recorded.ProxmoxScene) *scenePlayer {
	t.Helper()
	st, err := site.Open(site.Options{
		Dir: t.TempDir(), Clock: guest.Clock{Speed: 20000}, HTTP: http.DefaultClient, Definition: genuineDefinition(major),
		Faults: fault.New(guest.NewTrace(nil), nil),
	})
	require.NoError(t, err)
	c := st.Cluster("lab")
	for _, iso := range []string{"talos.iso"} {
		upid, err := c.Upload("alpha", "local", "iso", iso, make([]byte, 1<<20), "root@pam")
		require.NoError(t, err)
		require.NoError(t, st.Wait(t.Context(), upid))
	}
	server := httptest.NewServer(proxmox.New(st, &proxmox.Auth{Tokens: sceneTokens(s), Password: password}))
	t.Cleanup(func() { server.Close(); _ = st.Close() })

	return &scenePlayer{T: t, server: server, site: st, cluster: c}
}

func sceneTokens(s recorded.ProxmoxScene) []proxmox.Token {
	grants := proxmox.Grants{}
	for _, g := range s.Grants {
		path, _ := g[0].(string)
		names, _ := g[1].([]any)
		for _, n := range names {
			grants[path] = append(grants[path], fmt.Sprint(n))
		}
	}

	return []proxmox.Token{{Value: "root@pam=1"}, {Value: "u@pve=1", Grants: grants}}
}

func (p *scenePlayer) powerOn(id int) {
	p.Helper()
	require.NoError(p, p.cluster.PowerOn(id))
}

// ask makes a call, waits for its task, and tells what became of it as the recordings do.
func (p *scenePlayer) ask(r recorded.ProxmoxRequest) recorded.ProxmoxAnswer {
	p.Helper()
	form := url.Values{}
	for k, v := range r.Params {
		form.Set(k, v)
	}
	target, body := p.server.URL+"/api2/json"+r.Path, ""
	if r.Method == http.MethodPost || r.Method == http.MethodPut {
		body = form.Encode()
	} else if len(form) > 0 {
		target += "?" + form.Encode()
	}
	req, err := http.NewRequestWithContext(p.Context(), r.Method, target, strings.NewReader(body))
	require.NoError(p, err)
	user := r.User
	if user == "" {
		user = "root@pam"
	}
	req.Header.Set("Authorization", "PVEAPIToken="+user+"=1")
	if body != "" {
		req.Header.Set("Content-Type", "application/x-www-form-urlencoded")
	}

	before, tasks := p.configs(), len(p.site.Tasks(""))
	res, err := http.DefaultClient.Do(req)
	require.NoError(p, err)
	defer func() { _ = res.Body.Close() }()
	var answer struct {
		Data   any
		Errors map[string]string
	}
	_ = json.NewDecoder(res.Body).Decode(&answer) // an answer without a body has no data
	got := recorded.ProxmoxAnswer{Status: res.StatusCode, Data: answer.Data, Errors: answer.Errors}
	if res.StatusCode != http.StatusOK {
		got.Message = strings.TrimPrefix(res.Status, fmt.Sprint(res.StatusCode)+" ")
	}
	if upid, ok := answer.Data.(string); ok && strings.HasPrefix(upid, "UPID:") {
		got.Data = "UPID"
	}
	got.Tasks = p.finished(tasks)
	got.Configs = changes(before, p.configs())

	return got
}

// finished waits for the tasks that began since there were n.
func (p *scenePlayer) finished(n int) []recorded.ProxmoxTask {
	p.Helper()
	var out []recorded.ProxmoxTask
	require.Eventually(p, func() bool {
		all := p.site.Tasks("")
		out = nil
		for _, task := range all[:len(all)-n] {
			if task.Exit == "" {
				return false
			}
			out = append(out, recorded.ProxmoxTask{Type: task.Type, ID: task.ID, Exit: task.Exit, Log: task.Log})
		}

		return true
	}, 20*time.Second, time.Millisecond)

	return out
}

// configs returns the configuration files as they would be.
func (p *scenePlayer) configs() map[string][]string {
	out := map[string][]string{}
	for _, v := range p.cluster.VMs() {
		out[fmt.Sprintf("%s/%d", v.Host, v.ID)] = v.File
	}

	return out
}

func changes(before, after map[string][]string) map[string][]string {
	out := map[string][]string{}
	for name, lines := range after {
		if !slices.Equal(before[name], lines) {
			out[name] = lines
		}
	}
	for name := range before {
		if _, still := after[name]; !still {
			out[name] = nil
		}
	}

	return out
}

// differences compares an answer with the recorded one.
func differences(want, got recorded.ProxmoxAnswer) []string {
	var found []string
	differ := func(what string, want, got any) {
		if !reflect.DeepEqual(want, got) {
			found = append(found, fmt.Sprintf("%s: Proxmox VE %v, the lab %v", what, want, got))
		}
	}
	differ("status", want.Status, got.Status)
	differ("message", plain(want.Message), plain(got.Message))
	if len(want.Errors)+len(got.Errors) > 0 {
		for _, name := range slices.Sorted(maps.Keys(union(want.Errors, got.Errors))) {
			differ("error of "+name, plain(want.Errors[name]), plain(got.Errors[name]))
		}
	}
	differ("tasks", tasksText(want.Tasks), tasksText(got.Tasks))
	for _, name := range slices.Sorted(maps.Keys(union(want.Configs, got.Configs))) {
		w, inWant := want.Configs[name]
		g, inGot := got.Configs[name]
		if inWant != inGot || !slices.Equal(stable(w), stable(g)) {
			found = append(found, fmt.Sprintf("file %s: Proxmox VE %v, the lab %v", name, lineDiff(stable(w), stable(g)), lineDiff(stable(g), stable(w))))
		}
	}

	return found
}

// lineDiff returns the lines that only the first has.
func lineDiff(a, b []string) []string {
	return slices.DeleteFunc(slices.Clone(a), func(line string) bool { return slices.Contains(b, line) })
}

func union[V any](a, b map[string]V) map[string]V {
	all := maps.Clone(a)
	if all == nil {
		all = map[string]V{}
	}
	maps.Copy(all, b)

	return all
}

func tasksText(tasks []recorded.ProxmoxTask) string {
	var out []string
	for _, task := range tasks {
		out = append(out, task.Type+" "+task.ID+" "+plain(task.Exit))
	}
	slices.Sort(out)

	return strings.Join(out, ", ")
}

var varies = []struct {
	pattern *regexp.Regexp
	text    string
}{
	{regexp.MustCompile(`UPID:[^\s",]+:`), "<upid>"},
	{regexp.MustCompile(`11111111-2222-3333-4444-555555555555`), "<given>"},
	{regexp.MustCompile(`[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}`), "<uuid>"},
	{regexp.MustCompile(`\$5\$[^$]+\$\S+`), "<password>"},
	{regexp.MustCompile(`BC:24:11:((0[1-9A-F]|[1-9A-F][0-9A-F]):[0-9A-F]{2}|00:(0[1-9A-F]|[1-9A-F][0-9A-F])):[0-9A-F]{2}`), "<mac>"},
	{regexp.MustCompile(`creation-qemu=[\d.]+,ctime=\d+`), "<meta>"},
	{regexp.MustCompile(`\b[0-9a-f]{40}\b`), "<digest>"},
	{regexp.MustCompile(` at /usr/share/perl5/\S+ line \d+\.`), ""},
	{regexp.MustCompile(`\s+`), " "},
}

// plain replaces what differs from run to run.
func plain(s string) string {
	lines := strings.Split(s, "\n")
	slices.Sort(lines) // Perl keeps problems in no order
	s = strings.Join(lines, "\n")
	for _, v := range varies {
		s = v.pattern.ReplaceAllString(s, v.text)
	}

	return strings.TrimSpace(s)
}

func stable(lines []string) []string {
	var out []string
	for _, line := range lines {
		if line = plain(line); line != "" {
			out = append(out, line)
		}
	}

	return out
}
