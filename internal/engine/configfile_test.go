// SPDX-License-Identifier: Apache-2.0
// Copyright the talos-proxmox authors.

package engine

import (
	"os"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

const address = "127.0.0.1:4711"

// above returns the processes above a program, the nearest first, each by its command line.
func above(lines ...string) func(int) (process, bool) {
	return func(pid int) (process, bool) {
		at := len(lines) + 1 - pid // the nearest has the highest number
		if at < 0 || at >= len(lines) {
			return process{}, false
		}

		return process{parent: pid - 1, args: strings.Fields(lines[at]), dir: "/work"}, true
	}
}

func TestConfigFileIsTheOneOnPulumisCommandLine(t *testing.T) {
	t.Parallel()
	const host = "/opt/pulumi-language-go -buildTarget=/p " + address
	for name, c := range map[string]struct {
		lines    []string
		variable string
		want     string
		known    bool
	}{
		"none named":        {[]string{host, "pulumi up --yes", "bash"}, "", "", true},
		"two words":         {[]string{host, "/bin/pulumi preview --config-file a/b.yaml --diff", "bash"}, "", "/work/a/b.yaml", true},
		"one word":          {[]string{host, "pulumi up --config-file=/c.yaml"}, "", "/c.yaml", true},
		"the last one":      {[]string{host, "pulumi up --config-file a.yaml --config-file b.yaml"}, "", "/work/b.yaml", true},
		"by the variable":   {[]string{host, "pulumi up"}, "v.yaml", "/work/v.yaml", true},
		"flag and variable": {[]string{host, "pulumi up --config-file a.yaml"}, "v.yaml", "/work/a.yaml", true},
		"a wrapped host":    {[]string{"go-run", host, "sh wrapper.sh " + address, "pulumi up --config-file a.yaml"}, "", "/work/a.yaml", true},
		"another engine":    {[]string{host, "automation --config-file a.yaml", "pulumi up"}, "", "", false},
		"no host":           {[]string{"bash", "pulumi up --config-file a.yaml"}, "", "", false},
		"host without any":  {[]string{host}, "", "", false},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			lookup := func(name string) string {
				return map[string]string{addressVariable: address, configFileVariable: c.variable}[name]
			}
			file, known := configFile(lookup, len(c.lines)+1, above(c.lines...))
			assert.Equal(t, c.known, known)
			assert.Equal(t, c.want, file)
		})
	}
}

func TestConfigFileIsUnknownWithoutAnEngine(t *testing.T) {
	t.Parallel()
	_, known := ConfigFile(func(string) string { return "" })
	assert.False(t, known)
}

func TestInspectReadsARunningProcess(t *testing.T) {
	t.Parallel()
	p, ok := inspect(os.Getpid())
	require.True(t, ok)
	dir, err := os.Getwd()
	require.NoError(t, err)
	assert.Equal(t, os.Getppid(), p.parent)
	assert.Equal(t, dir, p.dir)
	assert.Equal(t, os.Args, p.args)
}
