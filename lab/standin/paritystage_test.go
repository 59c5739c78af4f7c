// SPDX-License-Identifier: Apache-2.0
// Copyright the talos-proxmox authors.

package standin_test

import (
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

	"github.com/stretchr/testify/require"

	"github.com/talos-proxmox/talos-proxmox/lab/proxmox"
	"github.com/talos-proxmox/talos-proxmox/lab/site"
	"github.com/talos-proxmox/talos-proxmox/lab/site/guest"
	"github.com/talos-proxmox/talos-proxmox/lab/standin/bridge"
)

// stage runs a provider with a site of its own.
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
		Dir: t.TempDir(), Clock: guest.Clock{Speed: 1000}, HTTP: http.DefaultClient,
		Guest: func(*guest.Machine) guest.Guest { return idle{} },
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

// took returns the calls about an object since it was last asked, without what others did meanwhile.
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

// concerns reports whether a call is about an object: a machine's id, or a name of its own.
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
		`pulumi-kubernetes-[0-9a-f]{8}`:      "MANAGER", `\bit-[0-9a-f]{8}\b`: "NAME",
		`,?uuid=[0-9a-f-]{36}`:         "",
		`\bm-[0-9a-f]{7}\b`:            "NAME",
		`^[A-Za-z0-9+/_-]{40,}={0,2}$`: "KEY", `^[0-9a-z]{6}\.[0-9a-z]{16}$`: "TOKEN",
	} {
		s = regexp.MustCompile(pattern).ReplaceAllString(s, name)
	}

	return s
}

// about returns what calls concerning a resource have in them.
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
	concerned := about(sc.inputs)

	return player{e: e, took: func() []string { return s.took(concerned) }}.play(t, urn(sc.token, name), sc.inputs, sc.edited)
}
