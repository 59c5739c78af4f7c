// SPDX-License-Identifier: Apache-2.0
// Copyright the talos-proxmox authors.

// Package makespan works out how long the creation of a cluster takes on real machines, from the order in which the
// engine registered its resources and the times that single steps take. No clock is read, so that the figures are the
// same on every machine.
package makespan

import (
	"cmp"
	"encoding/json"
	"fmt"
	"hash/fnv"
	"slices"
	"strings"
	"time"
)

// Times holds what the steps take.
type Times struct {
	Download, CreateVM, Boot, Install, Join, Release time.Duration
	// Jitter is the share by which a step of one node may take more or less.
	Jitter float64
	// Parallel is how many steps the engine takes at a time; 0 for as many as there are.
	Parallel int
}

// Lifelike returns what the steps take on real machines.
func Lifelike() Times {
	return Times{
		Download: 60 * time.Second, CreateVM: 20 * time.Second, Boot: 30 * time.Second, Install: 60 * time.Second,
		Join: 30 * time.Second, Release: 30 * time.Second, Jitter: 0.2,
	}
}

// short is what a step takes that waits for nothing.
const short = 100 * time.Millisecond

// Resource describes a resource of a stack's state.
type Resource struct {
	URN          string   `json:"urn"`
	Type         string   `json:"type"`
	Parent       string   `json:"parent"`
	Dependencies []string `json:"dependencies"`
}

// Name returns the last part of the URN.
func (r Resource) Name() string { return r.URN[strings.LastIndex(r.URN, "::")+2:] }

// ReadState returns the resources in what `pulumi stack export` prints.
func ReadState(export string) ([]Resource, error) {
	var state struct {
		Deployment struct {
			Resources []Resource `json:"resources"`
		} `json:"deployment"`
	}
	if err := json.Unmarshal([]byte(export), &state); err != nil {
		return nil, fmt.Errorf("reading the state: %w", err)
	}

	return state.Deployment.Resources, nil
}

// Plan describes how a creation goes.
type Plan struct {
	// Took is how long it takes in the order that the engine was told, and Chain how long the longest chain of steps
	// takes each of which needs the one before it.
	Took, Chain time.Duration
	// Allowed is how long it takes at least with as many steps at a time as the engine takes: all machines have to be
	// made, and the last one has to boot, install and join.
	Allowed time.Duration
	// Steps are those on the way to the end of the creation, each with what it waited for, the first one first.
	Steps []Step
}

// Step describes a step of the engine.
type Step struct {
	Name       string
	Start, End time.Duration
}

// Ratio returns how much longer the creation takes than it must.
func (p Plan) Ratio() float64 { return p.Took.Seconds() / p.Chain.Seconds() }

// RatioAllowed is how much longer the creation takes than the engine's parallelism allows.
func (p Plan) RatioAllowed() float64 { return p.Took.Seconds() / p.Allowed.Seconds() }

// String names the steps on the way.
func (p Plan) String() string {
	var b strings.Builder
	fmt.Fprintf(&b, "%s, of which %s are necessary: %.2f\n", p.Took.Round(time.Second), p.Chain.Round(time.Second), p.Ratio())
	if p.Allowed > p.Chain {
		fmt.Fprintf(&b, "  with as many steps at a time as the engine takes here it takes at least %s: %.2f\n",
			p.Allowed.Round(time.Second), p.RatioAllowed())
	}
	for _, s := range p.Steps {
		fmt.Fprintf(&b, "  %6s … %6s  %s\n", s.Start.Round(time.Second), s.End.Round(time.Second), s.Name)
	}

	return b.String()
}

// site plays what happens on the nodes beside the engine's steps.
type site struct {
	times Times
	nodes []string
	first string
	// booted, installed and joined are when the nodes are, as far as that is known.
	booted, installed map[string]time.Duration
	api               time.Duration
}

// of returns what a step takes on a node.
func (t Times) of(base time.Duration, what, node string) time.Duration {
	h := fnv.New32a()
	_, _ = h.Write([]byte(what + "/" + node)) // never fails
	share := float64(h.Sum32()%2001)/1000 - 1

	return base + time.Duration(share*t.Jitter*float64(base))
}

// Of returns how the creation of a cluster goes whose state that is. first is the control plane that is bootstrapped.
func Of(resources []Resource, cluster, first string, t Times) Plan {
	s := &site{times: t, first: first, booted: map[string]time.Duration{}, installed: map[string]time.Duration{}}
	for _, r := range resources {
		if node, ok := strings.CutPrefix(r.Name(), cluster+"-"); ok && strings.HasSuffix(r.Type, "ConfigurationApply") {
			s.nodes = append(s.nodes, node)
		}
	}
	e := &engine{site: s, cluster: cluster, ends: map[string]time.Duration{}, why: map[string]string{}}
	e.run(resources)

	hasRelease := slices.ContainsFunc(resources, func(r Resource) bool { return strings.Contains(r.Type, "Release") })

	chain := s.chain(hasRelease)

	return Plan{Took: e.last(), Chain: chain, Allowed: max(chain, s.allowed()), Steps: e.way()}
}

// allowed returns how long the engine needs at least that takes so many steps at a time.
func (s *site) allowed() time.Duration {
	t := s.times
	if t.Parallel == 0 || len(s.nodes) == 0 {
		return 0
	}
	var machines time.Duration
	last := time.Duration(-1)
	for _, node := range s.nodes {
		machines += t.of(t.CreateVM, "create", node)
		rest := t.of(t.Boot, "boot", node) + t.of(t.Install, "install", node) + t.of(t.Join, "join", node)
		if last < 0 || rest < last {
			last = rest
		}
	}

	return t.Download + machines/time.Duration(t.Parallel) + last
}

// chain returns the longest chain of necessary steps, the installation of a chart among them where there is one.
func (s *site) chain(chart bool) time.Duration {
	t := s.times
	installed := func(node string) time.Duration {
		return t.Download + t.of(t.CreateVM, "create", node) + t.of(t.Boot, "boot", node) + short + t.of(t.Install, "install", node)
	}
	api := installed(s.first) + t.of(t.Join, "join", s.first)
	longest := api
	if chart {
		longest += t.Release
	}
	for _, node := range s.nodes {
		if node != s.first {
			longest = max(longest, max(installed(node), api)+t.of(t.Join, "join", node))
		}
	}

	return longest
}

// engine takes the steps.
type engine struct {
	*site

	cluster string
	ends    map[string]time.Duration
	steps   []Step
	// why is the step that another one waited for.
	why map[string]string
}

// run takes every step when those are done that it depends on and the engine has a hand free, in the order of the state.
func (e *engine) run(resources []Resource) {
	hands := make([]time.Duration, max(e.times.Parallel, 0))
	waiting := slices.Clone(resources)
	known := map[string]bool{}
	for _, r := range resources {
		known[r.URN] = true
	}
	for len(waiting) > 0 {
		at, start := e.next(waiting, known)
		r := waiting[at]
		waiting = slices.Delete(waiting, at, at+1)
		if len(hands) > 0 {
			free := slices.Index(hands, slices.Min(hands))
			start = max(start, hands[free])
			hands[free] = e.take(r, start)
		} else {
			e.take(r, start)
		}
	}
}

// next returns the step that can start first.
func (e *engine) next(waiting []Resource, known map[string]bool) (at int, start time.Duration) {
	at = -1
	for i, r := range waiting {
		ready, open := time.Duration(0), false
		for _, before := range r.Dependencies {
			end, done := e.ends[before]
			open = open || known[before] && !done
			ready = max(ready, end)
		}
		if !open && (at < 0 || ready < start) {
			at, start = i, ready
		}
	}

	return at, start
}

// take takes a step and returns when it ends.
func (e *engine) take(r Resource, start time.Duration) time.Duration {
	end := e.end(r, start)
	e.ends[r.URN] = end
	e.steps = append(e.steps, Step{Name: r.Name(), Start: start, End: end})
	latest := time.Duration(-1)
	for _, before := range r.Dependencies {
		if e.ends[before] > latest {
			latest, e.why[r.Name()] = e.ends[before], before[strings.LastIndex(before, "::")+2:]
		}
	}

	return end
}

// end returns when a step ends, with what it waits for on the nodes, and what it starts there.
func (e *engine) end(r Resource, start time.Duration) time.Duration {
	t, name := e.times, strings.TrimPrefix(r.Name(), e.cluster+"-")
	switch {
	case strings.Contains(r.Type, "Download"):
		return start + t.Download
	case strings.HasSuffix(r.Type, "VirtualMachine"):
		node := strings.TrimSuffix(name, "-vm")
		end := start + t.of(t.CreateVM, "create", node)
		e.booted[node] = end + t.of(t.Boot, "boot", node)

		return end
	case strings.HasSuffix(r.Type, "ConfigurationApply"):
		end := max(start, e.booted[name]) + short
		e.installed[name] = end + t.of(t.Install, "install", name)

		return end
	case name == "bootstrap":
		end := max(start, e.installed[e.first]) + short
		e.api = end + t.of(t.Join, "join", e.first)

		return end
	case name == "gitops":
		return max(start, e.api) + short
	case name == "ready":
		end := max(start, e.api)
		for _, node := range e.nodes {
			if node != e.first { // which has joined when the API answers
				end = max(end, max(e.installed[node], e.api)+t.of(t.Join, "join", node))
			}
		}

		return end + short
	case strings.Contains(r.Type, "Release"):
		return start + t.Release
	default:
		return start + short
	}
}

func (e *engine) last() time.Duration {
	return slices.MaxFunc(e.steps, func(a, b Step) int { return cmp.Compare(a.End, b.End) }).End
}

// way returns the steps that led to the end, one after the other, those that took no time left out.
func (e *engine) way() []Step {
	by := map[string]Step{}
	for _, s := range e.steps {
		by[s.Name] = s
	}
	var way []Step
	at := slices.MaxFunc(e.steps, func(a, b Step) int { return cmp.Compare(a.End, b.End) })
	for {
		if at.End-at.Start > short {
			way = append(way, at)
		}
		before, ok := by[e.why[at.Name]]
		if !ok {
			slices.Reverse(way)

			return way
		}
		at = before
	}
}
