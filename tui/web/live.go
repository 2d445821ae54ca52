package web

import (
	"context"
	"encoding/json"
	"net"
	"net/http"
	"slices"
	"sync"
	"time"

	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
	"google.golang.org/protobuf/types/known/durationpb"

	kagziv1 "github.com/kagzi/kagzi/proto/kagzi/v1"
)

const (
	mostStreams       = 1000 // of this page
	mostCallerStreams = 100  // of one session or address
	mostNamespaces    = 16   // of one stream
	watchEvery        = 100 * time.Millisecond
	// sendTime limits one write to a browser.
	sendTime = 30 * time.Second
)

// streams counts the open streams.
type streams struct {
	mu      sync.Mutex
	open    int
	callers map[string]int
}

func (s *streams) enter(caller string) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.open >= mostStreams || s.callers[caller] >= mostCallerStreams {
		return false
	}
	s.open++
	s.callers[caller]++
	return true
}

func (s *streams) leave(caller string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.open--
	if s.callers[caller]--; s.callers[caller] == 0 {
		delete(s.callers, caller)
	}
}

// news is what a browser is told of a namespace: which runs changed, and which lists to read again.
type news struct {
	Namespace  string   `json:"ns"`
	Runs       []string `json:"runs,omitempty"`
	Lists      bool     `json:"lists,omitempty"` // runs were started, or too many changed to name
	Workers    bool     `json:"workers,omitempty"`
	Schedules  bool     `json:"schedules,omitempty"`
	Namespaces bool     `json:"namespaces,omitempty"`
}

func newsOf(namespace string, e *kagziv1.WatchEvent) (n news, any bool) {
	n.Namespace = namespace
	for _, r := range e.GetWorkflows() {
		n.Runs = append(n.Runs, r.GetRunId())
	}
	n.Lists, n.Workers = e.GetWorkflowsChanged(), e.GetWorkersChanged()
	n.Schedules, n.Namespaces = e.GetSchedulesChanged(), e.GetNamespacesChanged()
	return n, len(n.Runs) > 0 || n.Lists || n.Workers || n.Schedules || n.Namespaces
}

// hello begins a stream.
type hello struct {
	Build string   `json:"build"`
	Live  []string `json:"live"` // the namespaces that the stream carries
}

// live tells a browser what changes in the namespaces that it asks for, by server-sent events. It has
// no timers: news go out as they come, and the API's streams have a message now and then when nothing
// happens, which shows that the line is up. Namespaces that cannot be watched are left out, so that a
// tab that shows a deleted one does not end the stream of the others.
func (s *server) live(w http.ResponseWriter, r *http.Request) {
	entered, done := context.WithTimeout(r.Context(), callTime)
	p := s.enter(entered, w, r)
	done()
	if p == nil {
		return
	}
	names := slices.Compact(slices.Sorted(slices.Values(r.URL.Query()["ns"])))
	if len(names) == 0 || len(names) > mostNamespaces {
		p.fail(status.Errorf(codes.InvalidArgument, "ns: want 1 to %d namespaces, got %d", mostNamespaces, len(names)))
		return
	}
	caller := p.cookie
	if s.Sessions == nil {
		caller, _, _ = net.SplitHostPort(r.RemoteAddr)
	}
	if !s.lives.enter(caller) {
		http.Error(w, "too many live pages are open", http.StatusServiceUnavailable)
		return
	}
	defer s.lives.leave(caller)
	ctx, cancel := context.WithCancel(untimed(p.ctx, r.Context()))
	defer cancel()
	heard := make(chan told)
	greeting, err := hello{Build: s.build}, error(nil)
	for _, name := range names {
		failed := s.listen(ctx, name, heard)
		if failed != nil {
			err = failed
			continue
		}
		greeting.Live = append(greeting.Live, name)
	}
	if len(greeting.Live) == 0 {
		p.fail(err)
		return
	}
	out := &eventWriter{w: w, control: http.NewResponseController(w)}
	header := w.Header()
	header.Set("Content-Type", "text/event-stream")
	header.Set("X-Accel-Buffering", "no")
	raw, _ := json.Marshal(greeting) // strings
	for text := "retry: 2000\nevent: hello\ndata: " + string(raw) + "\n\n"; out.send(text); {
		var t told
		select {
		case t = <-heard:
		case <-ctx.Done():
			return
		}
		if t.err != nil {
			out.send("event: over\ndata: 1\n\n")
			return
		}
		text = ":\n\n"
		if n, any := newsOf(t.namespace, t.event); any {
			raw, _ := json.Marshal(n) // strings and booleans
			text = "data: " + string(raw) + "\n\n"
		}
	}
}

// told is what was heard of a namespace, or why nothing more will be.
type told struct {
	namespace string
	event     *kagziv1.WatchEvent
	err       error
}

// listen passes on what is told about a namespace until ctx ends. It returns an error if nothing can be
// heard of it.
func (s *server) listen(ctx context.Context, namespace string, heard chan<- told) error {
	stream, err := s.API.Watch(ctx, &kagziv1.WatchRequest{Namespace: namespace,
		Interval: durationpb.New(watchEvery)})
	if err != nil {
		return err
	}
	e, err := stream.Recv()
	if err != nil {
		return err
	}
	go func() {
		for err == nil {
			select {
			case heard <- told{namespace, e, nil}:
			case <-ctx.Done():
				return
			}
			e, err = stream.Recv()
		}
		select {
		case heard <- told{namespace, nil, err}:
		case <-ctx.Done():
		}
	}()
	return nil
}

// untimed returns the values of a context that has a time limit, with the end of another.
func untimed(values, end context.Context) context.Context { return withEnd{values, end} }

type withEnd struct {
	context.Context
	end context.Context
}

func (c withEnd) Deadline() (time.Time, bool) { return c.end.Deadline() }
func (c withEnd) Done() <-chan struct{}       { return c.end.Done() }
func (c withEnd) Err() error                  { return c.end.Err() }

// eventWriter writes events, each with a deadline of its own.
type eventWriter struct {
	w       http.ResponseWriter
	control *http.ResponseController
}

func (o *eventWriter) send(text string) bool {
	_ = o.control.SetWriteDeadline(time.Now().Add(sendTime)) // not every writer has deadlines
	if _, err := o.w.Write([]byte(text)); err != nil {
		return false
	}
	return o.control.Flush() == nil
}
