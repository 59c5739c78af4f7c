// SPDX-License-Identifier: Apache-2.0
// Copyright the talos-proxmox authors.

package talos_test

import (
	"flag"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/cosi-project/runtime/pkg/safe"
	"github.com/siderolabs/talos/pkg/machinery/resources/runtime"

	"github.com/siderolabs/talos/pkg/machinery/client"
	"github.com/siderolabs/talos/pkg/machinery/config/machine"
	"github.com/siderolabs/talos/pkg/machinery/config/types/v1alpha1"
	"github.com/siderolabs/talos/pkg/machinery/role"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/talos-proxmox/talos-proxmox/lab/recorded"
	"github.com/talos-proxmox/talos-proxmox/lab/site/guest"
)

var update = flag.Bool("update", false, "rewrite the figures in docs/lab.md; the test then fails, so that somebody looks")

// recordedVersion runs what was recorded.
func recordedVersion(m *guest.Machine) {
	m.CD = iso(recorded.TalosVersion)
	m.CD.Schematic, m.CD.Extensions = "", nil
}

// unfinished returns a control plane whose etcd was not bootstrapped, and its cluster.
func (b *bench) unfinished() (*cluster, *vm) { return b.unfinishedOn("scsi0") }

// unfinishedOn returns the same with its disk in a slot.
func (b *bench) unfinishedOn(slot string) (*cluster, *vm) {
	c := b.cluster()

	return c, b.unfinishedIn(c, slot)
}

// unfinishedIn returns such a control plane of a cluster.
func (b *bench) unfinishedIn(c *cluster, slot string) *vm {
	v := b.vm(1, func(m *guest.Machine) {
		recordedVersion(m)
		m.Disks[0].Device = slot
	})
	v.on()
	b.apply(v, c.config(machine.TypeControlPlane, "n1", func(cfg *v1alpha1.Config) {
		cfg.MachineConfig.MachineNetwork, cfg.MachineConfig.MachineInstall.InstallImage = nil, installer+schematicA+":"+recorded.TalosVersion
		cfg.MachineConfig.MachineKubelet.KubeletExtraConfig = genuineKubelet()
		if slot == "virtio0" {
			cfg.MachineConfig.MachineInstall.InstallDisk = "/dev/vda"
		}
		cfg.MachineConfig.MachineTime = &v1alpha1.TimeConfig{TimeDisabled: &[]bool{true}[0]} // no recorded node reached a server
	}))
	b.eventually("the container runtime is up", func() error {
		s, err := safe.StateGetByID[*runtime.MachineStatus](b.ctx, c.client(v).COSI, runtime.MachineStatusID)
		if err == nil && !strings.Contains(fmt.Sprint(s.TypedSpec().Status.UnmetConditions), "{services etcd not running}") {
			err = fmt.Errorf("unmet: %v", s.TypedSpec().Status.UnmetConditions)
		}

		return err
	})

	return v
}

// states returns the states in which Talos was asked.
func states() map[string]func(*bench) *client.Client {
	withRole := func(r role.Role) func(*bench) *client.Client {
		return func(b *bench) *client.Client {
			c, v := b.unfinished()

			return c.as(v, r)
		}
	}
	bootstrapped := func(b *bench) *client.Client {
		c, v := b.unfinished()
		c.bootstrap(v)
		b.awaitServing(v)
		b.eventually("the node is ready", func() error {
			s, err := safe.StateGetByID[*runtime.MachineStatus](b.ctx, c.client(v).COSI, runtime.MachineStatusID)
			if err == nil && !s.TypedSpec().Status.Ready {
				err = fmt.Errorf("unmet: %v", s.TypedSpec().Status.UnmetConditions)
			}

			return err
		})

		return c.client(v)
	}

	return map[string]func(*bench) *client.Client{
		"maintenance": func(b *bench) *client.Client {
			v := b.vm(1, func(m *guest.Machine) {
				recordedVersion(m)
				d := m.Disks[0]
				d.Device, d.Size, m.Disks = "virtio0", 12884901888, m.Disks[:1]
			})
			v.on()
			b.awaitStage(v, "maintenance")

			return b.insecure(v)
		},
		"controlplane": bootstrapped,
		"refusals": func(b *bench) *client.Client {
			c, v := b.unfinishedOn("virtio0")

			return c.client(v)
		},
		"worker": func(b *bench) *client.Client {
			c := b.cluster()
			vms := c.up(1)
			w := b.vm(2, recordedVersion)
			w.on()
			b.apply(w, c.config(machine.TypeWorker, "w1", func(cfg *v1alpha1.Config) {
				cfg.MachineConfig.MachineInstall.InstallImage = installer + schematicA + ":" + recorded.TalosVersion
			}))
			b.awaitServing(append(vms, w)...)

			return c.client(w)
		},
		"reader": withRole(role.Reader), "operator": withRole(role.Operator),
		"etcdbackup": withRole(role.EtcdBackup), "nonsense": withRole("os:nonsense"),
	}
}

// stateNames say what the states are.
var stateNames = map[string]string{
	"maintenance": "in maintenance mode", "controlplane": "a bootstrapped control plane", "refusals": "asked for what it refuses",
	"worker": "a worker", "reader": "asked by a reader", "operator": "asked by an operator",
	"etcdbackup": "asked by who backs etcd up", "nonsense": "asked by a role that is none",
}

// TestAnswersOfTalos asks a node of the lab what genuine Talos was asked, in the same state. An answer that is another
// has a reason in lab/recorded. With -genuine it is Talos itself that is asked, now.
func TestAnswersOfTalos(t *testing.T) {
	t.Parallel()
	answersOf, reasonsOf := recorded.Talos, recorded.Accepted
	if *genuine != "" {
		g := startGenuine(t)
		g.askEverything()
		answersOf, reasonsOf = g.answered(t), recorded.AcceptedInContainer
		t.Run("talosctl", g.compareTalosctl)
	}
	figures := make(map[string][2]int)
	for state, reach := range states() {
		t.Run(state, func(t *testing.T) {
			b := newBench(t)
			c := reach(b)
			answers, err := answersOf(state)
			require.NoError(t, err)
			accepted, err := reasonsOf(state)
			require.NoError(t, err)
			equal := 0
			for _, want := range answers {
				got := b.askLab(c, want.Call)
				why := recorded.Reason(accepted, want.Call)
				switch {
				case want.Equal(got) && (why == "" || *genuine != ""):
					equal++
				case why == "":
					assert.Fail(t, "another answer", "## %s\nwant %s\ngot  %s", want.Call, cut(want.Lines), cut(got))
				case *genuine != "":
					fmt.Printf("%s, %s: %s\n  Talos: %s\n  lab:   %s\n", state, want.Call, why, cut(want.Lines), cut(got))
				} // else it may be another, whatever it is today
			}
			figures[state] = [2]int{equal, len(answers)}
		})
	}
	switch {
	case *genuine != "":
		fmt.Print(figureTable(figures))
	case !t.Failed() && len(figures) == len(states()):
		assertFigures(t, figures)
	}
}

// askLab asks a node of the lab. After a bootstrap etcd runs before the next question, as it did when Talos was asked.
func (b *bench) askLab(c *client.Client, call string) []string {
	got := ask(b.ctx, c, call, askLimit)
	if call == "Bootstrap" && strings.HasPrefix(got[0], "OK") {
		b.eventually("etcd runs", func() error {
			_, err := c.EtcdStatus(b.ctx)

			return err
		})
	}

	return got
}

// cutAt is how much of a line is shown.
const cutAt = 400

// cut returns an answer for reading: without what differs from run to run, key material too, and not at full length.
func cut(lines []string) string {
	var out []string
	for _, l := range lines {
		l = recorded.Normalize(l)
		out = append(out, l[:min(len(l), cutAt)])
	}

	return strings.Join(out, "\n     ")
}

// assertFigures compares the table in docs/lab.md with what was compared.
func assertFigures(t *testing.T, figures map[string][2]int) {
	t.Helper()
	const begin, end = "<!-- compared with Talos -->\n", "<!-- end -->"
	path := filepath.Join("..", "..", "docs", "lab.md")
	page, err := os.ReadFile(path)
	require.NoError(t, err)
	before, rest, ok := strings.Cut(string(page), begin)
	require.True(t, ok)
	_, after, ok := strings.Cut(rest, end)
	require.True(t, ok)

	table := figureTable(figures)
	want := before + begin + table + end + after
	if want == string(page) {
		return
	}
	if *update {
		require.NoError(t, os.WriteFile(path, []byte(want), 0o600))
	}
	assert.Fail(t, "the figures in docs/lab.md are others", "%s\nrun `go test ./talos -run TestAnswersOfTalos -update` in lab", table)
}

// figureTable says of each state how many answers are equal.
func figureTable(figures map[string][2]int) string {
	var table strings.Builder
	table.WriteString("| Part | Compared with | In the state | Equal |\n|---|---|---|---|\n")
	var sum [2]int
	for _, state := range slices.Sorted(maps.Keys(figures)) {
		f := figures[state]
		sum[0], sum[1] = sum[0]+f[0], sum[1]+f[1]
		fmt.Fprintf(&table, "| Talos's API | Talos %s | %s | %d of %d |\n", recorded.TalosVersion, stateNames[state], f[0], f[1])
	}
	fmt.Fprintf(&table, "| Talos's API | Talos %s | all | %d of %d |\n", recorded.TalosVersion, sum[0], sum[1])

	return table.String()
}
