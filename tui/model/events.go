package model

import (
	"context"
	"time"

	"google.golang.org/grpc"

	kagziv1 "github.com/kagzi/kagzi/proto/kagzi/v1"
)

const (
	eventsTail = 500  // past events to load
	eventsMost = 2000 // events to keep
)

// EventLog follows the event log of a server and keeps the newest 2,000 events.
type EventLog struct {
	base
	stream follower[kagziv1.ServerEvent]
	list   []*kagziv1.ServerEvent // by sequence
	missed int64                  // recorded by the server but never received
	held   []*kagziv1.ServerEvent // received while frozen
}

// NewEventLog returns the model; Show starts to follow.
func NewEventLog(l *Link) *EventLog {
	e := &EventLog{}
	e.base = join(l, e.heard)
	e.stream = follower[kagziv1.ServerEvent]{tasks: e.tasks, message: e.event, changed: e.change, open: e.open(nil)}
	return e
}

// open requests the events after one, if it is of this server; nil for recent events.
func (e *EventLog) open(after *kagziv1.ServerEvent) func(context.Context) (
	grpc.ServerStreamingClient[kagziv1.ServerEvent], error) {
	return func(ctx context.Context) (grpc.ServerStreamingClient[kagziv1.ServerEvent], error) {
		return e.link.api.WatchEvents(ctx, &kagziv1.WatchEventsRequest{
			After: after.GetSequence(), AfterAt: after.GetAt(), Tail: eventsTail})
	}
}

// Show starts to follow, including what happened meanwhile.
func (e *EventLog) Show() {
	e.shown = true
	if e.link.Ready() {
		e.stream.start()
	}
}

// Hide stops following.
func (e *EventLog) Hide() {
	e.shown = false
	e.stream.halt()
}

// Refresh connects again now.
func (e *EventLog) Refresh() { e.stream.start() }

// Events returns the kept events, oldest first. Do not change them.
func (e *EventLog) Events() []*kagziv1.ServerEvent { return e.list }

// Missed returns how many recorded events were never received.
func (e *EventLog) Missed() int64 { return e.missed }

// State returns the state of the stream.
func (e *EventLog) State() State { return e.stream.state }

// Err returns why there is nothing to show; nil if there is something.
func (e *EventLog) Err() error {
	if len(e.list) == 0 && e.stream.state.Err != nil {
		return e.stream.state.Err
	}
	return e.failure(len(e.list) > 0 || e.stream.state.Phase == Live)
}

func (e *EventLog) heard(c Change) {
	if !c.Back {
		return
	}
	if held := e.held; len(held) > 0 {
		e.held = nil
		for _, event := range held {
			e.keep(event)
		}
		e.change()
	}
	if e.shown {
		e.stream.start()
	}
}

func (e *EventLog) event(event *kagziv1.ServerEvent, _ time.Time, first bool) {
	if n := len(e.list); first && n > 0 && event.GetSequence() <= e.list[n-1].GetSequence() {
		e.list, e.held, e.missed = nil, nil, 0 // the server restarted and counts from 1
	}
	if e.link.Frozen() {
		if e.held = append(e.held, event); len(e.held) > eventsMost {
			e.held = e.held[1:]
		}
		return
	}
	e.keep(event)
	e.change()
}

func (e *EventLog) keep(event *kagziv1.ServerEvent) {
	if n := len(e.list); n > 0 {
		gap := event.GetSequence() - e.list[n-1].GetSequence() - 1
		if gap < 0 {
			return // already received
		}
		e.missed += gap
	}
	if e.list = append(e.list, event); len(e.list) > eventsMost {
		e.list = e.list[len(e.list)-eventsMost:]
	}
	e.stream.open = e.open(event)
}
