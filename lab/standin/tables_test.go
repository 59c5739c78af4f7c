// SPDX-License-Identifier: Apache-2.0
// Copyright the talos-proxmox authors.

package standin_test

import (
	"reflect"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/talos-proxmox/talos-proxmox/lab/standin/bridge"
	"github.com/talos-proxmox/talos-proxmox/lab/standin/githost"
	"github.com/talos-proxmox/talos-proxmox/lab/standin/proxmoxve"
	"github.com/talos-proxmox/talos-proxmox/lab/standin/talos"
)

// Everything that the stand-ins say about properties must be about properties that the SDKs have.
func TestTablesNameWhatTheSDKsHave(t *testing.T) {
	t.Parallel()

	for _, pkg := range []*bridge.Package{
		proxmoxve.Package(), talos.Package(), githost.GitHub(), githost.GitLab(), githost.Command(),
	} {
		t.Run(pkg.Name, func(t *testing.T) {
			t.Parallel()
			require.NoError(t, pkg.Verify())

			for token, r := range pkg.Resources {
				args, err := bridge.InputsOf(r.Args)
				require.NoError(t, err, token)
				state, err := bridge.TypeOf(reflect.TypeOf(r.State))
				require.NoError(t, err, token)
				assert.NotEmpty(t, args.Fields, token)
				assert.NotEmpty(t, state.Fields, token)

				for _, f := range args.Fields {
					if f.Required {
						_, ok := state.Field(f.Name)
						assert.True(t, ok, "%s: required input %q is no output", token, f.Name)
					}
				}
			}

			for token, f := range pkg.Functions {
				for what, v := range map[string]any{"arguments": f.Args, "result": f.Result} {
					if v == nil {
						continue
					}
					typ, err := bridge.TypeOf(reflect.TypeOf(v))
					require.NoError(t, err, token)
					assert.NotEmpty(t, typ.Fields, "%s: %s", token, what)
				}
			}
		})
	}
}
