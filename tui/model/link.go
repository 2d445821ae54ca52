package model

import (
	"context"
	"slices"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	kagziv1 "github.com/kagzi/kagzi/proto/kagzi/v1"
	"github.com/kagzi/kagzi/tui"
)

const (
	// linkSilence is when a stream counts as lost: the server sends a message at least every 5 s.
	linkSilence = 12 * time.Second
	// pollEvery is the interval of polling a server that cannot stream changes.
	pollEvery = 2 * time.Second
	// pingEvery is the interval of health checks, which also measure the round trip.
	pingEvery = 15 * time.Second
)

// Change is what a Link sends to its subscribers. It may name more than has changed.
type Change struct {
	Runs              []*kagziv1.Workflow // current state, without payloads, in no order
	RunsChanged       bool                // reload lists of runs
	WorkersChanged    bool
	SchedulesChanged  bool
	NamespacesChanged bool
	Back              bool // connected, for the first time or again, or unfrozen: reload everything
	Beat              bool // a message arrived; at least every 5 s while connected
	Moved             bool // the namespace was switched: drop loaded data; Back follows
}

// Link follows one namespace of a server and publishes its changes. All models subscribe to one.
type Link struct {
	// Changed is called after a change of state. Set it before any other call; it may be nil.
	Changed func()

	api         tui.API
	tasks       *tasks
	namespace   string
	stream      follower[kagziv1.WatchEvent]
	poll        *reader[ping]
	pollTimer   *timer
	frozen      bool
	moved       bool // to a namespace of which nothing was loaded yet
	clock       clock
	asOf        time.Time
	health      *kagziv1.HealthCheckResponse
	subscribers []*subscriber
}

// subscriber is called with every change. It is a pointer so that equal functions can be told
// apart.
type subscriber struct{ tell func(Change) }

// NewLink starts to follow a namespace (default "default") until ctx ends or Close is called. post
// runs a function on the UI goroutine, later, and never blocks. now may be called from any
// goroutine.
func NewLink(ctx context.Context, api tui.API, namespace string, post func(func()), now func() time.Time) *Link {
	if namespace == "" {
		namespace = "default"
	}
	l := &Link{api: api, namespace: namespace, tasks: newTasks(ctx, post, now)}
	l.stream = follower[kagziv1.WatchEvent]{
		tasks: l.tasks, silence: linkSilence, message: l.event, changed: l.stateChanged,
		open: func(ctx context.Context) (grpc.ServerStreamingClient[kagziv1.WatchEvent], error) {
			return api.Watch(ctx, &kagziv1.WatchRequest{Namespace: namespace})
		},
	}
	l.poll = &reader[ping]{tasks: l.tasks, prepare: l.ping, done: l.pinged}
	l.stream.start()
	return l
}

// Close stops following and waits for open calls. Close the models on the link first: they end with
// it.
func (l *Link) Close() { l.tasks.close() }

// API returns the client of the server.
func (l *Link) API() tui.API { return l.api }

// Namespace returns the followed namespace.
func (l *Link) Namespace() string { return l.namespace }

// SetNamespace follows another namespace.
func (l *Link) SetNamespace(namespace string) {
	if namespace == "" || namespace == l.namespace {
		return
	}
	l.namespace = namespace
	l.stream.open = func(ctx context.Context) (grpc.ServerStreamingClient[kagziv1.WatchEvent], error) {
		return l.api.Watch(ctx, &kagziv1.WatchRequest{Namespace: namespace})
	}
	l.tell(Change{Moved: true})
	l.moved = true
	l.Retry()
}

// State returns the state of the connection.
func (l *Link) State() State { return l.stream.state }

// Ready reports whether the server can be called, as far as is known.
func (l *Link) Ready() bool {
	switch l.stream.state.Phase {
	case Live, Polling, Refused:
		return true
	}
	return false
}

// Retry reconnects at once. If connected, it reloads nothing else.
func (l *Link) Retry() {
	l.pollTimer.stop()
	l.pollTimer = nil
	l.poll.stop()
	l.stream.start()
}

// Freeze stops all updates, or resumes them: changes in between are then loaded at once.
func (l *Link) Freeze(frozen bool) {
	if frozen == l.frozen {
		return
	}
	l.frozen = frozen
	if !frozen {
		l.tell(Change{Back: l.Ready()})
	}
}

// Frozen reports whether updates are stopped.
func (l *Link) Frozen() bool { return l.frozen }

// Now returns the server's time, as far as it is known.
func (l *Link) Now() time.Time { return l.tasks.now().Add(l.clock.offset()) }

// Skew returns how far the server's clock is ahead of this machine's; negative if it is behind.
// RoundTrip is its uncertainty.
func (l *Link) Skew() time.Duration { return l.clock.offset() }

// AsOf returns when the last message arrived, by this machine's clock; zero if none did.
func (l *Link) AsOf() time.Time { return l.asOf }

// RoundTrip returns the latest measured round trip to the server; 0 before the first.
func (l *Link) RoundTrip() time.Duration { return l.clock.trip }

// Health returns the server's last health report; nil before the first.
func (l *Link) Health() *kagziv1.HealthCheckResponse { return l.health }

// Subscribe calls f on the UI goroutine with each change, until cancel is called.
func (l *Link) Subscribe(f func(Change)) (cancel func()) {
	s := &subscriber{f}
	l.subscribers = append(l.subscribers, s)
	return func() {
		l.subscribers = slices.DeleteFunc(slices.Clone(l.subscribers), func(other *subscriber) bool {
			return other == s
		})
	}
}

func (l *Link) tell(c Change) {
	if l.frozen && !c.Moved && !(l.moved && c.Back) {
		return
	}
	if c.Back {
		l.moved = false
	}
	for _, s := range l.subscribers {
		s.tell(c)
	}
}

// event handles a message of the stream.
func (l *Link) event(e *kagziv1.WatchEvent, at time.Time, first bool) {
	l.asOf = at
	if first {
		l.clock = clock{}
	}
	if e.GetAt() != nil {
		l.clock.heard(e.GetAt().AsTime(), at)
	}
	l.tell(Change{
		Runs: e.GetWorkflows(), RunsChanged: e.GetWorkflowsChanged(), WorkersChanged: e.GetWorkersChanged(),
		SchedulesChanged: e.GetSchedulesChanged(), NamespacesChanged: e.GetNamespacesChanged(), Back: first, Beat: true,
	})
	if first {
		l.poll.now()
	}
}

// stateChanged handles a change of state.
func (l *Link) stateChanged() {
	switch l.stream.state.Phase {
	case Polling:
		l.asOf = l.tasks.now()
		l.tell(Change{Back: true})
		l.poll.now()
	case Refused:
		l.tell(Change{Back: true}) // a caller who may not watch may still be allowed to read
	case Reconnecting:
		l.poll.stop()
		l.pollTimer.stop()
		l.pollTimer = nil
	}
	if l.Changed != nil {
		l.Changed()
	}
}

// ping is an answer to a health check.
type ping struct {
	sent, received time.Time
	server         time.Time // zero: not in the answer
	health         *kagziv1.HealthCheckResponse
}

func (l *Link) ping() func(context.Context) (ping, error) {
	return func(ctx context.Context) (ping, error) {
		p := ping{sent: l.tasks.now()}
		answer, err := l.api.HealthCheck(ctx, &kagziv1.HealthCheckRequest{})
		p.received, p.health = l.tasks.now(), answer
		if answer.GetTimestamp() != nil {
			p.server = answer.GetTimestamp().AsTime()
		}
		return p, err
	}
}

// pinged handles a health check. While polling it is the only sign that the server is alive.
func (l *Link) pinged(p ping, err error) {
	pause := pingEvery
	if err == nil {
		l.clock.measured(p)
		l.health = p.health
	}
	if l.stream.state.Phase == Polling {
		pause = jittered(pollEvery)
		if err != nil && status.Code(err) != codes.Unimplemented {
			l.stream.ended(err)
			return
		}
		l.asOf = p.received
		l.tell(Change{RunsChanged: true, WorkersChanged: true, SchedulesChanged: true, NamespacesChanged: true,
			Beat: true})
	}
	l.pollTimer.stop()
	l.pollTimer = l.tasks.after(pause, l.poll.want)
}
