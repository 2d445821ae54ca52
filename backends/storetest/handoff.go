package storetest

import (
	"context"
	"fmt"
	"slices"
	"sync"
	"time"

	"github.com/kagzi/kagzi/engine"
)

// takers is workers that wait for what is started: one credit for each of their names.
type takers struct {
	s      *stage
	types  []string
	mu     sync.Mutex
	credit []string
	minted *mint // of the tokens, for several goroutines ask
	asked  []engine.ID
	taken  map[engine.ID]*taker
}

// taker is one credit that was taken, and what has become of it.
type taker struct {
	of       *takers
	grant    engine.ClaimSlot
	settled  int
	returned bool
	task     engine.Task
}

func (s *stage) takers(workers ...string) *takers {
	return &takers{s: s, types: []string{kind}, credit: workers, minted: &mint{n: 1 << 40}, taken: map[engine.ID]*taker{}}
}

func (w *takers) Offer(start *engine.StartRun) engine.Match {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.asked = append(w.asked, start.ID)
	if len(w.credit) == 0 || !slices.Contains(w.types, start.Type) || start.AvailableAt.After(w.s.now) {
		return nil
	}
	t := &taker{of: w, grant: engine.ClaimSlot{WorkerID: w.credit[0], Token: w.minted.token()}}
	w.credit = w.credit[1:]
	w.taken[start.ID] = t
	return t
}

func (t *taker) Slot() engine.ClaimSlot { return t.grant }
func (t *taker) Now() time.Time         { return t.of.s.now }
func (t *taker) Types() []string        { return t.of.types }

func (t *taker) Commit(task engine.Task) { t.settle(func() { t.task = task }) }
func (t *taker) Abort()                  { t.settle(func() { t.returned = true }) }
func (t *taker) Unknown(error)           { t.settle(func() {}) }

func (t *taker) settle(how func()) {
	t.of.mu.Lock()
	defer t.of.mu.Unlock()
	t.settled++
	how()
}

// given is who got which run, when the starts have been answered: each credit that was taken is either spent on its run, which
// is in its worker's hands then as after a claim, or given back.
func (w *takers) given() (tasks []engine.Task) {
	w.s.Helper()
	w.mu.Lock()
	defer w.mu.Unlock()
	for id, t := range w.taken {
		equal(w.s, "words to a taker", t.settled, 1)
		if t.returned {
			continue
		}
		equal(w.s, "run that was given", t.task.Run.ID, id)
		run := w.s.run(id)
		w.s.sameRun(t.task.Run, run)
		w.s.payload("input of the task", t.task.Run.Input, run.Input)
		equal(w.s, "status of a run that was given", run.Status, engine.RunRunning)
		equal(w.s, "worker of a run that was given", run.WorkerID, t.grant.WorkerID)
		equal(w.s, "lease", t.task.Lease, engine.Lease{Namespace: run.Namespace, RunID: id, Token: t.grant.Token})
		w.s.sameTime("time of the claim", t.task.ClaimedAt, w.s.now)
		w.s.sameTime("start of the run", run.StartedAt, w.s.now)
		tasks = append(tasks, t.task)
	}
	return tasks
}

// startFor makes runs that these may take.
func (s *stage) startFor(w *takers, runs ...engine.StartRun) []engine.Started {
	s.Helper()
	answers, err := s.store.StartRuns(s.ctx, engine.StartRunsParams{Runs: runs, Handoff: w})
	s.must(err, "StartRuns with takers")
	return answers
}

// nobodyGets fails the case if one of these runs is given to a worker that waits.
func (s *stage) nobodyGets(why string, runs ...engine.StartRun) {
	s.Helper()
	w := s.takers("w1", "w1", "w1")
	s.startFor(w, runs...)
	if given := w.given(); len(given) > 0 {
		s.Fatalf("%s: run %s was given to a worker that waited", why, given[0].Run.ID)
	}
}

var takerCases = []testCase{
	{"a run that is taken as it starts is like one that was claimed", func(s *stage) {
		s.worker("w1")
		e := s.listen()
		start := s.newRun(withExternal("ext"), withRequest("req"), withPriority(-7), withPolicy(engine.RetryPolicy{MaximumAttempts: 4}),
			tagged("k", "v"), requiring("gpu", ""))
		start.Version, start.DeadlineAt, start.NamedDeadlineAt = "v2", s.now.Add(time.Hour), s.now.Add(2*time.Hour)
		start.Timeouts = engine.Timeouts{StartToClose: time.Second, Heartbeat: 2 * time.Minute, Execution: time.Hour}
		start.OnFailureWorkflow, start.OnFailureQueue = "cleanup", "failures"
		start.ParentRunID, start.ParentStepID = s.id(), s.id()
		start.Traceparent = "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01"
		start.Input = engine.Payload{Data: []byte("data"), Metadata: map[string]string{"content-type": "text/plain"}}
		w := s.takers("w1")
		equal(s, "answer", s.startFor(w, start)[0], engine.Started{RunID: start.ID})
		for _, task := range w.given() {
			e.hears("a start that is taken", ringRun(start.ID))
			equal(s, "leases of the worker", len(s.heldBy("w1")), 1)
			s.claimNothing("w1")
			equal(s, "freed with its worker", s.offline("w1", engine.OfflineLost), 0)
			s.sameTime("the end of its own heartbeat timeout", s.freeLost(s.now).Next, s.now.Add(start.Timeouts.Heartbeat))
			s.worker("w1")
			s.complete(task.Lease, "pay", "paid")
			s.finish(task.Lease, "done")
			s.status(start.ID, engine.RunCompleted)
			return
		}
		s.status(start.ID, engine.RunPending)
	}},
	{"what has waited longer is taken first", func(s *stage) {
		s.worker("w1")
		first := s.start()
		s.pass(time.Second)
		second := s.newRun(withPriority(9))
		s.nobodyGets("an older run is due", second)
		s.sameIDs("claimed", s.claimedIDs("w1", 2), []engine.ID{second.ID, first})
	}},
	{"what is due for another of the worker's types is taken first", func(s *stage) {
		s.worker("w1")
		s.start(ofType("other"), requiring("gpu", ""))
		w := s.takers("w1")
		w.types = []string{kind, "other"}
		s.startFor(w, s.newRun())
		equal(s, "given", len(w.given()), 0)
	}},
	{"what is due elsewhere, or for none of the worker's types, does not come first", func(s *stage) {
		s.worker("w1")
		given := func() int {
			w := s.takers("w1")
			s.startFor(w, s.newRun())
			return len(w.given())
		}
		before := given()
		s.start(inSpace("elsewhere"))
		s.start(inQueue("second"))
		s.start(ofType("other"))
		equal(s, "given although others are due", given(), before)
	}},
	{"the first of many is taken by who waits alone", func(s *stage) {
		s.worker("w1")
		later, low, high := s.newRun(dueAt(s.now.Add(time.Hour)), withPriority(9)), s.newRun(), s.newRun(withPriority(5))
		w := s.takers("w1")
		s.startFor(w, later, low, high)
		for _, task := range w.given() {
			equal(s, "run that was given", task.Run.ID, high.ID)
			s.sameIDs("left to a claim", s.claimedIDs("w1", 3), []engine.ID{low.ID})
		}
	}},
	{"a run with a concurrency key is looked at closer, and what comes after it waits", func(s *stage) {
		s.worker("w1")
		keyed := s.newRun(withPriority(5))
		keyed.ConcurrencyKey, keyed.ConcurrencyLimit = "k", 1
		s.nobodyGets("it has a key, or comes after one that has", keyed, s.newRun())
	}},
	{"a worker that is not ONLINE takes nothing", func(s *stage) {
		s.nobodyGets("the worker is unknown", s.newRun())
		s.worker("w1")
		s.claim("w1")
		s.offline("w1", engine.OfflineDeregistered)
		s.worker("w2")
		s.claim("w2")
		s.nobodyGets("the worker is OFFLINE", s.newRun())
	}},
	{"nobody takes what comes after a run that its worker could not take", func(s *stage) {
		for _, worker := range []string{"w1", "w2"} {
			s.worker(worker)
			s.start()
			s.finish(s.claim(worker).Lease, "done")
		}
		s.offline("w1", engine.OfflineDeregistered)
		first, second := s.newRun(), s.newRun()
		w := s.takers("w1", "w2")
		s.startFor(w, first, second)
		var given, want []engine.ID
		for _, start := range []engine.StartRun{first, second} {
			if t := w.taken[start.ID]; t != nil && !t.returned {
				given = append(given, start.ID)
			}
		}
		if len(given) > 0 {
			want = []engine.ID{first.ID, second.ID}[:len(given)]
		}
		s.sameIDs("given", given, want)
		s.sameIDs("left to a claim", s.claimedIDs("w2", 2), []engine.ID{first.ID, second.ID}[len(given):])
	}},
	{"a start that makes no run gives its taker back", func(s *stage) {
		s.worker("w1")
		first := s.start(withExternal("ext"), withRequest("req"))
		task := s.claim("w1")
		for what, again := range map[string]engine.StartRun{
			"a repetition":          s.newRun(withExternal("ext"), withRequest("req")),
			"an external id":        s.newRun(withExternal("ext")),
			"one that is not to be": s.newRun(withExternal("ext"), withReuse(engine.ReuseReject)),
		} {
			s.nobodyGets(what, again)
			_, err := s.store.GetRun(s.ctx, space, again.ID)
			s.refused(err, engine.ErrNotFound, "the run of "+what)
		}
		s.finish(task.Lease, "done")
		s.status(first, engine.RunCompleted)
	}},
	{"takers and claims never get the same run", func(s *stage) {
		s.worker("w1")
		for range rounds(3) {
			w := s.takers(slices.Repeat([]string{"w1"}, racers/2)...)
			starts, claims := make([]engine.StartRun, racers), make([]engine.ClaimParams, racers)
			for i := range starts {
				starts[i], claims[i] = s.newRun(), s.claimParams("w1", "w1")
			}
			var mu sync.Mutex
			got := map[engine.ID][]string{}
			for _, err := range atOnce(2*racers, func(i int) error {
				if i < racers {
					_, err := s.store.StartRuns(s.ctx, engine.StartRunsParams{Runs: starts[i : i+1], Handoff: w})
					return err
				}
				claimed, err := s.store.Claim(context.WithoutCancel(s.ctx), claims[i-racers])
				mu.Lock()
				defer mu.Unlock()
				for _, task := range claimed.Tasks {
					got[task.Run.ID] = append(got[task.Run.ID], fmt.Sprintf("claim %d", i-racers))
				}
				return err
			}) {
				s.must(err, "StartRuns or Claim")
			}
			for _, task := range w.given() {
				got[task.Run.ID] = append(got[task.Run.ID], "a taker")
			}
			for _, id := range s.claimedIDs("w1", 2*racers) {
				got[id] = append(got[id], "the last claim")
			}
			equal(s, "runs that somebody got", len(got), racers)
			for id, who := range got {
				if len(who) > 1 {
					s.Fatalf("run %s was given to %q", id, who)
				}
				s.status(id, engine.RunRunning)
			}
		}
	}},
}
