// SPDX-License-Identifier: Apache-2.0
// Copyright the talos-proxmox authors.

package newstack_test

import (
	"bytes"
	"os"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/talos-proxmox/talos-proxmox/cmd/tpx/internal/newstack"
	"github.com/talos-proxmox/talos-proxmox/cmd/tpx/internal/pulumi"
	"github.com/talos-proxmox/talos-proxmox/cmd/tpx/internal/stackfile"
)

func TestWhatIsProposedPasses(t *testing.T) {
	t.Parallel()
	project := pulumi.Project{Dir: t.TempDir(), Name: "mine"}
	cli := pulumi.CLI{Dir: project.Dir, Stack: "home"}
	var a newstack.Answers
	var asked bytes.Buffer
	require.NoError(t, a.Ask("home", strings.NewReader(strings.Repeat("\n", 12)), &asked))
	path, err := newstack.Write(project, cli, a)
	require.NoError(t, err)
	assert.Equal(t, project.StackFile("home"), path)

	s, _, err := stackfile.Load(t.Context(), project, cli)
	require.NoError(t, err)
	require.Len(t, s.Nodes, 3)
	assert.Equal(t, "192.168.1.43", s.Nodes[2].Address().String())
	assert.Equal(t, "192.168.1.40", *s.Cluster.VIP)

	_, err = newstack.Write(project, cli, a)
	assert.ErrorIs(t, err, os.ErrExist, "a file that is there stays")
}

func TestAnswersAreAskedAgain(t *testing.T) {
	t.Parallel()
	a := newstack.Answers{Name: "blue", Endpoint: "https://10.0.0.2:8006", Host: "pve1", Datastore: "ceph", Bridge: "vmbr1", Git: "https://git.example.com/a.git"}
	var asked bytes.Buffer
	answers := "7\n8\n10.0.0.x\n10.0.0.1/24\n10.0.0.254\n10.0.0.3\n2\n1\n3\n500\n"
	require.NoError(t, a.Ask("dev", strings.NewReader(answers), &asked))
	assert.Contains(t, asked.String(), `"7" is none of 8, 9`)
	assert.Contains(t, asked.String(), `"10.0.0.x" is no address with prefix length`)
	assert.NotContains(t, asked.String(), "Name of the cluster", "what is given is not asked")

	project := pulumi.Project{Dir: t.TempDir(), Name: "mine"}
	cli := pulumi.CLI{Dir: project.Dir, Stack: "dev"}
	_, err := newstack.Write(project, cli, a)
	require.NoError(t, err)
	s, _, err := stackfile.Load(t.Context(), project, cli)
	require.NoError(t, err)
	var addresses []string
	for _, n := range s.Nodes {
		addresses = append(addresses, n.Name+" "+n.Address().String())
	}
	assert.Equal(t, []string{"cp-1 10.0.0.1", "work-1 10.0.0.4", "work-2 10.0.0.5", "work-3 10.0.0.6"}, addresses, "the host and the VIP are left out")

	var none newstack.Answers
	assert.ErrorContains(t, none.Ask("x", strings.NewReader("\n"), &asked), "the answers ended: nothing is written")
	bad := newstack.Answers{First: "nowhere"}
	assert.ErrorContains(t, bad.Ask("x", nil, &asked), `"nowhere" is no address with prefix length`)
}
