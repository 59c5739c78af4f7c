// SPDX-License-Identifier: Apache-2.0
// Copyright the talos-proxmox authors.

package talos

import (
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/siderolabs/talos/pkg/machinery/api/machine"
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/types/known/timestamppb"
)

// States of a service, as Talos names them.
const (
	stateWaiting   = "Waiting"
	statePreparing = "Preparing"
	stateRunning   = "Running"
	stateFailed    = "Failed"
	stateFinished  = "Finished"
)

// serviceEventsKept is how many events a service remembers.
const serviceEventsKept = 64

// serviceTable holds the state of a node's services.
type serviceTable struct {
	mu    sync.Mutex
	infos map[string]*machine.ServiceInfo
	log   *eventLog
}

func newServiceTable(log *eventLog) *serviceTable {
	return &serviceTable{infos: map[string]*machine.ServiceInfo{}, log: log}
}

// set moves a service to a state; repeating the same state and message is no event.
func (t *serviceTable) set(id, state, msg string, healthy bool) {
	t.mu.Lock()
	defer t.mu.Unlock()

	s := t.infos[id]
	if s == nil {
		s = &machine.ServiceInfo{Id: id, Events: &machine.ServiceEvents{}, Health: &machine.ServiceHealth{Unknown: true}}
		t.infos[id] = s
	}

	last := ""
	if n := len(s.Events.Events); n > 0 {
		last = s.Events.Events[n-1].Msg
	}
	if s.State == state && s.Health.Healthy == healthy && last == msg {
		return
	}

	now := timestamppb.New(time.Now())
	s.State = state
	s.Events.Events = append(s.Events.Events, &machine.ServiceEvent{State: state, Msg: msg, Ts: now})
	if n := len(s.Events.Events); n > serviceEventsKept {
		s.Events.Events = s.Events.Events[n-serviceEventsKept:]
	}
	s.Health = &machine.ServiceHealth{Healthy: healthy, Unknown: !healthy && state != stateRunning, LastChange: now}

	action := machine.ServiceStateEvent_WAITING
	switch state {
	case statePreparing:
		action = machine.ServiceStateEvent_PREPARING
	case stateRunning:
		action = machine.ServiceStateEvent_RUNNING
	case stateFailed:
		action = machine.ServiceStateEvent_FAILED
	case stateFinished:
		action = machine.ServiceStateEvent_FINISHED
	}
	t.log.publish(&machine.ServiceStateEvent{
		Service: id, Action: action, Message: msg, Health: proto.CloneOf(s.Health),
	}, "")
}

func (t *serviceTable) get(id string) *machine.ServiceInfo {
	t.mu.Lock()
	defer t.mu.Unlock()

	if s := t.infos[id]; s != nil {
		return proto.CloneOf(s)
	}

	return nil
}

func (t *serviceTable) list() []*machine.ServiceInfo {
	t.mu.Lock()
	defer t.mu.Unlock()

	var out []*machine.ServiceInfo
	for _, s := range t.infos {
		out = append(out, proto.CloneOf(s))
	}
	slices.SortFunc(out, func(a, b *machine.ServiceInfo) int { return strings.Compare(a.Id, b.Id) })

	return out
}
