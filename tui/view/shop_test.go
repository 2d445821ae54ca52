package view

import (
	"context"
	"fmt"
	"os"
	"sync"
	"testing"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/status"

	"github.com/kagzi/kagzi/backends/memory"
	"github.com/kagzi/kagzi/engine"
	"github.com/kagzi/kagzi/engine/sandbox"
	"github.com/kagzi/kagzi/tui"
	"github.com/kagzi/kagzi/tui/scenario"
)

// begin is when the days of the tests begin.
var begin = time.Date(2026, 11, 20, 9, 0, 0, 0, time.UTC)

// shop is a real server, in memory, with the day of a shop. Its clock moves only in Advance.
type shop struct {
	tui.API
	*scenario.Day
	line *line
	box  *sandbox.Sandbox
	db   *memory.Database
}

// master is a played day that shops are copied from.
type master struct {
	db  *memory.Database
	at  *sandbox.Snapshot
	day *scenario.Day
}

// theDay is the start of most tests. It is played once, outside of any bubble.
var theDay *master

func TestMain(m *testing.M) {
	theDay = playMaster(1)
	os.Exit(m.Run())
}

func memoryFor(h sandbox.Hooks) memory.Options {
	return memory.Options{Now: h.Now, Due: h.Due, Notify: h.Notify, Outcomes: h.Outcomes, Wrote: h.Wrote}
}

func playMaster(seed uint64) *master {
	var m master
	box := sandbox.New(sandbox.Options{Seed: seed, Begin: begin.Add(-scenario.Running), Version: "0.4.0-demo",
		Open: func(h sandbox.Hooks) engine.Store {
			m.db = memory.New(memoryFor(h))
			return m.db.Open(nil)
		}})
	var err error
	if m.day, err = scenario.Play(box, seed, begin); err != nil {
		panic(err)
	}
	m.breakSchedule()
	m.at = box.Snapshot()
	return &m
}

// breakSchedule makes a schedule broken, as on a machine without its time zone, which no call can
// do.
func (m *master) breakSchedule() {
	store := m.db.Open(nil)
	defer func() { _ = store.Close() }()
	for _, s := range m.db.Schedules() {
		if s.Name != "onboarding-digest" {
			continue
		}
		if _, err := store.FireSchedule(context.Background(), engine.FireScheduleParams{
			ScheduleID: s.ID, Revision: s.Revision, Expect: s.NextFireAt,
			Broken: `time_zone: "Europe/Kyiv" is no IANA time zone`, Now: begin,
		}); err != nil {
			panic(err)
		}
	}
}

// newShop returns the day at its beginning.
func newShop() *shop { return theDay.open() }

func (m *master) open() *shop {
	w := &shop{}
	w.box = m.at.Open(func(h sandbox.Hooks) engine.Store {
		w.db = m.db.CloneWith(memoryFor(h))
		return w.db.Open(nil)
	})
	w.Day = m.day.On(w.box)
	w.connect()
	return w
}

// emptyShop returns an unused server. Nothing happens in it.
func emptyShop() *shop {
	w := &shop{}
	w.box = sandbox.New(sandbox.Options{Seed: 1, Begin: begin, Version: "0.4.0-demo",
		Open: func(h sandbox.Hooks) engine.Store {
			w.db = memory.New(memoryFor(h))
			return w.db.Open(nil)
		}})
	w.connect()
	return w
}

// withMore returns the day with n more ended runs of the day before.
func (m *master) withMore(n int) *master {
	more := *m
	more.db = m.db.Clone()
	store := more.db.Open(nil)
	defer func() { _ = store.Close() }()
	first := begin.Add(-2 * scenario.Past)
	runs := make([]engine.ImportedRun, n)
	for i := range runs {
		at := first.Add(time.Duration(i) * time.Millisecond)
		runs[i].Run = engine.Run{
			Namespace: "default", ID: engine.FirstID(at), ExternalID: fmt.Sprintf("batch-%07d", i+1), Queue: "emails",
			Type: "invoice.send", Status: engine.RunCompleted,
			Attempts: 1, CreatedAt: at, StartedAt: at, FinishedAt: at.Add(time.Second), WorkerID: "mailer-1",
		}
	}
	if _, err := store.ImportRuns(context.Background(),
		engine.ImportRunsParams{Namespace: "default", AuditID: engine.FirstID(first), Now: first,
			Runs: runs}); err != nil {
		panic(err)
	}
	return &more
}

func (w *shop) connect() {
	w.line = &line{ClientConnInterface: w.box.Direct(), changed: make(chan struct{})}
	w.API = tui.Over(w.line)
}

// Now returns the server's time.
func (w *shop) Now() time.Time { return w.box.Now() }

// Down makes every call and stream fail with err, a gRPC status, until Up.
func (w *shop) Down(err error) { w.line.set(func(l *line) { l.down, l.last = err, err; l.falls++ }) }

// Hang leaves every call and stream unanswered until its context ends, or until Up.
func (w *shop) Hang() { w.line.set(func(l *line) { l.hung = true }) }

// Up ends Down and Hang.
func (w *shop) Up() { w.line.set(func(l *line) { l.down, l.hung = nil, false }) }

// line is a connection to a server that can be cut.
type line struct {
	grpc.ClientConnInterface
	mu      sync.Mutex
	down    error         // what each call is answered with; nil: it is up
	hung    bool          // calls are not answered at all
	falls   int           // how often it went down, by which a stream knows that it was cut
	last    error         // what it went down with last
	changed chan struct{} // closed with the next change
}

func (l *line) set(change func(*line)) {
	l.mu.Lock()
	defer l.mu.Unlock()
	change(l)
	close(l.changed)
	l.changed = make(chan struct{})
}

// enter waits until the line does not hang, and returns its state.
func (l *line) enter(ctx context.Context) (falls int, changed <-chan struct{}, err error) {
	for {
		l.mu.Lock()
		hung, falls, changed, err := l.hung, l.falls, l.changed, l.down
		l.mu.Unlock()
		if !hung {
			return falls, changed, err
		}
		select {
		case <-changed:
		case <-ctx.Done():
			return falls, changed, status.FromContextError(ctx.Err()).Err()
		}
	}
}

func (l *line) Invoke(ctx context.Context, method string, request, reply any, options ...grpc.CallOption) error {
	if _, _, err := l.enter(ctx); err != nil {
		return err
	}
	return l.ClientConnInterface.Invoke(ctx, method, request, reply, options...)
}

func (l *line) NewStream(ctx context.Context, desc *grpc.StreamDesc, method string,
	options ...grpc.CallOption) (grpc.ClientStream, error) {
	falls, _, err := l.enter(ctx)
	if err != nil {
		return nil, err
	}
	ctx, cancel := context.WithCancel(ctx)
	s, err := l.ClientConnInterface.NewStream(ctx, desc, method, options...)
	if err != nil {
		cancel()
		return nil, err
	}
	go func() { // ends the stream when the line is cut
		defer cancel()
		for {
			now, changed, _ := l.enter(ctx)
			if now != falls || ctx.Err() != nil {
				return
			}
			select {
			case <-changed:
			case <-ctx.Done():
				return
			}
		}
	}()
	return &lineStream{s, l, falls}, nil
}

// lineStream is a stream over a line.
type lineStream struct {
	grpc.ClientStream
	line  *line
	falls int
}

func (s *lineStream) RecvMsg(into any) error {
	err := s.ClientStream.RecvMsg(into)
	falls, _, _ := s.line.enter(s.Context())
	if falls != s.falls {
		return s.line.last
	}
	return err
}

// ID returns the run id of a piece of the day; empty if the shop has no pieces.
func (w *shop) ID(p scenario.Piece) string {
	if w.Day == nil {
		return ""
	}
	return w.Day.ID(p)
}
