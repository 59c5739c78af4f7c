// SPDX-License-Identifier: Apache-2.0
// Copyright the talos-proxmox authors.

package fault_test

import (
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/talos-proxmox/talos-proxmox/lab/fault"
)

// told records, as a trace, what began and what ended.
type told struct{ began, ended []string }

func (t *told) Begin(op, object string, _ map[string]string) func(error) {
	t.began = append(t.began, op+" "+object)

	return func(error) { t.ended = append(t.ended, op+" "+object) }
}

func known(selector string) ([]string, bool) {
	switch selector {
	case "op":
		return []string{"talos.apply", "talos.bootstrap"}, true
	case "host":
		return []string{"alpha", "charlie"}, true
	}

	return nil, false
}

func TestWhatDoesNotExistIsRefused(t *testing.T) {
	t.Parallel()

	for name, c := range map[string]struct {
		kind fault.Kind
		with map[string]string
		want string
	}{
		"a kind": {"kil", nil, `there is no fault "kil"; there are kill, host-down, datastore-full, `},
		"a key":  {fault.Kill, map[string]string{"when": "now"}, `kill: there is no "when"; there are op, nth, count`},
		"a target": {
			fault.Kill, map[string]string{"op": "talos.aply"},
			`kill: op: "talos.aply" fits none of talos.apply, talos.bootstrap; later=yes is for what does not exist yet`,
		},
		"a target that is needed": {
			fault.HostDown, nil, "host-down: host is required: the host's name",
		},
		"a target among a few": {
			fault.HostDown, map[string]string{"host": "delta"},
			`host-down: host: "delta" fits none of alpha, charlie; later=yes is for what does not exist yet`,
		},
		"a value": {
			fault.NodeLost, map[string]string{"node": "ctrl-00", "when": "soon"},
			`node-lost: when: must be one of now, before-apply, during-apply, after-apply, got "soon"`,
		},
		"numbers and durations": {
			fault.APISlow, map[string]string{"api": "proxmox", "by": "10", "nth": "x"},
			"api-slow: by: must be a duration as in 30s, got \"10\"\napi-slow: nth: must be a whole number above 0, got \"x\"",
		},
		"a status": {
			fault.APIError, map[string]string{"api": "proxmox", "status": "200"},
			`api-error: status: must be an HTTP status from 400 to 599, got "200"`,
		},
		"every problem at once": {
			fault.Kill, map[string]string{"nth": "0", "count": "often", "op": ""},
			"kill: count: must be a whole number above 0, got \"often\"\n" +
				"kill: nth: must be a whole number above 0, got \"0\"\n" +
				"kill: op: must not be empty",
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()

			s := fault.New(&told{}, known)
			_, err := s.Add(c.kind, c.with)
			require.ErrorContains(t, err, c.want)
			assert.Empty(t, s.List(), "nothing was added")
		})
	}
}

func TestWhatComesLaterMayBeNamed(t *testing.T) {
	t.Parallel()

	s := fault.New(&told{}, known)
	_, err := s.Add(fault.Kill, map[string]string{"op": "talos.new", "later": "yes"})
	require.NoError(t, err)
}

func TestAFaultStrikesWhomItSelectsAsOftenAsItWasTold(t *testing.T) {
	t.Parallel()

	trace := &told{}
	s := fault.New(trace, known)
	_, err := s.Add(fault.Kill, map[string]string{"op": "talos.*", "nth": "2", "count": "2"})
	require.NoError(t, err)

	var struck []int
	for i, op := range []string{"vm.run", "talos.apply", "vm.run", "talos.apply", "talos.bootstrap", "talos.apply"} {
		if _, yes := s.Strike(fault.Kill, "op "+op, fault.About{"op": {op}}); yes {
			struck = append(struck, i)
		}
	}
	assert.Equal(t, []int{3, 4}, struck, "from the second that fits, twice")
	assert.Equal(t, []string{"fault.kill op talos.apply", "fault.kill op talos.bootstrap"}, trace.began)

	list := s.List()
	require.Len(t, list, 1)
	assert.Equal(t, 2, list[0].Struck)
	assert.Equal(t, 4, list[0].Seen)
	assert.Equal(t, "kill count=2 nth=2 op=talos.*", list[0].String())
}

func TestRemovedFaultsAreOver(t *testing.T) {
	t.Parallel()

	s := fault.New(&told{}, known)
	one, err := s.Add(fault.Kill, nil)
	require.NoError(t, err)
	two, err := s.Add(fault.Kill, nil)
	require.NoError(t, err)

	require.EqualError(t, s.Remove(one.ID, 9), "there is no fault 9; `lab fault list` shows them")
	require.Len(t, s.List(), 2, "none went")

	require.NoError(t, s.Remove(one.ID))
	<-one.Over
	assert.Equal(t, 1, s.Clear())
	<-two.Over
	_, yes := s.Strike(fault.Kill, "", fault.About{"op": {"talos.apply"}})
	assert.False(t, yes)
}

// TestALastingFaultHoldsUntilItIsRemoved and is in the trace as long as it does.
func TestALastingFaultHoldsUntilItIsRemoved(t *testing.T) {
	t.Parallel()

	trace := &told{}
	s := fault.New(trace, known)
	changed := s.Changed()
	f, err := s.Add(fault.HostDown, map[string]string{"host": "alp*"})
	require.NoError(t, err)
	<-changed

	_, yes := s.Holds(fault.HostDown, fault.About{"host": {"Alpha"}})
	assert.True(t, yes, "names of hosts have no case")
	_, yes = s.Holds(fault.HostDown, fault.About{"host": {"charlie"}})
	assert.False(t, yes)
	assert.Equal(t, []string{"fault.host-down host/alp*"}, trace.began)
	assert.Empty(t, trace.ended)

	require.NoError(t, s.Remove(f.ID))
	_, yes = s.Holds(fault.HostDown, fault.About{"host": {"alpha"}})
	assert.False(t, yes)
	assert.Equal(t, trace.began, trace.ended)
}

func TestNoFaultsAtAll(t *testing.T) {
	t.Parallel()

	var s *fault.Set
	_, yes := s.Strike(fault.Kill, "", nil)
	assert.False(t, yes)
	_, yes = s.Holds(fault.Kill, nil)
	assert.False(t, yes)
	assert.Empty(t, s.List())
}
