// SPDX-License-Identifier: Apache-2.0
// Copyright the talos-proxmox authors.

package talos

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

// eventLog is the stream that the Events API serves.
type eventLog struct {
	mu      sync.Mutex
	events  []loggedEvent
	dropped int
	changed chan struct{}
}

func newEventLog() *eventLog { return &eventLog{changed: make(chan struct{})} }

func newEvent(payload proto.Message, actor string) *machine.Event {
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

func (l *eventLog) publish(payload proto.Message, actor string) {
	l.mu.Lock()
	defer l.mu.Unlock()

	l.events = append(l.events, loggedEvent{at: time.Now(), event: newEvent(payload, actor)})
	if len(l.events) > eventsKept {
		l.events = l.events[1:]
		l.dropped++
	}
	close(l.changed)
	l.changed = make(chan struct{})
}

// from is the position of the first event that a request asks for.
func (l *eventLog) from(req *machine.EventsRequest) int {
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

func (l *eventLog) next(ctx context.Context, pos int) (*machine.Event, int, error) {
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

// sequence tells watchers how a sequence of the node proceeds.
func (l *eventLog) sequence(name string, action machine.SequenceEvent_Action, actor string, err error) {
	e := &machine.SequenceEvent{Sequence: name, Action: action}
	if err != nil {
		e.Action = machine.SequenceEvent_NOOP
		e.Error = &common.Error{Code: common.Code_FATAL, Message: "sequence failed: " + err.Error()}
	}
	l.publish(e, actor)
}

// phase runs do as a phase of a sequence.
func (l *eventLog) phase(name, actor string, do func() error) error {
	l.publish(&machine.PhaseEvent{Phase: name, Action: machine.PhaseEvent_START}, actor)
	l.publish(&machine.TaskEvent{Task: name, Action: machine.TaskEvent_START}, actor)
	err := do()
	l.publish(&machine.TaskEvent{Task: name, Action: machine.TaskEvent_STOP}, actor)
	l.publish(&machine.PhaseEvent{Phase: name, Action: machine.PhaseEvent_STOP}, actor)

	return err
}
