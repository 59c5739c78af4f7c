// SPDX-License-Identifier: Apache-2.0
// Copyright the talos-proxmox authors.

package main

import (
	"encoding/base64"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
)

// environ is an environment in the making.
type environ struct{ vars map[string]string }

func (e *environ) set(name, value string) { e.vars[name] = value }

func (e *environ) get(name string) string { return e.vars[name] }

// setDefault sets what the user has not.
func (e *environ) setDefault(name, value string) {
	if _, ok := e.vars[name]; !ok {
		e.vars[name] = value
	}
}

func (e *environ) list() []string {
	var all []string
	for _, k := range slices.Sorted(maps.Keys(e.vars)) {
		all = append(all, k+"="+e.vars[k])
	}

	return all
}

// environment makes the lab a command's world.
func environment(o options, i info) (*environ, error) {
	e := &environ{vars: map[string]string{}}
	for _, kv := range os.Environ() {
		if k, v, ok := strings.Cut(kv, "="); ok {
			e.vars[k] = v
		}
	}

	state := o.path("pulumi-state")
	if err := os.MkdirAll(state, 0o700); err != nil {
		return nil, fmt.Errorf("making the state's directory: %w", err)
	}
	e.set("PULUMI_BACKEND_URL", "file://"+filepath.ToSlash(state))
	if e.get("PULUMI_CONFIG_PASSPHRASE_FILE") == "" {
		e.setDefault("PULUMI_CONFIG_PASSPHRASE", "lab")
	}
	e.set("PULUMI_DISABLE_AUTOMATIC_PLUGIN_ACQUISITION", "true")
	e.set("PULUMI_SKIP_UPDATE_CHECK", "true")

	for _, name := range []string{"HTTPS_PROXY", "HTTP_PROXY", "https_proxy", "http_proxy"} {
		e.set(name, i.Gateway)
	}
	for _, name := range []string{"NO_PROXY", "no_proxy"} {
		e.set(name, "localhost,127.0.0.1,::1")
	}
	for _, name := range []string{"ALL_PROXY", "all_proxy"} { // it would lead past the lab
		delete(e.vars, name)
	}
	// What Go reads, and what curl, git, Python and Node read in its place.
	for _, name := range []string{"SSL_CERT_FILE", "CURL_CA_BUNDLE", "GIT_SSL_CAINFO", "REQUESTS_CA_BUNDLE", "NODE_EXTRA_CA_CERTS"} {
		e.set(name, i.Bundle)
	}
	e.set("LAB_SITE", o.site)
	e.openGit(i)
	e.setDefault("PROXMOX_VE_API_TOKEN", i.Token)

	self, err := os.Executable()
	if err != nil {
		return nil, fmt.Errorf("finding the lab's own directory: %w", err)
	}
	e.setDefault("GIT_SSH_COMMAND", fmt.Sprintf("ssh -o ProxyCommand='%s connect %%h %%p'", self))
	e.set("PATH", filepath.Dir(self)+string(os.PathListSeparator)+e.get("PATH"))

	return e, nil
}

// openGit lets git write to the site's git hosts. The header is for every host, of which there is none
// but the site's.
func (e *environ) openGit(i info) {
	e.setDefault("LAB_GIT_TOKEN", i.GitToken)
	if e.get("GIT_CONFIG_COUNT") != "" {
		return // the user's own
	}
	e.set("GIT_CONFIG_COUNT", "1")
	e.set("GIT_CONFIG_KEY_0", "http.extraHeader")
	e.set("GIT_CONFIG_VALUE_0", "Authorization: Basic "+base64.StdEncoding.EncodeToString([]byte("lab:"+i.GitToken)))
}
