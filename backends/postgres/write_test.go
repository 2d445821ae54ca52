package postgres

import (
	"context"
	"errors"
	"slices"
	"sync"
	"testing"

	"github.com/kagzi/kagzi/engine"
)

// A goroutine that has carried out a group carries out the next one too, and there are never more
// of them than groups at the same time.
func TestWhoCarriesAGroupOutStaysForTheNext(t *testing.T) {
	s := openAt(t, lentURL(t))
	waiting := func() int {
		s.writer.mu.Lock()
		defer s.writer.mu.Unlock()
		return s.writer.idle
	}
	for range 20 {
		start(t, s, 1)
		if idle := waiting(); idle != 1 {
			t.Fatalf("after one call at a time %d wait to carry a group out, want 1", idle)
		}
	}
	var rivals sync.WaitGroup
	for range 20 * besideWeight {
		rivals.Go(func() {
			if _, err := s.StartRuns(t.Context(), engine.StartRunsParams{
				Runs: []engine.StartRun{newStart(s)}}); err != nil {
				t.Error(err)
			}
		})
	}
	rivals.Wait()
	if idle := waiting(); idle < 1 || idle > maxGroups {
		t.Errorf("after many calls at a time %d wait to carry a group out, want 1 to %d", idle, maxGroups)
	}
}

// A batch of starts is as much work as so many calls: others of its kind need not wait for it, nor
// should all end up in one commit.
func TestBatchesOfStartsAreWrittenSideBySide(t *testing.T) {
	starts := func(n int) *call { return &call{start: &startCall{starts: make([]engine.StartRun, n)}} }
	for _, c := range []struct {
		name    string
		under   int
		waiting []*call
		want    []int // calls in each group that begins
	}{
		{"one start waits for company while a group is under way", 1, []*call{starts(1)}, nil},
		{"so do few", 1, []*call{starts(besideWeight / 2), starts(besideWeight/2 - 1)}, nil},
		{"a batch does not", 1, []*call{starts(1000)}, []int{1}},
		{"batches go apart", 0, []*call{starts(1000), starts(1000), starts(1000)}, []int{1, 1, 1}},
		{"small ones go together as far as a commit has room", 0,
			[]*call{starts(maxGroup - 1), starts(2), starts(1), starts(besideWeight)}, []int{2, 2}},
		{"no more groups than there may be", 0, []*call{
			starts(1000), starts(1000), starts(1000), starts(1000), starts(1000)}, []int{1, 1, 1, 1}},
	} {
		w := newWriter(nil)
		w.under[0] = c.under
		for _, call := range c.waiting {
			w.waiting = append(w.waiting, call)
			w.count(call)
		}
		var got []int
		for group := w.next(); len(group) > 0; group = w.next() {
			got = append(got, len(group))
		}
		if !slices.Equal(got, c.want) {
			t.Errorf("%s: groups of %v calls begin, want %v", c.name, got, c.want)
		}
	}
}

// A worker may hold MaxConcurrent runs, a run may have MaxSteps children, and the database may be
// far away.
func TestATransactionThatComesForwardIsNotCutShort(t *testing.T) {
	s := openAt(t, lentURL(t))
	start(t, s, 1)
	ctx, cancel := context.WithCancel(t.Context())
	var kind string
	err := s.attempt(ctx, nil, func(t *tx) error {
		cancel() // its time is over
		_, err := t.found("select workflow_type from runs", args{}, &kind)
		return err
	})
	if err != nil || kind != "order" {
		t.Errorf("read %q, %v, want the run's type", kind, err)
	}
}

// A bug in one operation, from which the server recovers, must not block later calls for its run,
// nor the store's Close.
func TestAVerbThatPanicsLetsGoOfItsRun(t *testing.T) {
	s := openAt(t, lentURL(t))
	run := engine.NewID(s.Now())
	ticket := engine.NewTicket(nil)
	func() {
		defer func() {
			if recover() == nil {
				t.Error("the panic was swallowed")
			}
		}()
		_, _ = inLine(s, run, ticket, "break", func(*tx) (int, error) { panic("broken") })
	}()
	answer := func(*tx) (int, error) { return 1, nil }
	if n, err := inLine(s, run, nil, "go on", answer); n != 1 || err != nil {
		t.Errorf("the next of the run is answered with %d, %v", n, err)
	}
	if _, err := inLine(s, run, engine.NewTicket(ticket), "build on it", answer); !errors.Is(
		err, engine.ErrPrevRefused) {
		t.Errorf("what builds on it is answered with %v, want ErrBehindRefused", err)
	}
}
