// SPDX-License-Identifier: Apache-2.0
// Copyright the talos-proxmox authors.

package rules_test

import (
	"testing"

	"github.com/stretchr/testify/assert"

	"github.com/talos-proxmox/talos-proxmox/internal/check"
	"github.com/talos-proxmox/talos-proxmox/internal/rules"
	"github.com/talos-proxmox/talos-proxmox/spec"
)

func TestCheckAccess(t *testing.T) {
	t.Parallel()

	const (
		token      = "ci@pve!preview=00000000-0000-0000-0000-000000000000"
		noEndpoint = "proxmox.endpoint: is missing: write the API's address, https://<host>:8006, or set PROXMOX_VE_ENDPOINT"
		nobody     = "proxmox.apiToken: there are no credentials: set PROXMOX_VE_API_TOKEN to user@realm!name=uuid, or write " +
			"apiToken, or username and password, as secrets; a preview asks no host, and any token of that form does for it"
		malformed = "proxmox.apiToken: PROXMOX_VE_API_TOKEN is not a token: set it to user@realm!name=uuid"
	)
	secret := func(text string) *spec.Secret { return spec.Ptr(spec.NewSecret(text)) }
	here := spec.Ptr("https://pve.example.com:8006")

	for name, c := range map[string]struct {
		settings spec.Proxmox
		env      map[string]string
		want     []string
	}{
		"nothing at all":      {want: []string{nobody, noEndpoint}},
		"all in the settings": {settings: spec.Proxmox{Endpoint: here, APIToken: secret(token)}},
		"a password there":    {settings: spec.Proxmox{Endpoint: here, Username: spec.Ptr("root@pam"), Password: secret("p")}},
		"a user alone":        {settings: spec.Proxmox{Endpoint: here, Username: spec.Ptr("root@pam")}, want: []string{nobody}},
		"all from outside":    {env: map[string]string{"PROXMOX_VE_ENDPOINT": *here, "PROXMOX_VE_API_TOKEN": token}},
		"by the older names": {env: map[string]string{"PM_VE_ENDPOINT": *here, "PM_VE_API_TOKEN": token}, want: []string{
			"proxmox.apiToken: PM_VE_API_TOKEN is a name that only a part of the provider knows: set PROXMOX_VE_API_TOKEN", nobody,
			"proxmox.endpoint: PM_VE_ENDPOINT is a name that only a part of the provider knows: set PROXMOX_VE_ENDPOINT", noEndpoint,
		}},
		"by both names": {env: map[string]string{
			"PM_VE_ENDPOINT": "x", "PM_VE_API_TOKEN": "y", "PROXMOX_VE_ENDPOINT": *here, "PROXMOX_VE_API_TOKEN": token,
		}},
		"password in both":     {settings: spec.Proxmox{Endpoint: here, Username: spec.Ptr("root@pam")}, env: map[string]string{"PROXMOX_VE_PASSWORD": "p"}},
		"a ticket":             {settings: spec.Proxmox{Endpoint: here}, env: map[string]string{"PROXMOX_VE_AUTH_TICKET": "t", "PROXMOX_VE_CSRF_PREVENTION_TOKEN": "c"}},
		"half a ticket":        {settings: spec.Proxmox{Endpoint: here}, env: map[string]string{"PROXMOX_VE_AUTH_TICKET": "t"}, want: []string{nobody}},
		"no token's form":      {settings: spec.Proxmox{Endpoint: here}, env: map[string]string{"PROXMOX_VE_API_TOKEN": "s3cr3t"}, want: []string{malformed}},
		"the settings' counts": {settings: spec.Proxmox{Endpoint: here, APIToken: secret(token)}, env: map[string]string{"PROXMOX_VE_API_TOKEN": "s3cr3t"}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			var l check.List
			rules.CheckAccess(c.settings, func(name string) string { return c.env[name] }, &l)
			var got []string
			for _, p := range l.Problems() {
				got = append(got, p.Path+": "+p.Message)
			}
			assert.Equal(t, c.want, got)
		})
	}
}
