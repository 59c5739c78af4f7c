// SPDX-License-Identifier: Apache-2.0
// Copyright the talos-proxmox authors.

package tests_test

import (
	"encoding/json"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// scenario describes something that goes wrong during an up, and how it is mended.
type scenario struct {
	name string
	// what goes wrong, in words, and the faults that make it so: the arguments of `lab fault add`.
	what   string
	faults []string
	// doing is the up that it hits, in words, and its edit of the stack file.
	doing string
	edits []string
	// wrong are edits that are mistakes: they are taken back with the faults.
	wrong []string
	// says is what the user reads.
	says []string
	// survives is set where the up succeeds all the same.
	survives bool
	// again are options of the up that mends it.
	again []string
}

// faulty runs a site whose ups meet faults.
type faulty struct {
	*site
	nodes []string // that the stack has
	edits []string // of all scenarios so far, in order
	tight []string // edits that make waits end soon, for ups that fail
	sum   string   // the boot image's checksum, once an up has told it
}

const faultStack = "fault"

// newFaulty returns a site with a stack of some of the nodes in testdata/faults.
func newFaulty(t *testing.T, nodes ...string) *faulty {
	t.Helper()
	s := newSite(t)
	content, err := os.ReadFile(filepath.Join(s.root, "tests", "testdata", "faults", "stack.yaml"))
	require.NoError(t, err)
	var kept []string
	for line := range strings.Lines(string(content)) {
		isNode := strings.HasPrefix(line, "    ctrl-")
		name, _, _ := strings.Cut(strings.TrimSpace(line), ":")
		if !isNode || slices.Contains(nodes, name) {
			kept = append(kept, line)
		}
	}
	require.NoError(t, os.WriteFile(filepath.Join(s.project, "faults.yaml"), []byte(strings.Join(kept, "")), 0o600))
	s.create(faultStack)

	return &faulty{site: s, nodes: nodes, tight: []string{
		"readyTimeout: 5m", "readyTimeout: 45s", "upgradeTimeout: 5m", "upgradeTimeout: 1m",
	}}
}

// file returns the stack file with the edits so far, and more.
func (f *faulty) file(more ...string) string {
	f.t.Helper()

	return f.stackFile("faults.yaml", append(append([]string(nil), f.edits...), more...)...)
}

func (f *faulty) up(file string, options ...string) result {
	f.t.Helper()

	return f.try(append([]string{
		"pulumi", "up", "--stack", faultStack, "--config-file", file, "--yes", "--skip-preview", "--non-interactive",
	}, options...)...)
}

// mustUp runs an up that has to succeed and leave nothing to do.
func (f *faulty) mustUp(options ...string) {
	f.t.Helper()
	r := f.up(f.file(), options...)
	require.Zero(f.t, r.code, r.all())
	f.must("pulumi", "preview", "--stack", faultStack, "--config-file", f.file(), "--expect-no-changes", "--non-interactive")
}

// siteState holds what an up leaves in the site, without what differs from run to run.
type siteState struct {
	Hosts []struct {
		Name  string   `json:"name"`
		VMs   int      `json:"vms"`
		Files []string `json:"files"`
	} `json:"hosts"`
	VMs []struct {
		VMID    int    `json:"vmid"`
		Name    string `json:"name"`
		Host    string `json:"host"`
		Status  string `json:"status"`
		State   string `json:"state"`
		Pending bool   `json:"pending"`
	} `json:"vms"`
	Nodes []struct {
		Hostname string `json:"hostname"`
		Address  string `json:"address"`
		Stage    string `json:"stage"`
		Talos    string `json:"talos"`
		Role     string `json:"role"`
		Cluster  string `json:"cluster"`
		Problem  string `json:"problem"`
	} `json:"nodes"`
	Clusters []struct {
		Name       string   `json:"name"`
		Kubernetes string   `json:"kubernetes"`
		Endpoint   string   `json:"endpoint"`
		Healthy    bool     `json:"healthy"`
		Members    []string `json:"members"`
	} `json:"clusters"`
}

func (f *faulty) state() siteState {
	f.t.Helper()
	r := f.lab("status", "--json")
	require.Zero(f.t, r.code, r.all())
	var st siteState
	// A newer Talos is the same site.
	text := strings.ReplaceAll(r.stdout, newerTalos, oldTalos)
	require.NoError(f.t, json.Unmarshal([]byte(text), &st), r.stdout)

	return st
}

// gotSum is how Proxmox VE tells a file's checksum that is not the one that was wanted.
var gotSum = regexp.MustCompile(`checksum mismatch: got '([0-9a-f]{64})'`)

// meets runs a scenario: the fault, the up that it hits, what the user reads, and the up that mends it.
// It returns how long that up took, with an empty preview after it.
func (f *faulty) meets(sc scenario) time.Duration {
	f.t.Helper()
	for _, fault := range sc.faults {
		r := f.lab(append([]string{"fault", "add"}, strings.Fields(fault)...)...)
		require.Zero(f.t, r.code, r.all())
	}
	f.edits = append(f.edits, sc.edits...)
	wrong := slices.Clone(sc.wrong)
	for i := range wrong {
		wrong[i] = strings.ReplaceAll(wrong[i], rightSum, f.sum)
	}
	r := f.up(f.file(slices.Concat(f.tight, wrong)...))
	if told := gotSum.FindStringSubmatch(r.all()); told != nil {
		f.sum = told[1]
	}
	for _, text := range sc.says {
		assert.Contains(f.t, r.all(), text)
	}
	if sc.survives {
		require.Zero(f.t, r.code, r.all())
	} else {
		require.NotZero(f.t, r.code, r.all())
	}

	cleared := f.lab("fault", "clear")
	require.Zero(f.t, cleared.code, cleared.all())
	if f.t.Failed() || recording() {
		f.t.Logf("what the user read:\n%s", r.all())
	}
	began := time.Now()
	f.mustUp(sc.again...)

	return time.Since(began)
}

// TestFaultsOfHosts runs the short form: a datastore that is full at the first up, and a node that does
// not return from the reboot that an edit asks for.
func TestFaultsOfHosts(t *testing.T) {
	t.Parallel()

	f := newFaulty(t, "ctrl-00")
	for _, sc := range []scenario{fullDatastore, noReturnFromReboot} {
		t.Run(sc.name, func(t *testing.T) {
			f.t = t
			f.meets(sc)
			assert.True(t, f.state().Clusters[0].Healthy)
		})
		f.t = t
	}
}

// sampled returns a few of the scenarios, chosen by the number in SAMPLE, or all where there is time.
func sampled[T any](all []T) []T {
	if os.Getenv("E2E") == "full" {
		return all
	}
	const few = 2

	first, err := strconv.Atoi(os.Getenv("SAMPLE"))
	if err != nil {
		first = 3 // none is asked for
	}
	var chosen []T
	for i := range few {
		chosen = append(chosen, all[(first+i*len(all)/few)%len(all)])
	}

	return chosen
}

// beginning returns the first scenarios, or all where there is time.
func beginning[T any](all []T) []T {
	if os.Getenv("E2E") == "full" {
		return all
	}
	const few = 2

	return all[:few]
}

// TestFaultsWhileACreationRuns meets each fault with a first up, and compares what an up after it
// leaves with what an undisturbed one does.
//
// All of them run with `make e2e` and when the page is recorded, a sample of them with every submission.
func TestFaultsWhileACreationRuns(t *testing.T) {
	t.Parallel()
	f := newFaulty(t, "ctrl-00")
	nothing := f.snapshot()
	f.mustUp()
	want := f.state()

	for _, sc := range sampled(creations()) {
		t.Run(sc.name, func(t *testing.T) {
			f.t = t
			f.restore(nothing)
			took := f.meets(sc)
			assert.Equal(t, want, f.state(), "as an undisturbed up leaves it")
			record(t, sc, took)
		})
		f.t = t
	}
}

// TestFaultsOfALivingCluster meets each fault with an edit of a cluster of three, and compares what an
// up after it leaves with what the edits leave on an undisturbed one.
//
// Each edit builds on the one before; the first ones run with every submission.
func TestFaultsOfALivingCluster(t *testing.T) {
	t.Parallel()
	f := newFaulty(t, "ctrl-00", "ctrl-01", "ctrl-02")
	f.mustUp()
	want := f.state()

	for _, sc := range beginning(edits()) {
		t.Run(sc.name, func(t *testing.T) {
			f.t = t
			started := time.Now()
			took := f.meets(sc)
			assert.Equal(t, want, f.state(), "as an undisturbed cluster is")
			assert.Empty(t, f.trace(started).of("talos.bootstrap"), "nothing is bootstrapped twice")
			record(t, sc, took)
		})
		f.t = t
	}
}
