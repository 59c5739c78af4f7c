// SPDX-License-Identifier: Apache-2.0
// Copyright the talos-proxmox authors.

package env

import (
	"os"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// pulumiHome returns an environment whose Pulumi has plugins.
func pulumiHome(t *testing.T, plugins ...string) Environment {
	t.Helper()

	home := t.TempDir()
	for _, p := range plugins {
		require.NoError(t, os.MkdirAll(filepath.Join(home, "plugins", p), 0o700))
	}

	return Environment{"PULUMI_HOME": home}
}

func TestWhoDoesTheProvidersWork(t *testing.T) {
	t.Parallel()

	genuine := []string{"resource-proxmoxve-v6.18.1", "resource-talos-v0.7.1", "resource-kubernetes-v4.33.0"}
	ours := []string{"command", "github", "gitlab", "kubernetes", "proxmoxve", "talos"}
	for name, c := range map[string]struct {
		choice  Choice
		plugins []string
		want    []string // the stand-ins
	}{
		"nothing is installed":               {Auto, nil, ours},
		"one plugin is of no use":            {Auto, genuine[:1], ours},
		"another version is of no use":       {Auto, append([]string{"resource-proxmoxve-v7.0.0"}, genuine[1:]...), ours},
		"all plugins but those for git":      {Auto, genuine, []string{"command", "github", "gitlab"}},
		"a git host's plugin is there too":   {Auto, append([]string{"resource-github-v6.12.1"}, genuine...), []string{"command", "gitlab"}},
		"the stand-ins, whatever there is":   {Standin, genuine, ours},
		"the genuine plugins, and no others": {Real, genuine, nil},
		"one by name":                        {"proxmoxve", genuine[:1], []string{"command", "github", "gitlab", "kubernetes", "talos"}},
		"two by name":                        {"talos,proxmoxve", genuine, []string{"command", "github", "gitlab", "kubernetes"}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			require.NoError(t, c.choice.Check())
			got, err := c.choice.standins(pulumiHome(t, c.plugins...))
			require.NoError(t, err)
			assert.ElementsMatch(t, c.want, got)
		})
	}

	e := pulumiHome(t, genuine[1])
	_, err := Real.standins(e)
	require.EqualError(t, err, "--providers real: kubernetes 4.33.0, proxmoxve 6.18.1 not installed in "+e["PULUMI_HOME"]+
		"; `pulumi plugin install resource NAME VERSION` does it")
	_, err = Choice("proxmoxve,talos").standins(e)
	require.EqualError(t, err, "--providers proxmoxve,talos: proxmoxve 6.18.1 not installed in "+e["PULUMI_HOME"]+
		"; `pulumi plugin install resource NAME VERSION` does it")
	require.EqualError(t, Choice("genuine").Check(), "must be auto, standin, real or the names of the genuine ones "+
		`(command,github,gitlab,kubernetes,proxmoxve,talos), got "genuine"`)
}

func TestStandinsThatDoNotStart(t *testing.T) {
	t.Parallel()

	_, err := pulumiHome(t).Attach(Standin, "false", nil)
	require.ErrorContains(t, err, "the stand-in providers did not start")
	_, err = pulumiHome(t).Attach(Standin, filepath.Join(t.TempDir(), "lab"), nil)
	require.ErrorContains(t, err, "starting the stand-in providers: ")
}
