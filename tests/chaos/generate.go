// SPDX-License-Identifier: Apache-2.0
// Copyright the talos-proxmox authors.

package chaos

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"strconv"
)

// Generate returns the script of a seed with about so many steps. What is done by hand never takes more
// control planes away at a time than etcd can spare: losing quorum by hand is nobody's fault but the
// operator's.
func Generate(seed uint64, steps int) Script {
	g := &generator{random: rand.New(rand.NewPCG(seed, seed)), next: 1}
	shapes := [][2]int{{1, 0}, {1, 1}, {3, 0}, {3, 2}, {3, 1}, {5, 0}}
	shape := shapes[g.random.IntN(len(shapes))]
	var script Script
	for range shape[0] {
		script.Nodes = append(script.Nodes, g.name("cp"))
	}
	for range shape[1] {
		script.Nodes = append(script.Nodes, g.name("worker"))
	}
	g.model = NewModel(script.Nodes)
	for len(script.Steps) < steps {
		script.Steps = append(script.Steps, g.round()...)
	}

	return script
}

type generator struct {
	random *rand.Rand
	model  Model
	next   int // number of the next node
	talos  int
}

func (g *generator) name(kind string) string {
	g.next++

	return kind + "-" + strconv.Itoa(g.next-1)
}

func (g *generator) pick(from []string) string { return from[g.random.IntN(len(from))] }

// round returns something that happens, and the commands with which an operator answers it.
func (g *generator) round() []Step {
	switch g.random.IntN(5) {
	case 0:
		return append(g.hurt(), g.answer("--refresh")...)
	case 1:
		return append(append([]Step{g.fault()}, g.edit()), append(g.answer(), Step{Verb: Clear})...)
	case 2:
		killed := Step{Verb: Run, Args: []string{"up", fmt.Sprintf("kill=%d", 1+g.random.IntN(40))}}

		return []Step{g.edit(), killed, {Verb: Run, Args: []string{"up", "--refresh"}}}
	case 3:
		return append([]Step{{Verb: Run, Args: []string{g.pick([]string{"refresh", "preview"})}}, g.edit()}, g.answer()...)
	default:
		return append([]Step{g.edit()}, g.answer()...)
	}
}

// answer returns the command that brings an edit to the cluster, with other flags now and then.
func (g *generator) answer(flags ...string) []Step {
	switch g.random.IntN(8) {
	case 0:
		flags = append(flags, "--parallel=1")
	case 1:
		flags = append(flags, "--continue-on-error")
	case 2:
		if !slices.Contains(flags, "--refresh") {
			flags = append(flags, "--refresh")
		}
	case 3, 4:
		// Looks at a part first: it may fail, and must do no harm.
		node := g.pick(g.model.Nodes)
		flag := g.pick([]string{"--target=**::small-", "--exclude=**::small-"}) +
			g.pick([]string{node + "-vm", node + "-version", "members", "machines", "kubernetes"})

		return []Step{{Verb: Run, Args: []string{"up", flag}}, {Verb: Run, Args: append([]string{"up"}, flags...)}}
	}

	return []Step{{Verb: Run, Args: append([]string{"up"}, flags...)}}
}

// edit returns an edit of the stack file that the rules allow.
func (g *generator) edit() Step {
	var step Step
	switch g.random.IntN(8) {
	case 4:
		step = Step{Verb: Edit, Args: []string{"gitops=" + g.pick([]string{"flux", "none"})}}
	case 5:
		step = Step{Verb: Edit, Args: []string{"move=" + g.pick(g.model.Nodes)}}
	case 0:
		step = Step{Verb: Edit, Args: []string{fmt.Sprintf("memory=%d", 2048+256*g.random.IntN(8))}}
	case 1:
		g.talos = 1 - g.talos
		step = Step{Verb: Edit, Args: []string{"talos=" + []string{"v1.12.4", "v1.12.5"}[g.talos]}}
	case 2:
		step = g.scale()
	case 3:
		step = Step{Verb: Edit, Args: []string{"replace=" + g.pick(g.model.Nodes)}}
		if len(g.model.ControlPlanes()) < 3 {
			step = Step{Verb: Edit, Args: []string{fmt.Sprintf("label=%d", g.random.IntN(1000))}}
		}
	default:
		step = Step{Verb: Edit, Args: []string{fmt.Sprintf("label=%d", g.random.IntN(1000))}}
	}
	if model, err := g.model.Apply(step); err == nil {
		g.model = model
	}

	return step
}

// scale adds or removes workers, one control plane for another, or two control planes.
func (g *generator) scale() Step {
	planes := g.model.ControlPlanes()
	workers := slices.DeleteFunc(slices.Clone(g.model.Nodes), isControlPlane)
	switch choice := g.random.IntN(4); {
	case choice == 0 && len(workers) > 0:
		return Step{Verb: Edit, Args: []string{"remove=" + g.pick(workers)}}
	case choice == 1 && len(planes) >= 3:
		return Step{Verb: Edit, Args: []string{"remove=" + g.pick(planes), "add=" + g.name("cp")}}
	case choice == 2 && len(planes) == 1:
		return Step{Verb: Edit, Args: []string{"add=" + g.name("cp"), "add=" + g.name("cp")}}
	case choice == 3 && len(planes) >= 5:
		return Step{Verb: Edit, Args: []string{"remove=" + planes[0], "remove=" + planes[1]}}
	case len(g.model.Nodes) < 7:
		return Step{Verb: Edit, Args: []string{"add=" + g.name("worker")}}
	default:
		return Step{Verb: Edit, Args: []string{fmt.Sprintf("label=%d", g.random.IntN(1000))}}
	}
}

// hurt does something to one node by hand. A control plane's VM is stopped or deleted only where etcd can
// spare it.
func (g *generator) hurt() []Step {
	node := g.pick(g.model.Nodes)
	ways := []string{"reset", "cordon", "stop", "migrate", "disk", "forget", "delete", "wipe"}
	if isControlPlane(node) && len(g.model.ControlPlanes()) < 3 {
		ways = ways[:6]
	}
	way := g.pick(ways)
	switch way {
	case "forget":
		name := "small-" + g.pick([]string{"ready", "edit", "kubernetes-edit", "members", node + "-version"})

		return []Step{{Verb: Hand, Args: []string{way, name}}}
	case "wipe":
		// Nothing of the stack has changed: the operator says that the node is to be made anew.
		rebuild := Step{Verb: Edit, Args: []string{"replace=" + node, "force=" + node}}
		if model, err := g.model.Apply(rebuild); err == nil {
			g.model = model
		}

		return []Step{{Verb: Hand, Args: []string{way, node}}, rebuild}
	}
	steps := []Step{{Verb: Hand, Args: []string{way, node}}}
	if way == "cordon" {
		steps = append(steps, Step{Verb: Run, Args: []string{"up"}}, Step{Verb: Hand, Args: []string{"uncordon", node}})
	}

	return steps
}

// fault orders a fault that a command meets.
func (g *generator) fault() Step {
	return Step{Verb: Fault, Args: [][]string{
		{"task-error", "type=qmreboot", "count=1"},
		{"task-error", "type=qmcreate", "count=1"},
		{"api-error", "api=talos", "call=ApplyConfiguration", "count=1"},
		{"api-error", "api=talos", "call=EtcdMemberList", "count=3"},
		{"api-error", "api=proxmox", "call=/nodes/*/qemu/*/config", "method=GET", "count=2"},
		{"api-error", "api=talos", "call=*", "count=10"},
		{"api-timeout", "api=talos", "call=Version", "count=2"},
	}[g.random.IntN(7)]}
}
