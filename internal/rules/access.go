// SPDX-License-Identifier: Apache-2.0
// Copyright the talos-proxmox authors.

package rules

import (
	"github.com/talos-proxmox/talos-proxmox/internal/check"
	"github.com/talos-proxmox/talos-proxmox/internal/rules/scope"
	"github.com/talos-proxmox/talos-proxmox/spec"
)

// accessVariables are the variables that the provider takes its access from, with the settings they stand for.
var accessVariables = []struct{ name, path string }{
	{"ENDPOINT", "proxmox.endpoint"}, {"API_TOKEN", "proxmox.apiToken"}, {"USERNAME", "proxmox.username"},
	{"PASSWORD", "proxmox.password"}, {"AUTH_TICKET", "proxmox.apiToken"}, {"CSRF_PREVENTION_TOKEN", "proxmox.apiToken"},
	{"INSECURE", "proxmox.insecure"}, {"MIN_TLS", "proxmox.minTls"},
}

// CheckAccess records what is missing to reach Proxmox VE: the settings and the provider's environment
// variables, which lookup knows, must give an address and credentials. The provider would say so only
// after the first resources were made, and without naming the variables.
func CheckAccess(p spec.Proxmox, lookup func(name string) string, l *check.List) {
	env := func(name string) string { return lookup("PROXMOX_VE_" + name) }
	refuseHalfKnown(lookup, l)
	if p.Endpoint == nil && env("ENDPOINT") == "" {
		l.Addf("proxmox.endpoint", "is missing: write the API's address, https://<host>:8006, or set PROXMOX_VE_ENDPOINT")
	}
	token := env("API_TOKEN")
	if p.APIToken == nil && token != "" && !scope.TokenForm.MatchString(token) {
		l.Addf("proxmox.apiToken", "PROXMOX_VE_API_TOKEN is not a token: set it to user@realm!name=uuid")
	}
	if !hasCredentials(p, env) && !l.Has("proxmox.username") && !l.Has("proxmox.password") {
		l.Addf("proxmox.apiToken", "there are no credentials: set PROXMOX_VE_API_TOKEN to user@realm!name=uuid, or write "+
			"apiToken, or username and password, as secrets; a preview asks no host, and any token of that form does for it")
	}
}

// hasCredentials reports whether the settings and the environment together hold some credentials.
func hasCredentials(p spec.Proxmox, env func(name string) string) bool {
	byToken := p.APIToken != nil || env("API_TOKEN") != ""
	byPassword := (p.Username != nil || env("USERNAME") != "") && (p.Password != nil || env("PASSWORD") != "")
	byTicket := env("AUTH_TICKET") != "" && env("CSRF_PREVENTION_TOKEN") != ""

	return byToken || byPassword || byTicket
}

// refuseHalfKnown refuses variables under a name that only a part of the provider reads.
func refuseHalfKnown(lookup func(name string) string, l *check.List) {
	// One half of the provider reads each variable under two names, the other half and everything else only
	// under the first (bpg/terraform-provider-proxmox 0.69.1: proxmoxtf/provider/provider.go, fwprovider/provider.go).
	for _, v := range accessVariables {
		if lookup("PM_VE_"+v.name) != "" && lookup("PROXMOX_VE_"+v.name) == "" {
			l.Addf(v.path, "PM_VE_%s is a name that only a part of the provider knows: set PROXMOX_VE_%s", v.name, v.name)
		}
	}
}

// WithEnvironment returns the settings with the credentials that the provider takes from its environment where they are
// not written: a token counts before a password, wherever each comes from.
func WithEnvironment(p spec.Proxmox, lookup func(name string) string) spec.Proxmox {
	if token := lookup("PROXMOX_VE_API_TOKEN"); token != "" && p.APIToken == nil {
		p.APIToken = spec.Ptr(spec.NewSecret(token))
	}
	if user := lookup("PROXMOX_VE_USERNAME"); user != "" && p.Username == nil {
		p.Username = &user
	}
	if password := lookup("PROXMOX_VE_PASSWORD"); password != "" && p.Password == nil {
		p.Password = spec.Ptr(spec.NewSecret(password))
	}

	return p
}
