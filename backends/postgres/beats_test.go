package postgres

import (
	"errors"
	"fmt"
	"math"
	"runtime"
	"testing"
	"time"

	"github.com/kagzi/kagzi/engine"
)

// beat returns a heartbeat with one completed step.
func beat(s *Store, worker string) engine.HeartbeatParams {
	return engine.HeartbeatParams{WorkerID: worker, Completed: 1, Whole: true, NameWithin: time.Minute, Now: s.Now()}
}

// beating registers so many workers, w0 and on, and returns a heartbeat of each.
func beating(t *testing.T, s *Store, n int) (calls []engine.HeartbeatParams) {
	t.Helper()
	for i := range n {
		calls = append(calls, beat(s, fmt.Sprint("w", i)))
		register(t, s, calls[i].WorkerID)
	}
	return calls
}

// gathered makes all these heartbeats wait together and then starts them. It returns the channel of
// their errors, and a function for the number of commits since.
func gathered(t *testing.T, s *Store, calls ...engine.HeartbeatParams) (answers []chan error, commits func() uint64) {
	t.Helper()
	before := s.CommitSizes().Commits
	s.beats.mu.Lock()
	s.beats.under += maxBeatGroups
	s.beats.mu.Unlock()
	for _, p := range calls {
		answer := make(chan error, 1)
		answers = append(answers, answer)
		go func() {
			_, err := s.Heartbeat(t.Context(), p)
			answer <- err
		}()
	}
	for deadline := time.Now().Add(20 * time.Second); ; runtime.Gosched() {
		s.beats.mu.Lock()
		if len(s.beats.waiting) == len(calls) {
			break
		}
		s.beats.mu.Unlock()
		if time.Now().After(deadline) {
			t.Fatal("the heartbeats do not wait for each other")
		}
	}
	s.beats.under -= maxBeatGroups
	s.beats.advance()
	s.beats.mu.Unlock()
	return answers, func() uint64 { return s.CommitSizes().Commits - before }
}

// expectDone fails the test unless the worker has done that much.
func expectDone(t *testing.T, s *Store, worker string, want int64) {
	t.Helper()
	if w, err := s.GetWorker(t.Context(), worker); err != nil || w.Completed != want {
		t.Errorf("%s has completed %d (%v), want %d", worker, w.Completed, err, want)
	}
}

func TestHeartbeatsThatWaitShareOneCommit(t *testing.T) {
	s := openAt(t, lentURL(t))
	calls := beating(t, s, 100)
	answers, commits := gathered(t, s, calls...)
	for _, answer := range answers {
		if err := <-answer; err != nil {
			t.Fatal(err)
		}
	}
	if got := commits(); got != 1 {
		t.Errorf("%d commits for %d heartbeats, want 1", got, len(calls))
	}
	for _, p := range calls {
		expectDone(t, s, p.WorkerID, 1)
	}
}

func TestWaitingHeartbeatsOfOneWorkerAreOrdered(t *testing.T) {
	s := openAt(t, lentURL(t))
	register(t, s, "w1")
	register(t, s, "w2")
	answers, commits := gathered(t, s, beat(s, "w1"), beat(s, "w1"), beat(s, "w2"), beat(s, "w1"))
	for _, answer := range answers {
		if err := <-answer; err != nil {
			t.Fatal(err)
		}
	}
	if got := commits(); got < 3 {
		// more if a commit takes longer than the groups' pace: a heartbeat that finds its worker
		// locked goes alone
		t.Errorf("%d commits, want one for each heartbeat of w1", got)
	}
	expectDone(t, s, "w1", 3)
	expectDone(t, s, "w2", 1)
}

// A worker that is about to be deregistered may be locked for long, if it held many runs.
func TestHeartbeatsDoNotWaitForLockedWorker(t *testing.T) {
	s := openAt(t, lentURL(t))
	for _, worker := range []string{"w1", "w2", "w3"} {
		register(t, s, worker)
	}
	changing, err := adminConnection(t, s.pool.Config().ConnString()).Begin(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	if _, err := changing.Exec(t.Context(), "select from workers where worker_id = 'w1' for update"); err != nil {
		t.Fatal(err)
	}
	answers, commits := gathered(t, s, beat(s, "w1"), beat(s, "w2"), beat(s, "w3"), beat(s, "nobody"))
	for _, answer := range answers[1:3] {
		if err := <-answer; err != nil {
			t.Errorf("Heartbeat beside one that waits: %v", err)
		}
	}
	if err := <-answers[3]; !errors.Is(err, engine.ErrNotFound) {
		t.Errorf("Heartbeat of an unknown worker: %v, want ErrNotFound", err)
	}
	if got := commits(); got != 1 {
		t.Errorf("%d commits beside one that waits, want 1", got)
	}
	select {
	case err := <-answers[0]:
		t.Errorf("the heartbeat of a worker that is locked: %v, want it to wait", err)
	default:
	}
	if err := changing.Rollback(t.Context()); err != nil {
		t.Fatal(err)
	}
	if err := <-answers[0]; err != nil {
		t.Errorf("Heartbeat of a worker that was locked: %v", err)
	}
	expectDone(t, s, "w1", 1)
	expectDone(t, s, "w2", 1)
}

func TestAHeartbeatThatTheDatabaseRefusesFailsAlone(t *testing.T) {
	s := openAt(t, lentURL(t))
	calls := beating(t, s, 4)
	calls[1].Active = math.MaxInt
	answers, _ := gathered(t, s, calls...)
	for i, answer := range answers {
		done := int64(1)
		if i == 1 {
			done = 0
		}
		if err := <-answer; (err == nil) != (done == 1) {
			t.Errorf("heartbeat %d: %v", i, err)
		}
		expectDone(t, s, calls[i].WorkerID, done)
	}
}

func TestHeartbeatsOfUnknownOutcomeSaySo(t *testing.T) {
	s := openAt(t, lentURL(t))
	register(t, s, "w1")
	s.pool.Close()
	answers, _ := gathered(t, s, beat(s, "w1"), beat(s, "w2"))
	for _, answer := range answers {
		if err := <-answer; !errors.Is(err, engine.ErrUnavailable) {
			t.Errorf("Heartbeat: %v, want ErrUnavailable", err)
		}
	}
}

// A large group of other writes may take long; so may several of them.
func TestAHeartbeatDoesNotWaitForOtherWrites(t *testing.T) {
	s := openAt(t, lentURL(t))
	register(t, s, "w1")
	s.writer.mu.Lock()
	s.writer.under[0] += maxGroups
	s.writer.mu.Unlock()
	answer := make(chan error, 1)
	go func() {
		_, err := s.Heartbeat(t.Context(), beat(s, "w1"))
		answer <- err
	}()
	select {
	case err := <-answer:
		if err != nil {
			t.Error(err)
		}
	case <-time.After(20 * time.Second):
		t.Error("the heartbeat waits")
	}
	s.writer.mu.Lock()
	s.writer.under[0] -= maxGroups
	s.writer.advance()
	s.writer.mu.Unlock()
}

func TestWhenAGroupOfHeartbeatsBegins(t *testing.T) {
	// when the latest group began; fixed, because the test must not depend on its speed
	later := time.Now().Add(time.Hour)
	const never = time.Hour
	was := time.Now().Add(-time.Minute) // when the deferred calls came
	for _, test := range []struct {
		name     string
		beats    *beats
		waiting  int
		deferred int
		can      time.Duration // how long they may wait
		waits    bool
	}{
		{"who is alone waits for nobody", &beats{began: later}, 1, 0, 0, false},
		{"nor do several behind one", &beats{began: later}, 10, 0, 0, false},
		{"behind several others may come", &beats{began: later, several: true}, 1, 0, 0, true},
		{"but only for a time", &beats{began: time.Now().Add(-time.Hour), several: true}, 1, 0, 0, false},
		{"beside another others may come", &beats{began: later, under: 1}, 1, 0, 0, true},
		{"but not for longer than usual", &beats{began: time.Now().Add(-time.Hour), under: 1}, 1, 0, 0, false},
		{"many wait for nobody", &beats{began: later, several: true}, beatsWorth, 0, 0, false},
		{"beside another it takes more of them", &beats{began: later, under: 1}, beatsWorth, 0, 0, true},
		{"many more wait for nobody", &beats{began: later, under: 1}, 2 * beatsWorth, 0, 0, false},
		{"deferred calls wait for others", &beats{}, 0, 1, never, true},
		{"and go with the first", &beats{}, 1, 10, never, false},
		{"as soon as it goes", &beats{began: later, several: true}, 1, 10, never, true},
		{"but only as long as they can", &beats{began: later, several: true}, 0, 1, time.Second, false},
		{"also beside another", &beats{began: later, under: 1}, 0, 1, time.Second, false},
		{"many of them wait", &beats{}, 0, maxBeats - 1, never, true},
		{"until they fill a group", &beats{began: later, several: true}, 0, maxBeats, never, false},
	} {
		for range test.waiting {
			test.beats.waiting = append(test.beats.waiting, &beatCall{p: &engine.HeartbeatParams{}})
		}
		for range test.deferred {
			test.beats.waiting = append(test.beats.waiting,
				&beatCall{p: &engine.HeartbeatParams{MaxWait: test.can}, came: was})
		}
		if wait := test.beats.wait(); (wait > 0) != test.waits {
			t.Errorf("%s: waits %s", test.name, wait)
		}
	}
}

func TestAHeartbeatThatMayWaitIsRecordedInTheEnd(t *testing.T) {
	s := open(t).(*Store)
	calls := beating(t, s, 3)
	calls[0].MaxWait, calls[1].MaxWait, calls[2].MaxWait = time.Hour, 2*time.Hour, time.Millisecond
	answers := make(chan error, len(calls))
	go func() {
		for i, p := range calls {
			go func() {
				_, err := s.Heartbeat(t.Context(), p)
				answers <- err
			}()
			for waiting := 0; p.MaxWait >= time.Hour && waiting <= i; runtime.Gosched() {
				s.beats.mu.Lock()
				waiting = len(s.beats.waiting)
				s.beats.mu.Unlock()
			}
		}
	}()
	for range calls { // the last one starts all, although the timer was hours away
		if err := <-answers; err != nil {
			t.Error(err)
		}
	}
	again := calls[2]
	if _, err := s.Heartbeat(t.Context(), again); err != nil {
		t.Error(err)
	}
	for i, want := range []int64{1, 1, 2} {
		expectDone(t, s, calls[i].WorkerID, want)
	}
}

func TestAGroupOfHeartbeatsIsOfALimitedSize(t *testing.T) {
	holding := func(worker string, leases int) *beatCall {
		return &beatCall{p: &engine.HeartbeatParams{WorkerID: worker, Held: make([]engine.Lease, leases)}}
	}
	b := beats{waiting: []*beatCall{holding("a", 2*maxBeatLeases), holding("b", 1), holding("c", 0), holding("b", 0)}}
	for _, want := range []string{"a", "bc", "b", ""} {
		got := ""
		for _, c := range b.take() {
			got += c.p.WorkerID
		}
		if got != want {
			t.Errorf("a group of %q, want %q", got, want)
		}
	}
	for i := range maxBeats + 1 {
		b.waiting = append(b.waiting, holding(fmt.Sprint(i), 0))
	}
	if group := b.take(); len(group) != maxBeats || len(b.waiting) != 1 {
		t.Errorf("%d in a group and %d left, want %d and 1", len(group), len(b.waiting), maxBeats)
	}
}
