package storetest

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"math/rand/v2"
	"os"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/kagzi/kagzi/engine"
)

var (
	modelSeeds = flag.Int("storetest.model", 4, "how many seeds the model run tries; KAGZI_TEST_SEED replays one")
	modelSteps = flag.Int("storetest.steps", 400, "how many calls the model run makes for each seed")
)

// act is one call, as words, to a store and to the model.
type act struct {
	text  string
	store func(context.Context, engine.Store) string
	model func(*model) string
	run   engine.ID         // that it is about, if it is about one
	still func(*model) bool // with a repetition: the contract still says clearly what it means
}

// stream makes calls that make sense more often than not, out of a seed. What it does next depends on the model only.
type stream struct {
	roll   *rand.Rand
	mint   mint
	now    time.Time
	model  *model
	leases []engine.Lease // all that were ever handed out, the newest last
	past   []act          // writes under leases, to be repeated
	serial int
}

func newStream(seed uint64) *stream {
	return &stream{
		roll: rand.New(rand.NewPCG(seed, seed)), model: newModel(), now: time.Date(2026, 11, 20, 12, 0, 0, 0, time.UTC),
	}
}

// modelCases is one case for each seed.
func modelCases() []testCase {
	seeds := make([]uint64, *modelSeeds)
	for i := range seeds {
		seeds[i] = uint64(i + 1)
	}
	if seed, err := strconv.ParseUint(os.Getenv("KAGZI_TEST_SEED"), 10, 64); err == nil {
		seeds = []uint64{seed}
	}
	var cases []testCase
	for _, seed := range seeds {
		cases = append(cases, testCase{fmt.Sprintf("a random life answers like the model, seed %d", seed), func(s *stage) {
			follow(s, seed, s.store)
		}})
	}
	return cases
}

// SameRows lives one random life in two stores, which must answer alike and hold the same rows after it, as seen through
// their Views.
func SameRows(t *testing.T, openA, openB func(tb testing.TB) engine.Store) {
	for seed := range uint64(max(*modelSeeds, 1)) {
		t.Run(fmt.Sprintf("seed %d", seed+1), func(t *testing.T) {
			a, b := openA(t), openB(t)
			s := newStage(t, a)
			follow(s, seed+1, a, b)
			s.sameText("rows", everything(s, b), everything(s, a))
		})
	}
}

// follow gives one stream of calls to the model and to the stores, and compares the answers and what can be seen.
func follow(s *stage, seed uint64, stores ...engine.Store) {
	s.Helper()
	f := newStream(seed)
	var trail []string
	for n := range *modelSteps {
		a := f.next()
		want := a.model(f.model)
		trail = append(trail, fmt.Sprintf("%4d %s -> %s", n, a.text, want))
		for _, store := range stores {
			if got := a.store(s.ctx, store); got != want && !vaguer(got, want) {
				s.diverged(seed, trail, "answer", got, want)
			}
			for _, r := range f.model.runs {
				if r.ID != a.run && n%100 != 99 && n != *modelSteps-1 {
					continue
				}
				if got, want := seenRun(s.ctx, store, r.ID), r.String(); got != want {
					s.diverged(seed, trail, "run "+r.ID.String(), got, want)
				}
			}
		}
	}
}

// vaguer says that a store answered LeaseLost where the model knows of a conflict: an attempt that its run's end has closed shows
// no longer what was reported about it. Both refuse, and nothing else passes.
func vaguer(got, want string) bool {
	return want == errText(engine.ErrConflict) && strings.HasPrefix(got, errText(engine.ErrLeaseLost))
}

// diverged ends the case with the seed and the calls that led there; they are the shortest that do.
func (s *stage) diverged(seed uint64, trail []string, what, got, want string) {
	s.Helper()
	s.Fatalf("KAGZI_TEST_SEED=%d, after %d calls: %s\n got: %s\nwant: %s\nthe last calls:\n%s",
		seed, len(trail), what, got, want, strings.Join(trail[max(0, len(trail)-60):], "\n"))
}

// --- Making calls ---

func (f *stream) one(of ...string) string { return of[f.roll.IntN(len(of))] }

func (f *stream) chance(percent int) bool { return f.roll.IntN(100) < percent }

// content is something that no earlier call has said.
func (f *stream) content() string {
	f.serial++
	return fmt.Sprint("content ", f.serial)
}

// next makes a call; where the contract leaves open what it would mean now, it makes another one.
func (f *stream) next() act {
	for {
		if f.chance(30) {
			steps := []time.Duration{time.Millisecond, 300 * time.Millisecond, time.Second, 5 * time.Second, time.Minute}
			f.now = f.now.Add(steps[f.roll.IntN(len(steps))])
		}
		if a, ok := f.pick(); ok {
			return a
		}
	}
}

func (f *stream) pick() (act, bool) {
	switch n := f.roll.IntN(100); {
	case n < 14:
		return f.start(), true
	case n < 32:
		return f.claim(), true
	case n < 36:
		return f.end(), true
	case n < 40:
		return f.workerCall()
	case n < 46:
		return f.heartbeat(), true
	case n < 50:
		return f.upkeep()
	case n < 58 && len(f.past) > 0:
		return f.again()
	case len(f.leases) > 0:
		return f.work()
	}
	return act{}, false
}

func (f *stream) start() act {
	p := engine.StartRun{Run: engine.Run{
		ID: f.mint.id(f.now), Namespace: space, Queue: queue, Type: f.one("a", "b"), Priority: f.roll.IntN(3), CreatedAt: f.now,
		AvailableAt: f.now.Add(time.Duration(f.roll.IntN(2)) * time.Second), Input: text(f.one("x", "y")),
		ExternalID: f.one("", "", "ext-1", "ext-2"), RequestID: f.one("", "", "", f.content()),
	}, Reuse: engine.ExternalIDReuse(f.roll.IntN(3))}
	if f.chance(30) && len(f.model.requests) > 0 {
		p.RequestID = f.one(sortedKeys(f.model.requests)...)
	}
	if f.chance(50) {
		p.RetryPolicy = &engine.RetryPolicy{MaximumAttempts: 2, InitialIntervalMS: 100}
	}
	if f.chance(20) {
		p.Timeouts.Heartbeat = 2 * time.Minute
	}
	if f.chance(20) {
		p.Requirements = map[string]string{"gpu": f.one("", "x")}
	}
	return act{
		text: fmt.Sprintf("start %s %s external %q request %q reuse %d", p.ID, p.Type, p.ExternalID, p.RequestID, p.Reuse), run: p.ID,
		store: func(ctx context.Context, s engine.Store) string {
			answers, err := s.StartRuns(ctx, []engine.StartRun{p})
			if err != nil {
				return errText(err)
			}
			return startedText(answers[0])
		},
		model: func(m *model) string { return m.start(p) },
	}
}

func (f *stream) claim() act {
	p := engine.ClaimParams{Namespace: space, Queue: queue, HistoryBytes: engine.HistoryBytes, Now: f.now,
		Types: [][]string{{"a"}, {"a", "b"}, {"b", "a"}}[f.roll.IntN(3)]}
	if f.chance(60) {
		p.Offers = []engine.Offer{{Key: "gpu", Value: f.one("x", "y")}}
	}
	if f.chance(30) {
		p.QueueLimit = 1 + f.roll.IntN(4)
	}
	if f.chance(30) {
		p.TypeLimits = map[string]int{"a": 1 + f.roll.IntN(2)}
	}
	worker := f.one("w1", "w2", "w3")
	for range 1 + f.roll.IntN(3) {
		p.Grants = append(p.Grants, engine.Grant{WorkerID: worker, Token: f.mint.token()})
	}
	return act{
		text: fmt.Sprintf("claim %v for %s, %d grants, limits %d %v", p.Types, worker, len(p.Grants), p.QueueLimit, p.TypeLimits),
		store: func(ctx context.Context, s engine.Store) string {
			claimed, err := s.Claim(ctx, p)
			if err != nil {
				return errText(err)
			}
			answer := ""
			for _, t := range claimed.Tasks {
				answer += fmt.Sprintf("%s to %s of %s; ", t.Run.ID, t.Lease.Token.Wire()[:8], t.Run.WorkerID)
			}
			w, err := s.GetWorker(ctx, worker) // a grant of another than an ONLINE worker is no grant
			if err == nil && w.Status == engine.WorkerOnline && len(claimed.Tasks) < len(p.Grants) {
				answer += fmt.Sprintf("next %s limited %t", clock(claimed.NextDue), claimed.Limited)
			}
			return answer
		},
		model: func(m *model) string {
			answer := m.claim(p)
			for _, g := range p.Grants {
				for _, r := range m.runs {
					if r.token == g.Token {
						f.leases = append(f.leases, engine.Lease{Namespace: space, RunID: r.ID, Token: g.Token})
					}
				}
			}
			return answer
		},
	}
}

func (f *stream) end() act {
	p := engine.EndRunParams{Namespace: space, RunID: f.mint.id(f.now), Reason: f.one("", "why"), Now: f.now}
	if n := len(f.model.runs); n > 0 {
		p.RunID = f.model.runs[f.roll.IntN(n)].ID
	}
	verb := endVerbs[f.roll.IntN(len(endVerbs))]
	return act{
		text: fmt.Sprintf("%s %s", verb.name, p.RunID), run: p.RunID,
		store: func(ctx context.Context, s engine.Store) string {
			end, err := verb.call(s, ctx, p)
			return errOr(err, fmt.Sprint(end))
		},
		model: func(m *model) string { return m.end(p, verb.status) },
	}
}

func (f *stream) workerCall() (act, bool) {
	id, now := f.one("w1", "w2", "w3"), f.now
	switch f.roll.IntN(6) {
	case 0:
		return act{text: "drain " + id,
			store: func(ctx context.Context, s engine.Store) string { return errOr(s.DrainWorker(ctx, id, now), "ok") },
			model: func(m *model) string { return m.drain(id) },
		}, f.chance(30)
	case 1, 2:
		p := engine.OfflineWorkerParams{WorkerID: id, Reason: engine.OfflineReason(1 + f.roll.IntN(3)), Now: f.now}
		if w := f.model.workers[id]; w != nil {
			p.HeardAt = w.LastHeartbeatAt.Add(-time.Duration(f.roll.IntN(2)) * time.Microsecond)
		}
		return act{text: fmt.Sprintf("offline %s reason %d", id, p.Reason),
			store: func(ctx context.Context, s engine.Store) string {
				n, err := s.OfflineWorker(ctx, p)
				return errOr(err, fmt.Sprint(n))
			},
			model: func(m *model) string { return m.offline(p) },
		}, true
	}
	p := engine.RegisterWorkerParams{Chosen: true, Now: f.now, Worker: engine.Worker{ID: id, Namespace: space,
		InstanceID: id + f.one("-first", "-first", "-second"), Queues: []string{queue}, Types: []string{"a", "b"}, MaxConcurrent: 10}}
	for _, w := range f.model.workers { // an instance that is known under its id keeps it; no other may ask for it
		if w.InstanceID == p.Worker.InstanceID && w.ID != id {
			return act{}, false
		}
	}
	return act{text: "register " + id + " as " + p.Worker.InstanceID,
		store: func(ctx context.Context, s engine.Store) string {
			w, err := s.RegisterWorker(ctx, p)
			return errOr(err, w.ID+" "+w.Status.String())
		},
		model: func(m *model) string { return m.register(p) },
	}, true
}

func (f *stream) heartbeat() act {
	p := engine.HeartbeatParams{WorkerID: f.one("w1", "w2", "w3"), Completed: f.roll.IntN(3), NameWithin: time.Second, Now: f.now}
	for _, l := range f.leases[max(0, len(f.leases)-8):] {
		if f.chance(60) {
			p.Held = append(p.Held, l)
		}
	}
	p.Whole = f.chance(20)
	return act{text: fmt.Sprintf("heartbeat %s names %d whole %t", p.WorkerID, len(p.Held), p.Whole),
		store: func(ctx context.Context, s engine.Store) string {
			beat, err := s.Heartbeat(ctx, p)
			return errOr(err, fmt.Sprintf("%s lost %d", beat.Status, len(beat.Lost)))
		},
		model: func(m *model) string { return m.heartbeat(p) },
	}
}

func (f *stream) upkeep() (act, bool) {
	switch f.roll.IntN(3) {
	case 0:
		now := f.now
		return act{text: "free lost",
			store: func(ctx context.Context, s engine.Store) string {
				n, next, err := s.FreeLost(ctx, now)
				return errOr(err, fmt.Sprint(n, clock(next)))
			},
			model: func(m *model) string { return m.freeLost(now) },
		}, true
	case 1:
		p := engine.TimeoutStepsParams{Now: f.now, Limit: 1000, Roll: f.roll.Float64()}
		return act{text: "time out steps",
			store: func(ctx context.Context, s engine.Store) string {
				n, next, err := s.TimeoutSteps(ctx, p)
				return errOr(err, fmt.Sprint(n, clock(next)))
			},
			model: func(m *model) string { return m.timeoutSteps(p) },
		}, !f.severalTimeouts()
	}
	p := engine.PruneParams{Before: f.now.Add(-10 * time.Minute), Limit: 1000}
	return act{text: "prune",
		store: func(ctx context.Context, s engine.Store) string {
			n, err := s.Prune(ctx, p)
			return errOr(err, fmt.Sprint(n))
		},
		model: func(m *model) string { return m.prune(p) },
	}, f.chance(20) && !f.prunesWorkers(p.Before)
}

// severalTimeouts says that one run has several attempts past their limit: which of them is swept first is left open.
func (f *stream) severalTimeouts() bool {
	for _, r := range f.model.runs {
		over := 0
		for _, a := range r.attempts {
			if a.Status == engine.StepRunning && a.Kind == engine.StepFunction && !a.TimeoutAt.After(f.now) {
				over++
			}
		}
		if over > 1 {
			return true
		}
	}
	return false
}

// prunesWorkers says that a sweep would forget workers, which the model does not.
func (f *stream) prunesWorkers(before time.Time) bool {
	for _, w := range f.model.workers {
		if w.Status == engine.WorkerOffline && w.LastHeartbeatAt.Before(before) {
			return true
		}
	}
	return false
}

// again repeats an earlier write under a lease, word for word.
func (f *stream) again() (act, bool) {
	a := f.past[len(f.past)-1-f.roll.IntN(min(len(f.past), 20))]
	return a, a.still(f.model)
}

// work writes under a lease, most often under one of the newest.
func (f *stream) work() (act, bool) {
	l := f.leases[len(f.leases)-1-f.roll.IntN(min(len(f.leases), 6))]
	if f.chance(10) {
		l.Token = f.mint.token()
	}
	a, ok := f.write(l)
	a.run = l.RunID
	a.text = fmt.Sprintf("%s by %s of run %s", a.text, l.Token.Wire()[:8], l.RunID)
	return a, ok
}

func (f *stream) write(l engine.Lease) (act, bool) {
	name, nap := f.one("f1", "f2", "f3", "f4"), f.one("z1", "z2", "z3")
	r := f.model.run(l.RunID)
	current := r != nil && r.token == l.Token
	switch n := f.roll.IntN(100); {
	case n < 25:
		if f.chance(4) {
			name = nap
		}
		return f.begin(l, name), current || !f.touched(r, l, name)
	case n < 50:
		return f.keep(f.completeStep(l, name), l, name), f.clear(r, l, name)
	case n < 65:
		return f.keep(f.failStep(l, name), l, name), f.clear(r, l, name)
	case n < 78:
		if f.chance(4) {
			nap = name
		}
		return f.keep(f.sleep(l, nap), l, nap), !f.model.wrote(l, nap)
	case n < 86:
		return f.keep(f.finish(l), l, runsEnd), f.model.writes[writeKey(l, runsEnd)].content != "release"
	case n < 92:
		return f.keep(f.failRun(l), l, runsEnd), f.model.writes[writeKey(l, runsEnd)].content != "release"
	}
	return f.keep(f.release(l), l, runsEnd), !f.model.wrote(l, runsEnd)
}

// keep remembers a write that counts, to repeat it as long as it is the last word of its lease about its target, and no
// attempt has begun since to which it could be meant.
func (f *stream) keep(a act, l engine.Lease, target string) act {
	call := a.model
	a.model = func(m *model) string {
		before := m.writes[writeKey(l, target)]
		answer := call(m)
		if mine := m.writes[writeKey(l, target)]; mine != before {
			f.past = append(f.past, act{text: a.text + " once more by " + l.Token.Wire()[:8], run: a.run, store: a.store, model: call,
				still: func(m *model) bool {
					r := m.run(l.RunID)
					return m.writes[writeKey(l, target)] == mine && (r == nil || r.attemptsBy(l, target) < 2 && !r.closed(target))
				}})
		}
		return answer
	}
	return a
}

// clear says that the contract is clear about a new result for this step: not while it waits for a retry, unless that is due
// and the last word came from another lease; not for a timer; and not when the run's end may have closed what this lease reported before.
func (f *stream) clear(r *modelRun, l engine.Lease, name string) bool {
	if r == nil || r.token != l.Token {
		return !f.model.wrote(l, name) || r == nil || !r.Status.Ended()
	}
	last := r.latest(name)
	return last == nil || last.Kind == engine.StepFunction && (last.Status != engine.StepPending || !last.RetryAt.After(f.now) && last.Token != l.Token)
}

// closed says that the run's end has closed the step.
func (r *modelRun) closed(name string) bool {
	last := r.latest(name)
	return last != nil && last.Error != nil && last.Error.Equal(engine.RunEndedFailure())
}

// attemptsBy is how many attempts of the step this lease made or wrote last.
func (r *modelRun) attemptsBy(l engine.Lease, name string) int {
	n := 0
	for _, a := range r.attempts {
		if a.Name == name && a.Token == l.Token {
			n++
		}
	}
	return n
}

// touched says that this lease has begun or written the step, so that beginning it again when the lease is over could be
// taken for a repetition.
func (f *stream) touched(r *modelRun, l engine.Lease, name string) bool {
	return f.model.wrote(l, name) || r != nil && r.attemptsBy(l, name) > 0
}

func (f *stream) begin(l engine.Lease, name string) act {
	p := engine.BeginStepParams{Lease: l, ID: f.mint.id(f.now), Name: name, Kind: engine.StepFunction, Now: f.now,
		StartToClose: time.Duration(1+f.roll.IntN(100)) * time.Second}
	return act{text: "begin " + name,
		store: func(ctx context.Context, s engine.Store) string {
			begun, err := s.BeginStep(ctx, p)
			return errOr(err, begunText(begun))
		},
		model: func(m *model) string { return m.begin(p) },
	}
}

func (f *stream) completeStep(l engine.Lease, name string) act {
	p := engine.CompleteStepParams{Lease: l, Step: named(name), ID: f.mint.id(f.now), Output: text(f.content()), Now: f.now}
	return act{text: "complete " + name, run: l.RunID,
		store: func(ctx context.Context, s engine.Store) string {
			step, err := s.CompleteStep(ctx, p)
			return errOr(err, stepLine(step))
		},
		model: func(m *model) string { return m.complete(p) },
	}
}

func (f *stream) failStep(l engine.Lease, name string) act {
	p := engine.FailStepParams{Lease: l, Step: named(name), ID: f.mint.id(f.now), Failure: boom(f.content()), Now: f.now,
		Hold: f.chance(40), Roll: f.roll.Float64()}
	if f.chance(20) {
		p.Failure.NonRetryable = true
	}
	return act{text: fmt.Sprintf("fail %s hold %t", name, p.Hold), run: l.RunID,
		store: func(ctx context.Context, s engine.Store) string {
			v, err := s.FailStep(ctx, p)
			return errOr(err, verdictText(v))
		},
		model: func(m *model) string { return m.fail(p) },
	}
}

// sleep has one length for each name.
func (f *stream) sleep(l engine.Lease, name string) act {
	p := engine.SleepParams{Lease: l, Step: named(name), ID: f.mint.id(f.now), Duration: time.Duration(name[1]-'0') * time.Second,
		Hold: f.chance(40), Now: f.now}
	return act{text: fmt.Sprintf("sleep %s hold %t", name, p.Hold), run: l.RunID,
		store: func(ctx context.Context, s engine.Store) string { return errOr(s.Sleep(ctx, p), "ok") },
		model: func(m *model) string { return m.sleep(p) },
	}
}

func (f *stream) finish(l engine.Lease) act {
	p := engine.CompleteRunParams{Lease: l, Output: text(f.content()), Now: f.now}
	return act{text: "complete run", run: l.RunID,
		store: func(ctx context.Context, s engine.Store) string { return errOr(s.CompleteRun(ctx, p), "ok") },
		model: func(m *model) string { return m.completeRun(p) },
	}
}

func (f *stream) failRun(l engine.Lease) act {
	p := engine.FailRunParams{Lease: l, Failure: boom(f.content()), Now: f.now, Roll: f.roll.Float64()}
	return act{text: "fail run", run: l.RunID,
		store: func(ctx context.Context, s engine.Store) string {
			v, err := s.FailRun(ctx, p)
			return errOr(err, verdictText(v))
		},
		model: func(m *model) string { return m.failRun(p) },
	}
}

func (f *stream) release(l engine.Lease) act {
	p := engine.ReleaseParams{Lease: l, Park: f.chance(60), Now: f.now}
	return act{text: fmt.Sprintf("release park %t", p.Park), run: l.RunID,
		store: func(ctx context.Context, s engine.Store) string { return errOr(s.Release(ctx, p), "ok") },
		model: func(m *model) string { return m.release(p) },
	}
}

// --- Answers and rows as words ---

func errText(err error) string {
	answer := fmt.Sprintf("error of kind %d", engine.KindOf(err))
	if e, ok := errors.AsType[*engine.Error](err); ok && (e.Kind == engine.KindLeaseLost || e.Kind == engine.KindPrecondition) && e.Status != 0 {
		answer += " " + e.Status.String()
	}
	if engine.KindOf(err) == engine.KindInternal {
		answer += ": " + err.Error()
	}
	return answer
}

func errOr(err error, answer string) string {
	if err != nil {
		return errText(err)
	}
	return answer
}

func startedText(a engine.Started) string {
	if a.Err != nil {
		return errText(a.Err)
	}
	return fmt.Sprintf("run %s existed %t repeated %t", a.RunID, a.Existed, a.Repeated)
}

func verdictText(v engine.Verdict) string {
	return fmt.Sprintf("retry %t at %s", v.Retry, clock(v.RetryAt))
}

func begunText(b engine.Begun) string {
	return fmt.Sprintf("execute %t %s", b.Execute, stepLine(b.Step))
}

// stepLine is what the model knows of an attempt.
func stepLine(a engine.Step) string {
	line := fmt.Sprintf("%s#%d %s %s failures %d latest %t at %d %q", a.Name, a.Attempt, a.Kind, a.Status, a.Failures, a.Latest, a.Sequence, a.Output.Data)
	if a.Error != nil {
		line += " error " + a.Error.Message
	}
	if a.Status == engine.StepPending {
		line += " retry " + clock(a.RetryAt)
	}
	if a.Kind == engine.StepSleep {
		line += " wake " + clock(a.WakeAt)
	}
	return line
}

func runLine(r engine.Run) string {
	line := fmt.Sprintf("%s %s attempts %d failures %d steps %d due %s started %s finished %s worker %q waits %q", r.Type, r.Status, r.Attempts,
		r.Failures, r.Steps, clock(r.AvailableAt), clock(r.StartedAt), clock(r.FinishedAt), r.WorkerID, r.WaitingFor)
	if r.Status == engine.RunPending || r.Status == engine.RunSleeping {
		line += fmt.Sprintf(" losses %d", r.LeaseLosses)
	}
	if r.Error != nil && r.Status.Ended() {
		line += " error " + r.Error.Message
	}
	return line
}

func (r *modelRun) String() string {
	steps := slices.Clone(r.attempts)
	slices.SortStableFunc(steps, func(a, b *engine.Step) int { return int(a.Sequence - b.Sequence) })
	text := runLine(r.Run)
	for _, a := range steps {
		text += "\n" + stepLine(*a)
	}
	return text
}

// seenRun is a run as its store shows it, in the words of the model.
func seenRun(ctx context.Context, store engine.Store, id engine.ID) string {
	r, err := store.GetRun(ctx, space, id)
	if err != nil {
		return errText(err)
	}
	steps, _, err := store.ListSteps(ctx, space, id, "", engine.Page{Limit: engine.MaxPage})
	if err != nil {
		return errText(err)
	}
	text := runLine(r)
	for _, a := range steps {
		text += "\n" + stepLine(a)
	}
	return text
}

// everything is all rows of the namespace, in every field that Views show.
func everything(s *stage, store engine.Store) string {
	s.Helper()
	var b strings.Builder
	page := engine.Page{Limit: engine.MaxPage}
	runs, _, err := store.ListRuns(s.ctx, engine.RunFilter{Namespace: space}, page)
	s.must(err, "ListRuns")
	for _, listed := range runs {
		run, err := store.GetRun(s.ctx, space, listed.ID)
		s.must(err, "GetRun")
		b.WriteString(runText(run))
		steps, _, err := store.ListSteps(s.ctx, space, run.ID, "", page)
		s.must(err, "ListSteps")
		for _, step := range steps {
			b.WriteString(stepText(step))
		}
	}
	workers, _, err := store.ListWorkers(s.ctx, engine.WorkerFilter{}, page)
	s.must(err, "ListWorkers")
	for _, w := range workers {
		b.WriteString(workerText(w))
		leases, err := store.HeldBy(s.ctx, w.ID)
		s.must(err, "HeldBy")
		for _, l := range leases {
			b.WriteString(lines("lease of", l.RunID, "token", l.Token.Wire()))
		}
	}
	return b.String()
}
