// SPDX-License-Identifier: Apache-2.0
// Copyright the talos-proxmox authors.

package events

import (
	"fmt"
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
	for _, step := range stepsBefore(id, state, s.Events.Events) {
		if step.Msg != msg {
			step.Ts = now
			s.Events.Events = append(s.Events.Events, step)
		}
	}
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

// stepsBefore returns what a service says while it starts, and did not say yet.
func stepsBefore(id, state string, said []*machine.ServiceEvent) []*machine.ServiceEvent {
	steps := []*machine.ServiceEvent{{State: "Starting", Msg: "Starting service"}, {State: StatePreparing, Msg: "Running pre state"}}
	switch state {
	case StatePreparing:
		steps = steps[:1]
	case StateRunning:
		steps = append(steps, &machine.ServiceEvent{State: StatePreparing, Msg: "Creating service runner"},
			&machine.ServiceEvent{State: StateRunning, Msg: startedAs(id)})
	default:
		return nil
	}
	for i := len(said) - 1; i >= 0 && said[i].State != StateFinished && said[i].State != StateFailed; i-- {
		steps = slices.DeleteFunc(steps, func(step *machine.ServiceEvent) bool { return step.Msg == said[i].Msg })
	}

	return steps
}

// startedAs returns what a service says once it runs: in a container, as a process, or in machined.
func startedAs(id string) string {
	const containerd = `Process Process(["/bin/containerd" "--address" %s]) started with PID 20`
	switch id {
	case "containerd":
		return fmt.Sprintf(containerd,
			`"/system/run/containerd/containerd.sock" "--state" "/system/run/containerd" "--root" "/system/var/lib/containerd"`)
	case "cri":
		return fmt.Sprintf(containerd, `"/run/containerd/containerd.sock" "--config" "/etc/cri/containerd.toml"`)
	case "auditd", "machined", "syslogd":
		return "Service started as goroutine"
	case "udevd":
		return `Process Process(["/usr/bin/systemd-udevd" "--resolve-names=never"]) started with PID 10`
	default:
		return "Started task " + id + " (PID 100) for container " + id
	}
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
