// SPDX-License-Identifier: Apache-2.0
// Copyright the talos-proxmox authors.

package events

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
	StateWaiting   = "Waiting"
	StatePreparing = "Preparing"
	StateRunning   = "Running"
	StateFailed    = "Failed"
	StateFinished  = "Finished"
)

// serviceEventsKept is how many events a service remembers.
const serviceEventsKept = 64

// Services holds the state of a node's services.
type Services struct {
	mu    sync.Mutex
	infos map[string]*machine.ServiceInfo
	log   *Log
}

func NewServices(log *Log) *Services {
	return &Services{infos: map[string]*machine.ServiceInfo{}, log: log}
}

// Set moves a service to a state; repeating the same state and message is no event.
func (t *Services) Set(id, state, msg string, healthy bool) {
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
	s.Health = &machine.ServiceHealth{Healthy: healthy, Unknown: !healthy && state != StateRunning, LastChange: now}

	action := machine.ServiceStateEvent_WAITING
	switch state {
	case StatePreparing:
		action = machine.ServiceStateEvent_PREPARING
	case StateRunning:
		action = machine.ServiceStateEvent_RUNNING
	case StateFailed:
		action = machine.ServiceStateEvent_FAILED
	case StateFinished:
		action = machine.ServiceStateEvent_FINISHED
	}
	t.log.publish(&machine.ServiceStateEvent{
		Service: id, Action: action, Message: msg, Health: proto.CloneOf(s.Health),
	}, "")
}

func (t *Services) Get(id string) *machine.ServiceInfo {
	t.mu.Lock()
	defer t.mu.Unlock()

	if s := t.infos[id]; s != nil {
		return proto.CloneOf(s)
	}

	return nil
}

func (t *Services) List() []*machine.ServiceInfo {
	t.mu.Lock()
	defer t.mu.Unlock()

	var out []*machine.ServiceInfo
	for _, s := range t.infos {
		out = append(out, proto.CloneOf(s))
	}
	slices.SortFunc(out, func(a, b *machine.ServiceInfo) int { return strings.Compare(a.Id, b.Id) })

	return out
}
