package sqlite

import (
	"fmt"
	"runtime"
	"testing"
	"time"

	"github.com/kagzi/kagzi/engine"
)

// deferCalls makes n calls that may wait up to maxWait for others, each with its own row, and
// returns their answers.
func deferCalls(t *testing.T, s *Store, n int, maxWait time.Duration) chan error {
	t.Helper()
	answers := make(chan error, n)
	for i := range n {
		go func() {
			_, err := writeAs(t.Context(), s, &call{verb: "deferred", mayWait: maxWait},
				func(tx *tx) (struct{}, error) {
					return struct{}{}, insertNamespace(tx, fmt.Sprintf("deferred-%d-%d", maxWait, i))
				})
			answers <- err
		}()
	}
	return answers
}

// riding returns when n calls are deferred.
func riding(t *testing.T, s *Store, n int) {
	t.Helper()
	for count := 0; count < n; runtime.Gosched() {
		s.writer.deferred.mu.Lock()
		count = len(s.writer.deferred.calls)
		s.writer.deferred.mu.Unlock()
		if t.Context().Err() != nil {
			t.Fatalf("%d calls ride, want %d", count, n)
		}
	}
}

func answered(t *testing.T, answers chan error, n int) {
	t.Helper()
	for range n {
		if err := <-answers; err != nil {
			t.Fatal(err)
		}
	}
}

func TestDeferredCallsShareOneCommit(t *testing.T) {
	s := fresh(t)
	before := s.CommitSizes().Commits
	answers := deferCalls(t, s, 10, time.Hour)
	riding(t, s, 10)
	if _, err := write(t.Context(), s, "go", 0, func(*tx) (none struct{}, err error) { return none, nil }); err != nil {
		t.Fatal(err)
	}
	answered(t, answers, 10)
	if got := s.CommitSizes().Commits - before; got != 1 {
		t.Errorf("%d commits, want one for the call and the 10 that rode along", got)
	}
}

func TestDeferredCallsBeginACommitOfTheirOwnInTheEnd(t *testing.T) {
	s := fresh(t)
	before := s.CommitSizes().Commits
	waiting := deferCalls(t, s, 10, time.Hour)
	riding(t, s, 10)
	if got := s.CommitSizes().Commits - before; got != 0 {
		t.Fatalf("%d commits, want none while all can wait", got)
	}
	// the first that cannot wait any longer commits the others too
	answered(t, deferCalls(t, s, 1, time.Millisecond), 1)
	answered(t, waiting, 10)
	if got := s.CommitSizes().Commits - before; got != 1 {
		t.Errorf("%d commits for calls that could all wait for the first, want 1", got)
	}
}

func TestDeferredCallsSplitIntoCommits(t *testing.T) {
	s := fresh(t)
	const n = 2*maxDeferred + 10
	before := s.CommitSizes().Commits
	waiting := deferCalls(t, s, n, 100*time.Hour)
	riding(t, s, n)
	answered(t, deferCalls(t, s, 1, time.Millisecond), 1)
	answered(t, waiting, n)
	if got := s.CommitSizes().Commits - before; got != 3 {
		t.Errorf("%d commits for %d calls, want 3 of about %d", got, n, maxDeferred)
	}
}

func TestClosingDoesNotWaitForDeferredCalls(t *testing.T) {
	s := fresh(t)
	answers := deferCalls(t, s, 2*maxDeferred, time.Hour)
	riding(t, s, 2*maxDeferred)
	if err := s.Close(); err != nil {
		t.Fatal(err)
	}
	answered(t, answers, 2*maxDeferred)
}

func TestDeferredCallsDoNotDelayEarlyAnswers(t *testing.T) {
	w := newWriter(&Store{})
	w.deferred.add(&call{mayWait: time.Hour})
	w.group = []*call{{harmless: true}}
	if w.joinDeferred() || len(w.group) != 1 {
		t.Error("a group that is answered at once took a deferred call along")
	}
	w.group = append(w.group, &call{})
	if !w.joinDeferred() || len(w.group) != 3 {
		t.Error("a group that waits for its sync took no deferred call along")
	}
}

func TestAHeartbeatThatMayWaitIsDeferred(t *testing.T) {
	s := fresh(t)
	_, err := s.RegisterWorker(t.Context(), engine.RegisterWorkerParams{
		Worker: engine.Worker{ID: "w1", Namespace: "default", InstanceID: "i1", Queues: []string{"q"},
			Types: []string{"w"}, MaxConcurrent: 10},
		Chosen: true, Now: s.Now(),
	})
	if err != nil {
		t.Fatal(err)
	}
	answer := make(chan error, 1)
	go func() {
		_, err := s.Heartbeat(t.Context(), engine.HeartbeatParams{
			WorkerID: "w1", Whole: true, NameWithin: time.Minute, MaxWait: time.Hour, Now: s.Now()})
		answer <- err
	}()
	riding(t, s, 1)
	if err := s.Close(); err != nil {
		t.Fatal(err)
	}
	answered(t, answer, 1)
}
