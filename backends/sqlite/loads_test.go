package sqlite

import (
	"errors"
	"runtime"
	"testing"
	"time"

	"github.com/kagzi/kagzi/engine"
)

// startedRun makes a run with its own input.
func startedRun(t *testing.T, s *Store, namespace, input string) engine.ID {
	t.Helper()
	now := s.Now()
	id := engine.NewID(now)
	started, err := s.StartRuns(t.Context(), engine.StartRunsParams{Runs: []engine.StartRun{{Run: engine.Run{
		ID: id, Namespace: namespace, Queue: "q", Type: "w", Attempts: 1, CreatedAt: now, AvailableAt: now,
		Input: engine.Payload{Data: []byte(input)},
	}}}})
	if err != nil || started[0].Err != nil {
		t.Fatalf("start: %v, %v", err, started)
	}
	return id
}

func TestRunsThatAreReadTogetherAreEachOnesOwn(t *testing.T) {
	s := fresh(t)
	a, b := startedRun(t, s, "here", "a"), startedRun(t, s, "there", "b")
	group := []*load{
		{namespace: "here", id: a}, {namespace: "here", id: a}, {namespace: "there", id: b},
		{namespace: "here", id: b}, {namespace: "here", id: engine.NewID(time.Now())},
	}
	for _, l := range group {
		l.done = make(chan struct{})
	}
	s.loadGroup(group)
	for i, want := range []string{"a", "a", "b", "", ""} {
		l := group[i]
		select {
		case <-l.done:
		default:
			t.Fatalf("load %d was not answered", i)
		}
		if want == "" {
			if !errors.Is(l.err, engine.ErrNotFound) {
				t.Errorf("load %d: err %v, want not found", i, l.err)
			}
			continue
		}
		if l.err != nil || string(l.run.Input.Data) != want {
			t.Errorf("load %d: input %q, err %v, want %q", i, l.run.Input.Data, l.err, want)
		}
	}
	if &group[0].run.Input.Data[0] == &group[1].run.Input.Data[0] {
		t.Error("two callers were given the same bytes")
	}
}

func TestGetRunDuringReadIsReadNext(t *testing.T) {
	s := fresh(t)
	a, b := startedRun(t, s, "here", "a"), startedRun(t, s, "here", "b")
	first := &load{namespace: "here", id: a, done: make(chan struct{})}
	if !s.loads.lead(first) {
		t.Fatal("nobody was reading, and the first caller is not to lead")
	}
	answers := make(chan engine.Run, 2)
	for _, id := range []engine.ID{a, b} {
		go func() {
			run, err := s.GetRun(t.Context(), "here", id)
			if err != nil {
				t.Error(err)
			}
			answers <- run
		}()
	}
	for standing := 0; standing < 3; { // the event itself: they are queued
		runtime.Gosched()
		s.loads.mu.Lock()
		standing = len(s.loads.waiting)
		s.loads.mu.Unlock()
	}
	s.lead()
	<-first.done
	for range 2 {
		if run := <-answers; string(run.Input.Data) != map[engine.ID]string{a: "a", b: "b"}[run.ID] {
			t.Errorf("run %s has input %q", run.ID, run.Input.Data)
		}
	}
	if run, err := s.GetRun(t.Context(), "here", a); err != nil || run.ID != a {
		t.Errorf("afterwards: %v", err)
	}
}
