package web

import (
	"context"
	"encoding/json"
	"net"
	"net/http"
	"sync"
	"time"

	"google.golang.org/protobuf/types/known/durationpb"

	kagziv1 "github.com/kagzi/kagzi/proto/kagzi/v1"
)

const (
	mostStreams       = 1000 // of this page
	mostCallerStreams = 100  // of one session or address
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

// news is what a browser is told: which runs changed, and which lists to read again.
type news struct {
	Runs       []string `json:"runs,omitempty"`
	Lists      bool     `json:"lists,omitempty"` // runs were started, or too many changed to name
	Workers    bool     `json:"workers,omitempty"`
	Schedules  bool     `json:"schedules,omitempty"`
	Namespaces bool     `json:"namespaces,omitempty"`
}

func newsOf(e *kagziv1.WatchEvent) (n news, any bool) {
	for _, r := range e.GetWorkflows() {
		n.Runs = append(n.Runs, r.GetRunId())
	}
	n.Lists, n.Workers = e.GetWorkflowsChanged(), e.GetWorkersChanged()
	n.Schedules, n.Namespaces = e.GetSchedulesChanged(), e.GetNamespacesChanged()
	return n, len(n.Runs) > 0 || n.Lists || n.Workers || n.Schedules || n.Namespaces
}

// live tells a browser what changes in a namespace, by server-sent events. It sends nothing by itself:
// the API's stream has a message now and then when nothing happens, which shows that the line is up.
func (s *server) live(w http.ResponseWriter, r *http.Request) {
	entered, done := context.WithTimeout(r.Context(), callTime)
	p := s.enter(entered, w, r)
	done()
	if p == nil {
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
	stream, err := s.API.Watch(untimed(p.ctx, r.Context()), &kagziv1.WatchRequest{Namespace: p.ns,
		Interval: durationpb.New(watchEvery)})
	if err != nil {
		p.fail(err)
		return
	}
	first, err := stream.Recv()
	if err != nil {
		p.fail(err)
		return
	}
	out := &eventWriter{w: w, control: http.NewResponseController(w)}
	header := w.Header()
	header.Set("Content-Type", "text/event-stream")
	header.Set("X-Accel-Buffering", "no")
	build, _ := json.Marshal(s.build) // a string
	if !out.send("retry: 2000\nevent: hello\ndata: " + string(build) + "\n\n") {
		return
	}
	for e := first; ; {
		text := ":\n\n"
		if told, any := newsOf(e); any {
			raw, _ := json.Marshal(told) // strings and booleans
			text = "data: " + string(raw) + "\n\n"
		}
		if !out.send(text) {
			return
		}
		if e, err = stream.Recv(); err != nil {
			out.send("event: over\ndata: 1\n\n")
			return
		}
	}
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
