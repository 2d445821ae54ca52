package sqlite

import (
	"context"
	"errors"
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/kagzi/kagzi/engine"
)

// waiters is a worker that waits for every started run, and counts what it was told.
type waiters struct {
	store           *Store
	worker          string
	mu              sync.Mutex
	given           []engine.Task
	returned, asked int
	told            chan struct{} // one value per call
}

func waitersOf(s *Store, worker string) *waiters {
	return &waiters{store: s, worker: worker, told: make(chan struct{}, 100)}
}

func (w *waiters) Offer(*engine.StartRun) engine.Match {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.asked++
	return &credit{w, engine.NewToken(), engine.Micros(w.store.Now())}
}

// want fails the test unless the worker was told so often of each since the last call.
func (w *waiters) want(t *testing.T, given, returned int) {
	t.Helper()
	for range given + returned {
		<-w.told
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	if len(w.given) != given || w.returned != returned || w.asked != given+returned {
		t.Errorf("given %d, returned %d, of %d taken, want %d, %d", len(w.given), w.returned, w.asked, given, returned)
	}
	w.given, w.returned, w.asked = nil, 0, 0
}

type credit struct {
	*waiters
	token engine.Token
	now   time.Time
}

func (c *credit) Slot() engine.ClaimSlot { return engine.ClaimSlot{WorkerID: c.worker, Token: c.token} }
func (c *credit) Now() time.Time         { return c.now }
func (c *credit) Types() []string        { return []string{"t"} }
func (c *credit) Unknown(error)          { panic("SQLite knows what has happened") }

func (c *credit) Commit(task engine.Task) { c.tell(func() { c.given = append(c.given, task) }) }
func (c *credit) Abort()                  { c.tell(func() { c.returned++ }) }

func (c *credit) tell(what func()) {
	c.mu.Lock()
	defer c.mu.Unlock()
	what()
	c.told <- struct{}{}
}

// working returns a store with an ONLINE worker.
func working(t *testing.T) *Store {
	t.Helper()
	s := fresh(t)
	now := s.Now()
	if _, err := s.RegisterWorker(t.Context(),
		engine.RegisterWorkerParams{Chosen: true, Now: now, Worker: engine.Worker{
			ID: "w", Namespace: "default", Queues: []string{"q"}, Types: []string{"t"}, MaxConcurrent: 100,
			RegisteredAt: now, LastHeartbeatAt: now,
		}}); err != nil {
		t.Fatal(err)
	}
	return s
}

func TestEarlyAnsweredClaimIsOneCommit(t *testing.T) {
	s := working(t)
	if _, err := s.StartRuns(t.Context(), engine.StartRunsParams{
		Runs: []engine.StartRun{startOf("t", s)}}); err != nil {
		t.Fatal(err)
	}
	settle(t, s)
	before := s.CommitSizes()
	claimed, err := s.Claim(t.Context(), engine.ClaimParams{
		Namespace: "default", Queue: "q", Types: []string{"t"},
		Slots: []engine.ClaimSlot{{WorkerID: "w", Token: engine.NewToken()}}, Now: s.Now(),
	})
	if err != nil || len(claimed.Tasks) != 1 {
		t.Fatalf("claimed %d runs (%v), want 1", len(claimed.Tasks), err)
	}
	settle(t, s)
	after := s.CommitSizes()
	if commits, writes := after.Commits-before.Commits, after.Writes-before.Writes; commits != writes {
		t.Errorf("%d commits for %d writes one after the other, want one for each", commits, writes)
	}
}

func TestWhoWaitsGetsRunsInTheCommitThatMakesThem(t *testing.T) {
	s := working(t)
	w := waitersOf(s, "w")
	ctx := t.Context()
	before := s.CommitSizes().Commits
	first, second := startOf("t", s), startOf("t", s)
	if _, err := s.StartRuns(ctx, engine.StartRunsParams{
		Runs: []engine.StartRun{first, second}, Handoff: w}); err != nil {
		t.Fatal(err)
	}
	if commits := s.CommitSizes().Commits - before; commits != 1 {
		t.Errorf("%d commits, want 1", commits)
	}
	tasks := slices.Clone(w.given)
	w.want(t, 2, 0)
	for _, task := range tasks {
		if _, err := s.CompleteRun(t.Context(), engine.CompleteRunParams{Lease: task.Lease, Now: s.Now()}); err != nil {
			t.Errorf("end of run %s, which was given: %v", task.Run.ID, err)
		}
	}
	if _, err := s.StartRuns(t.Context(), engine.StartRunsParams{
		Runs: []engine.StartRun{startOf("t", s)}}); err != nil {
		// nobody waits for its type
		t.Fatal(err)
	}
	if _, err := s.StartRuns(ctx, engine.StartRunsParams{
		Runs: []engine.StartRun{startOf("t", s), startOf("t", s)}, Handoff: w}); err != nil {
		t.Fatal(err)
	}
	w.want(t, 0, 1) // the second is not even asked for
}

func TestRetriedGroupOffersRunsAgain(t *testing.T) {
	s := working(t)
	release := hold(t, s)
	w := waitersOf(s, "w")
	start := startOf("t", s)
	answers := make(chan error, 2)
	go func() {
		_, err := s.StartRuns(t.Context(), engine.StartRunsParams{Runs: []engine.StartRun{start}, Handoff: w})
		answers <- err
	}()
	waiting(t, s, 1)
	broken := errors.New("broken")
	go func() {
		_, err := write(t.Context(), s, "break", 0, func(tx *tx) (none struct{}, err error) {
			return none, errors.Join(insertNamespace(tx, "a"), broken)
		})
		answers <- err
	}()
	waiting(t, s, 2)
	release()
	if err := errors.Join(<-answers, <-answers); !errors.Is(err, broken) {
		t.Errorf("answers = %v, want that of the broken call alone", err)
	}
	tasks := func() []engine.Task { w.mu.Lock(); defer w.mu.Unlock(); return slices.Clone(w.given) }()
	w.want(t, 1, 1)
	if _, err := s.CompleteRun(t.Context(), engine.CompleteRunParams{Lease: tasks[0].Lease, Now: s.Now()}); err != nil {
		t.Errorf("end of the run that was given: %v", err)
	}
}

func TestWhoWaitsHearsOfAStartWhoseCallerHasGivenUp(t *testing.T) {
	s := working(t)
	release := hold(t, s)
	w := waitersOf(s, "w")
	ctx, giveUp := context.WithCancel(t.Context())
	answer := make(chan error)
	go func() {
		_, err := s.StartRuns(ctx, engine.StartRunsParams{Runs: []engine.StartRun{startOf("t", s)}, Handoff: w})
		answer <- err
	}()
	waiting(t, s, 1)
	giveUp()
	if err := <-answer; !errors.Is(err, context.Canceled) {
		t.Errorf("answer = %v, want that it gave up", err)
	}
	release()
	w.want(t, 1, 0)
}

func TestCallerOfLargeCallWaits(t *testing.T) {
	large := engine.Payload{Data: make([]byte, maxAbandoned+1)}
	for name, call := range map[string]func(ctx context.Context, s *Store, held engine.Lease, ended engine.ID) error{
		"start": func(ctx context.Context, s *Store, _ engine.Lease, _ engine.ID) error {
			start := startOf("t", s)
			start.Input = large
			_, err := s.StartRuns(ctx, engine.StartRunsParams{Runs: []engine.StartRun{start}})
			return err
		},
		"retry with another input": func(ctx context.Context, s *Store, _ engine.Lease, ended engine.ID) error {
			now := s.Now()
			_, err := s.RetryRun(ctx, engine.RetryRunParams{
				SteerParams: engine.SteerParams{Namespace: "default", RunID: ended,
					AuditID: engine.NewID(now), Now: now},
				ID: engine.NewID(now), Restart: true, Input: &large,
			})
			return err
		},
		"end of a run that continues as new": func(ctx context.Context, s *Store, held engine.Lease,
			_ engine.ID) error {
			next := startOf("t", s)
			next.Input = large
			_, err := s.CompleteRun(ctx, engine.CompleteRunParams{Lease: held, ContinueAs: &next, Now: s.Now()})
			return err
		},
	} {
		t.Run(name, func(t *testing.T) {
			s := working(t)
			ended, held := startOf("t", s), startOf("t", s)
			if _, err := s.StartRuns(t.Context(), engine.StartRunsParams{
				Runs: []engine.StartRun{ended, held}}); err != nil {
				t.Fatal(err)
			}
			if _, err := s.TerminateRun(t.Context(),
				engine.EndRunParams{Namespace: "default", RunID: ended.ID, AuditID: engine.NewID(s.Now()),
					Now: s.Now()}); err != nil {
				t.Fatal(err)
			}
			claimed, err := s.Claim(t.Context(), engine.ClaimParams{
				Namespace: "default", Queue: "q", Types: []string{"t"},
				Slots: []engine.ClaimSlot{{WorkerID: "w", Token: engine.NewToken()}}, Now: s.Now(),
			})
			if err != nil || len(claimed.Tasks) != 1 {
				t.Fatalf("claimed %d runs (%v), want 1", len(claimed.Tasks), err)
			}
			release := hold(t, s)
			ctx, giveUp := context.WithCancel(t.Context())
			answer := make(chan error, 1)
			go func() { answer <- call(ctx, s, claimed.Tasks[0].Lease, ended.ID) }()
			waiting(t, s, 1)
			giveUp() // the caller gave up long before anything is written
			release()
			if err := <-answer; err != nil {
				t.Errorf("answer = %v, want that it is written", err)
			}
		})
	}
}
