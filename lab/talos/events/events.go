// SPDX-License-Identifier: Apache-2.0
// Copyright the talos-proxmox authors.

package events

import (
	"context"
	"encoding/hex"
	"fmt"
	"math/rand/v2"
	"sync"
	"time"

	"github.com/siderolabs/talos/pkg/machinery/api/common"
	"github.com/siderolabs/talos/pkg/machinery/api/machine"
	"github.com/siderolabs/talos/pkg/machinery/proto"
	"google.golang.org/protobuf/types/known/anypb"
)

// eventsKept is how many events a client can ask for afterwards.
const eventsKept = 1000

type loggedEvent struct {
	at    time.Time
	event *machine.Event
}

// Log holds the stream that the Events API serves.
type Log struct {
	mu      sync.Mutex
	events  []loggedEvent
	dropped int
	changed chan struct{}
}

func NewLog() *Log { return &Log{changed: make(chan struct{})} }

func New(payload proto.Message, actor string) *machine.Event {
	e := &machine.Event{
		Id:      fmt.Sprintf("%x%s", time.Now().Unix(), hex.EncodeToString([]byte(fmt.Sprintf("%06x", rand.Uint32())))),
		ActorId: actor,
		Data:    &anypb.Any{TypeUrl: "talos/runtime/"},
	}
	if payload == nil {
		return e
	}

	value, err := proto.Marshal(payload)
	if err != nil {
		return e
	}
	e.Data = &anypb.Any{
		TypeUrl: "talos/runtime/" + string(payload.ProtoReflect().Descriptor().FullName()),
		Value:   value,
	}

	return e
}

func (l *Log) publish(payload proto.Message, actor string) {
	l.mu.Lock()
	defer l.mu.Unlock()

	l.events = append(l.events, loggedEvent{at: time.Now(), event: New(payload, actor)})
	if len(l.events) > eventsKept {
		l.events = l.events[1:]
		l.dropped++
	}
	close(l.changed)
	l.changed = make(chan struct{})
}

// From returns the position of the first event that a request asks for.
func (l *Log) From(req *machine.EventsRequest) int {
	l.mu.Lock()
	defer l.mu.Unlock()

	end := l.dropped + len(l.events)
	switch {
	case req.GetTailEvents() < 0:
		return 0
	case req.GetTailEvents() > 0:
		return max(0, end-int(req.GetTailEvents()))
	case req.GetTailSeconds() > 0:
		since := time.Now().Add(-time.Duration(req.GetTailSeconds()) * time.Second)
		for i, e := range l.events {
			if e.at.After(since) {
				return l.dropped + i
			}
		}
	}

	return end
}

func (l *Log) Next(ctx context.Context, pos int) (*machine.Event, int, error) {
	for {
		l.mu.Lock()
		pos = max(pos, l.dropped)
		if i := pos - l.dropped; i < len(l.events) {
			e := l.events[i].event
			l.mu.Unlock()

			return e, pos + 1, nil
		}
		changed := l.changed
		l.mu.Unlock()

		select {
		case <-ctx.Done():
			return nil, pos, ctx.Err()
		case <-changed:
		}
	}
}

// Start tells watchers that a sequence of the node began.
func (l *Log) Start(sequence, actor string) {
	l.publish(&machine.SequenceEvent{Sequence: sequence, Action: machine.SequenceEvent_START}, actor)
}

// Stop tells watchers that a sequence is over.
func (l *Log) Stop(sequence, actor string) {
	l.publish(&machine.SequenceEvent{Sequence: sequence, Action: machine.SequenceEvent_STOP}, actor)
}

// Fail tells watchers that a sequence is over because of an error.
func (l *Log) Fail(sequence, actor string, err error) {
	l.Stop(sequence, actor)
	l.publish(&machine.SequenceEvent{Sequence: sequence, Action: machine.SequenceEvent_NOOP, Error: &common.Error{
		Code: common.Code_FATAL, Message: "sequence failed: " + err.Error(),
	}}, actor)
}

// Locked tells watchers that a sequence did not begin, because another runs.
func (l *Log) Locked(sequence string) {
	l.publish(&machine.SequenceEvent{Sequence: sequence, Action: machine.SequenceEvent_NOOP, Error: &common.Error{
		Code: common.Code_LOCKED, Message: "sequence not started: locked",
	}}, "")
}

// MachineStatus tells watchers the stage of the node, and why it is not ready.
func (l *Log) MachineStatus(
	stage machine.MachineStatusEvent_MachineStage, unmet []*machine.MachineStatusEvent_MachineStatus_UnmetCondition,
) {
	l.publish(&machine.MachineStatusEvent{Stage: stage, Status: &machine.MachineStatusEvent_MachineStatus{
		Ready: len(unmet) == 0, UnmetConditions: unmet,
	}}, "")
}

// Addresses tells watchers the name and the addresses of the node.
func (l *Log) Addresses(hostname string, addresses []string) {
	l.publish(&machine.AddressEvent{Hostname: hostname, Addresses: addresses}, "")
}

// Phase runs do as a phase of a sequence.
func (l *Log) Phase(name, actor string, do func() error) error {
	l.publish(&machine.PhaseEvent{Phase: name, Action: machine.PhaseEvent_START}, actor)
	l.publish(&machine.TaskEvent{Task: name, Action: machine.TaskEvent_START}, actor)
	err := do()
	l.publish(&machine.TaskEvent{Task: name, Action: machine.TaskEvent_STOP}, actor)
	l.publish(&machine.PhaseEvent{Phase: name, Action: machine.PhaseEvent_STOP}, actor)

	return err
}
