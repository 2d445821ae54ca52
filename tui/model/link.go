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
	// linkSilence is when a stream counts as lost: the server says something every 5 s at least.
	linkSilence = 12 * time.Second
	// pollEvery is how often a server that cannot tell what changes is asked.
	pollEvery = 2 * time.Second
	// pingEvery is how often the round trip is measured and the server is asked how it is.
	pingEvery = 15 * time.Second
)

// Change is what a Link tells its subscribers. It may name more than has changed.
type Change struct {
	Runs              []*kagziv1.Workflow // as they stand now, without payloads, in no order
	RunsChanged       bool                // read lists of runs again
	WorkersChanged    bool
	SchedulesChanged  bool
	NamespacesChanged bool
	Back              bool // connected, for the first time or again, or not frozen any more: read everything again
	Beat              bool // a sign of life, every 5 s at least while connected
	Moved             bool // another namespace was chosen: forget what is loaded; Back follows
}

// Link follows one namespace of a server and tells what changes there. All models hang on one.
type Link struct {
	// Changed is called when the state is another one. Set it before anything else is done; nil is fine.
	Changed func()

	api         tui.API
	tasks       *tasks
	namespace   string
	stream      follower[kagziv1.WatchEvent]
	poll        *reader[ping]
	pollTimer   *timer
	frozen      bool
	moved       bool // to a namespace of which nothing was read yet
	clock       clock
	asOf        time.Time
	health      *kagziv1.HealthCheckResponse
	subscribers []*subscriber
}

// subscriber is one who is told what changes; a pointer, so that equal functions are told apart.
type subscriber struct{ tell func(Change) }

// NewLink begins to follow a namespace ("" is "default") until ctx ends or Close is called. post
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

// Close stops following and waits for what is under way. Models on the link end with it; close them first.
func (l *Link) Close() { l.tasks.close() }

// API makes calls.
func (l *Link) API() tui.API { return l.api }

// Namespace is the one that is followed.
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

// State is how the connection stands.
func (l *Link) State() State { return l.stream.state }

// Ready says that the server can be asked, as far as is known.
func (l *Link) Ready() bool {
	switch l.stream.state.Phase {
	case Live, Polling, Refused:
		return true
	}
	return false
}

// Retry connects again at once. While connected it reads nothing again but the connection.
func (l *Link) Retry() {
	l.pollTimer.stop()
	l.pollTimer = nil
	l.poll.stop()
	l.stream.start()
}

// Freeze keeps everything as it is, or lets it go on: what has changed meanwhile is then read at once.
func (l *Link) Freeze(frozen bool) {
	if frozen == l.frozen {
		return
	}
	l.frozen = frozen
	if !frozen {
		l.tell(Change{Back: l.Ready()})
	}
}

// Frozen says whether it is held still.
func (l *Link) Frozen() bool { return l.frozen }

// Now is the server's time, as far as it is known.
func (l *Link) Now() time.Time { return l.tasks.now().Add(l.clock.offset()) }

// Skew is how far the server's clock is ahead of this machine's; negative when it is behind. The
// way there and back is its uncertainty.
func (l *Link) Skew() time.Duration { return l.clock.offset() }

// AsOf is when the server gave the last sign of life, by this machine's clock; zero when it never did.
func (l *Link) AsOf() time.Time { return l.asOf }

// RoundTrip is how long the way to the server and back took lately; 0 when it was not measured yet.
func (l *Link) RoundTrip() time.Duration { return l.clock.trip }

// Health is what the server last said of itself; nil until it has.
func (l *Link) Health() *kagziv1.HealthCheckResponse { return l.health }

// Subscribe has f called on the UI goroutine with each change, until the function that it returns is called.
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

// event deals with what the stream brought.
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

// stateChanged deals with another state.
func (l *Link) stateChanged() {
	switch l.stream.state.Phase {
	case Polling:
		l.asOf = l.tasks.now()
		l.tell(Change{Back: true})
		l.poll.now()
	case Refused:
		l.tell(Change{Back: true}) // who may not follow may yet be allowed to read
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
	server         time.Time // zero: the server did not say
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

// pinged deals with the answer. While polling it is the only sign of life.
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
