package model

import (
	"context"
	"time"

	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
	"google.golang.org/protobuf/types/known/timestamppb"

	kagziv1 "github.com/kagzi/kagzi/proto/kagzi/v1"
	"github.com/kagzi/kagzi/tui"
)

// Item is one object that is loaded whole and kept up to date while shown. Create it, then call
// Show.
type Item[T any] struct {
	base
	read     func(ctx context.Context, namespace string) (T, error)
	concerns func(Change) bool
	reader   *reader[T]

	value  T
	loaded bool
	stale  bool // changed since it was loaded
}

func newItem[T any](l *Link, every time.Duration, read func(context.Context, string) (T, error)) *Item[T] {
	i := &Item[T]{read: read, stale: true}
	i.base = join(l, i.heard)
	i.reader = &reader[T]{tasks: i.tasks, every: every, prepare: i.prepare, done: i.done}
	return i
}

// Show starts to keep the object up to date.
func (i *Item[T]) Show() {
	i.shown = true
	if i.stale && i.link.Ready() {
		i.want()
	}
}

// Hide stops updates until the next Show.
func (i *Item[T]) Hide() {
	i.shown = false
	i.stale = i.reader.stop() || i.stale
}

// Refresh reloads the object now.
func (i *Item[T]) Refresh() {
	i.stale = false
	i.reader.now()
}

// Value returns the object as last loaded; the zero value before that.
func (i *Item[T]) Value() T { return i.value }

// Loaded reports whether the object was loaded at least once.
func (i *Item[T]) Loaded() bool { return i.loaded }

// Err returns why it cannot be shown: not loaded yet, or deleted.
func (i *Item[T]) Err() error {
	if status.Code(i.err) == codes.NotFound {
		return i.err
	}
	return i.failure(i.loaded)
}

func (i *Item[T]) heard(c Change) {
	if c.Moved {
		i.reader.stop()
		var none T
		i.value, i.loaded, i.err, i.stale = none, false, nil, true
		i.change()
		return
	}
	again := i.err != nil && c.Beat // the error may be over
	if !c.Back && !again && !i.concerns(c) {
		return
	}
	i.stale = true
	if i.shown {
		i.want()
	}
}

func (i *Item[T]) want() {
	i.stale = false
	i.reader.want()
}

func (i *Item[T]) prepare() func(context.Context) (T, error) {
	namespace := i.link.Namespace()
	return func(ctx context.Context) (T, error) { return i.read(ctx, namespace) }
}

func (i *Item[T]) done(value T, err error) {
	i.err = err
	if err != nil {
		i.stale = true
	} else {
		i.value, i.loaded = value, true
	}
	i.change()
}

// NewWorker returns one worker, in any namespace. Like the list of workers it is reloaded with each
// heartbeat of the stream.
func NewWorker(l *Link, id string) *Item[*kagziv1.Worker] {
	i := newItem(l, runsEvery, func(ctx context.Context, _ string) (*kagziv1.Worker, error) {
		answer, err := l.api.GetWorker(ctx, &kagziv1.GetWorkerRequest{WorkerId: id})
		return answer.GetWorker(), err
	})
	i.concerns = func(c Change) bool { return c.WorkersChanged || c.Beat }
	return i
}

// Schedule is a schedule with its next ticks and the changes by people.
type Schedule struct {
	*kagziv1.WorkflowSchedule // with input
	// next 10, for a paused schedule too; none for a broken one
	Ticks   []*timestamppb.Timestamp
	Changes []*kagziv1.AuditEvent // newest first, at most 50; none without the right to read them
}

const (
	ticksMost   = 10
	changesMost = 50
)

// NewSchedule returns one schedule of the namespace, by id or name. It is also reloaded after each
// of its ticks.
func NewSchedule(l *Link, ref string) *Item[Schedule] {
	i := newItem(l, listEvery, func(ctx context.Context, namespace string) (Schedule, error) {
		answer, err := l.api.GetWorkflowSchedule(
			ctx, &kagziv1.GetWorkflowScheduleRequest{Namespace: namespace, ScheduleId: ref})
		if err != nil {
			return Schedule{}, err
		}
		s := Schedule{WorkflowSchedule: answer.GetSchedule()}
		if s.GetBroken() == "" {
			if s.Ticks, err = tui.NextTicks(ctx, l.api, s.WorkflowSchedule, ticksMost); err != nil {
				return Schedule{}, err
			}
		}
		if audit, err := l.api.ListAuditEvents(ctx, &kagziv1.ListAuditEventsRequest{
			Namespace: namespace, SubjectId: new(s.GetScheduleId()), Page: &kagziv1.PageRequest{PageSize: changesMost},
		}); err == nil { // without the right to read them, the rest is shown
			s.Changes = audit.GetEvents()
		}
		return s, nil
	})
	i.concerns = func(c Change) bool {
		passed := len(i.value.Ticks) > 0 && !i.value.Ticks[0].AsTime().After(l.Now())
		return c.SchedulesChanged || c.Beat && passed
	}
	return i
}
