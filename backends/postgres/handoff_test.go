package postgres

import (
	"errors"
	"testing"
	"time"

	"github.com/kagzi/kagzi/engine"
)

// waiting is a worker that waits for every started run, and counts what it was told.
type waiting struct {
	worker            string
	now               time.Time
	given             []engine.Task
	returned, unknown int
}

func (w *waiting) Offer(*engine.StartRun) engine.Match { return &credit{w, engine.NewToken()} }

// told fails the test unless the worker was told so often of each.
func (w *waiting) told(t *testing.T, given, returned, unknown int) {
	t.Helper()
	if len(w.given) != given || w.returned != returned || w.unknown != unknown {
		t.Errorf("given %d, returned %d, unknown %d, want %d, %d, %d", len(w.given), w.returned, w.unknown, given,
			returned, unknown)
	}
}

type credit struct {
	*waiting
	token engine.Token
}

func (c *credit) Slot() engine.ClaimSlot  { return engine.ClaimSlot{WorkerID: c.worker, Token: c.token} }
func (c *credit) Now() time.Time          { return c.now }
func (c *credit) Types() []string         { return []string{"order"} }
func (c *credit) Commit(task engine.Task) { c.given = append(c.given, task) }
func (c *credit) Abort()                  { c.returned++ }
func (c *credit) Unknown(error)           { c.unknown++ }

// startFor makes runs that a worker waits for.
func startFor(t *testing.T, s *Store, starts ...engine.StartRun) (*waiting, error) {
	t.Helper()
	w := &waiting{worker: "w1", now: engine.Micros(s.Now())}
	_, err := s.StartRuns(t.Context(), engine.StartRunsParams{Runs: starts, Handoff: w})
	return w, err
}

func TestWhoWaitsGetsRunsInTheCommitThatMakesThem(t *testing.T) {
	url := lentURL(t)
	s, other := openAt(t, url), openAt(t, url)
	register(t, s, "w1")
	start(t, s, 1) // makes the namespace and the lane
	if claimed, err := s.Claim(t.Context(), claimParams(s, "w1", 2)); err != nil || len(claimed.Tasks) != 1 {
		t.Fatalf("claimed %d runs (%v), want 1", len(claimed.Tasks), err)
	}
	here, elsewhere := listenTo(t, s), listenTo(t, other)
	acquaint(t, s, elsewhere)
	before := s.CommitSizes().Commits
	w, err := startFor(t, s, newStart(s), newStart(s))
	if err != nil {
		t.Fatal(err)
	}
	w.told(t, 2, 0, 0)
	if commits := s.CommitSizes().Commits - before; commits != 1 {
		t.Errorf("%d commits, want 1", commits)
	}
	awaitNotification(t, here, engine.Notification{
		Kind: engine.NotifyQueue, Namespace: "default", Name: "orders", Claimed: true})
	awaitNotification(t, here, engine.Notification{Kind: engine.NotifyRun, ID: w.given[1].Run.ID})
	// Another server learns that something is new, but has nothing to claim.
	awaitNotification(t, elsewhere, engine.Notification{Kind: engine.NotifyQueue, Namespace: "default"})
}

func TestAGroupThatFailsGivesBackWhoWaited(t *testing.T) {
	s := openAt(t, lentURL(t))
	register(t, s, "w1")
	first := newStart(s)
	w, err := startFor(t, s, first)
	if err != nil {
		t.Fatal(err)
	}
	w.told(t, 1, 0, 0)
	w, err = startFor(t, s, newStart(s), first) // the same id again fails the group; each start alone succeeds
	if err != nil {
		t.Fatal(err)
	}
	w.told(t, 0, 2, 0)
}

func TestAHandoffOfAStartOfUnknownOutcomeIsUnknown(t *testing.T) {
	s := openAt(t, lentURL(t))
	register(t, s, "w1")
	start(t, s, 1)
	s.pool.Close()
	w, err := startFor(t, s, newStart(s))
	if !errors.Is(err, engine.ErrUnavailable) {
		t.Fatalf("StartRuns: %v, want ErrUnavailable", err)
	}
	w.told(t, 0, 0, 1)
}
