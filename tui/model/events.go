package model

import (
	"context"
	"time"

	"google.golang.org/grpc"

	kagziv1 "github.com/kagzi/kagzi/proto/kagzi/v1"
)

const (
	eventsTail = 500  // of the past
	eventsMost = 2000 // that are kept here
)

// EventLog is the events of a server as it notes them; the newest 2,000 are kept.
type EventLog struct {
	base
	stream follower[kagziv1.ServerEvent]
	list   []*kagziv1.ServerEvent // by sequence
	missed int64                  // that were noted but never came
	held   []*kagziv1.ServerEvent // while everything is held still
}

// NewEventLog makes the model; Show begins to follow.
func NewEventLog(l *Link) *EventLog {
	e := &EventLog{}
	e.base = join(l, e.heard)
	e.stream = follower[kagziv1.ServerEvent]{tasks: e.tasks, message: e.event, changed: e.change, open: e.open(nil)}
	return e
}

// open asks for what follows an event, if that is the server's; nil for the past.
func (e *EventLog) open(after *kagziv1.ServerEvent) func(context.Context) (
	grpc.ServerStreamingClient[kagziv1.ServerEvent], error) {
	return func(ctx context.Context) (grpc.ServerStreamingClient[kagziv1.ServerEvent], error) {
		return e.link.api.WatchEvents(ctx, &kagziv1.WatchEventsRequest{
			After: after.GetSequence(), AfterAt: after.GetAt(), Tail: eventsTail})
	}
}

// Show follows from now on; what came meanwhile is read.
func (e *EventLog) Show() {
	e.shown = true
	if e.link.Ready() {
		e.stream.start()
	}
}

// Hide follows no more.
func (e *EventLog) Hide() {
	e.shown = false
	e.stream.halt()
}

// Refresh connects again now.
func (e *EventLog) Refresh() { e.stream.start() }

// Events are those that are kept, oldest first. Do not change them.
func (e *EventLog) Events() []*kagziv1.ServerEvent { return e.list }

// Missed is how many were noted that never came here.
func (e *EventLog) Missed() int64 { return e.missed }

// State is how the stream stands.
func (e *EventLog) State() State { return e.stream.state }

// Err is why there is nothing to show; nil when there is something.
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
		e.list, e.held, e.missed = nil, nil, 0 // the server has started anew and counts from 1
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
			return // it is here already
		}
		e.missed += gap
	}
	if e.list = append(e.list, event); len(e.list) > eventsMost {
		e.list = e.list[len(e.list)-eventsMost:]
	}
	e.stream.open = e.open(event)
}
