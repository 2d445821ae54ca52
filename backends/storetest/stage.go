package storetest

import (
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"maps"
	"slices"
	"time"

	"github.com/kagzi/kagzi/engine"
)

// What the cases call things when it does not matter.
const (
	space = "default"
	queue = "orders"
	kind  = "order"
)

// somebody is who steers runs by hand.
var somebody = engine.Actor{Name: "local", Peer: "127.0.0.1:4711"}

// stage is a fresh store, a clock that stands still until it is moved, and short words for the verbs. Ids, tokens and
// times come from counters, so a case does the same each time.
type stage struct {
	T
	store  engine.Store
	ctx    context.Context
	now    time.Time
	minted *mint
}

func newStage(t T, store engine.Store) *stage {
	return &stage{
		T: t, store: store, ctx: t.Context(), minted: new(mint),
		now: time.Date(2026, 11, 20, 12, 0, 0, 123456000, time.UTC),
	}
}

// mint makes ids and tokens out of a counter.
type mint struct{ n uint64 }

// id is a UUIDv7 for the moment now; ids of one mint grow as long as the moments do.
func (m *mint) id(now time.Time) engine.ID {
	m.n++
	id := engine.FirstID(now)
	fraction := uint16(now.Nanosecond() % 1e6 << 12 / 1e6)
	binary.BigEndian.PutUint16(id[6:8], 0x7000|fraction)
	binary.BigEndian.PutUint64(id[8:], 0x8000000000000000|m.n)
	return id
}

func (m *mint) token() engine.Token {
	m.n++
	var t engine.Token
	binary.BigEndian.PutUint64(t[:8], m.n*0x9e3779b97f4a7c15)
	binary.BigEndian.PutUint64(t[8:], m.n)
	return t
}

func (s *stage) id() engine.ID       { return s.minted.id(s.now) }
func (s *stage) token() engine.Token { return s.minted.token() }

// pass moves the clock.
func (s *stage) pass(d time.Duration) { s.now = engine.Micros(s.now.Add(d)) }

// must fails the case when err is not nil.
func (s *stage) must(err error, what string) {
	s.Helper()
	if err != nil {
		s.Fatalf("%s: %v, want no error", what, err)
	}
}

// refused fails the case unless err is of the target's kind.
func (s *stage) refused(err, target error, what string) {
	s.Helper()
	if !errors.Is(err, target) {
		s.Fatalf("%s: error = %v (kind %d), want kind %d", what, err, engine.KindOf(err), engine.KindOf(target))
	}
}

// lost fails the case unless err is LeaseLost with that status.
func (s *stage) lost(err error, status engine.RunStatus, what string) {
	s.Helper()
	s.refused(err, engine.ErrLeaseLost, what)
	s.explained(err, status, what)
}

// explained fails the case unless err carries the run's status.
func (s *stage) explained(err error, status engine.RunStatus, what string) {
	s.Helper()
	if e, ok := errors.AsType[*engine.Error](err); !ok || e.Status != status {
		s.Fatalf("%s: error %v does not carry the status %s", what, err, status)
	}
}

// equal fails the case unless got is want.
func equal[V comparable](s *stage, what string, got, want V) {
	s.Helper()
	if got != want {
		s.Fatalf("%s = %v, want %v", what, got, want)
	}
}

// sameTime is equal for times: the same microsecond, in UTC.
func (s *stage) sameTime(what string, got, want time.Time) {
	s.Helper()
	if !got.Equal(want) || got.IsZero() != want.IsZero() {
		s.Fatalf("%s = %s, want %s", what, clock(got), clock(want))
	}
	if got.Location() != time.UTC {
		s.Fatalf("%s is not in UTC: %s", what, got)
	}
}

func clock(t time.Time) string {
	if t.IsZero() {
		return "unset"
	}
	return t.Format("2006-01-02T15:04:05.000000Z07:00")
}

// --- Starting ---

// newRun is a start with nothing special; the changes make it so.
func (s *stage) newRun(changes ...func(*engine.StartRun)) engine.StartRun {
	r := engine.StartRun{Run: engine.Run{
		ID: s.id(), Namespace: space, Queue: queue, Type: kind,
		CreatedAt: s.now, AvailableAt: s.now, Input: text("input"),
	}}
	for _, change := range changes {
		change(&r)
	}
	return r
}

// start makes one run and returns its id.
func (s *stage) start(changes ...func(*engine.StartRun)) engine.ID {
	s.Helper()
	return s.started(s.newRun(changes...)).RunID
}

// started makes one run and returns the answer, which must be no refusal.
func (s *stage) started(r engine.StartRun) engine.Started {
	s.Helper()
	answer := s.tryStart(r)
	s.must(answer.Err, "start")
	return answer
}

// tryStart makes one run and returns the answer.
func (s *stage) tryStart(r engine.StartRun) engine.Started {
	s.Helper()
	return s.startAll(r)[0]
}

func (s *stage) startAll(runs ...engine.StartRun) []engine.Started {
	s.Helper()
	answers, err := s.store.StartRuns(s.ctx, engine.StartRunsParams{Runs: runs})
	s.must(err, "StartRuns")
	equal(s, "answers of StartRuns", len(answers), len(runs))
	return answers
}

func inQueue(q string) func(*engine.StartRun)   { return func(r *engine.StartRun) { r.Queue = q } }
func ofType(t string) func(*engine.StartRun)    { return func(r *engine.StartRun) { r.Type = t } }
func inSpace(n string) func(*engine.StartRun)   { return func(r *engine.StartRun) { r.Namespace = n } }
func withPriority(p int) func(*engine.StartRun) { return func(r *engine.StartRun) { r.Priority = p } }
func withExternal(id string) func(*engine.StartRun) {
	return func(r *engine.StartRun) { r.ExternalID = id }
}
func withRequest(id string) func(*engine.StartRun) {
	return func(r *engine.StartRun) { r.RequestID = id }
}
func withReuse(u engine.ExternalIDReuse) func(*engine.StartRun) {
	return func(r *engine.StartRun) { r.Reuse = u }
}
func dueAt(t time.Time) func(*engine.StartRun) { return func(r *engine.StartRun) { r.AvailableAt = t } }
func withPolicy(p engine.RetryPolicy) func(*engine.StartRun) {
	return func(r *engine.StartRun) { r.RetryPolicy = &p }
}
func withTimeouts(t engine.Timeouts) func(*engine.StartRun) {
	return func(r *engine.StartRun) { r.Timeouts = t }
}
func requiring(pairs ...string) func(*engine.StartRun) {
	return func(r *engine.StartRun) { r.Requirements = pairMap(pairs) }
}
func tagged(pairs ...string) func(*engine.StartRun) {
	return func(r *engine.StartRun) { r.Tags = pairMap(pairs) }
}

func pairMap(pairs []string) map[string]string {
	m := map[string]string{}
	for i := 0; i < len(pairs); i += 2 {
		m[pairs[i]] = pairs[i+1]
	}
	return m
}

func text(data string) engine.Payload { return engine.Payload{Data: []byte(data)} }

func boom(message string) engine.Failure { return engine.Failure{Type: "boom", Message: message} }

// --- Workers ---

// newWorker is a registration with nothing special, under this id.
func (s *stage) newWorker(id string) engine.Worker {
	return engine.Worker{
		ID: id, Namespace: space, InstanceID: "instance-" + id, Queues: []string{queue}, Types: []string{kind},
		Hostname: "host", PID: 7, Version: "1", Platform: "linux/amd64", MaxConcurrent: 100,
	}
}

// worker registers a worker of this id, once, and returns the id.
func (s *stage) worker(id string) string {
	s.Helper()
	w := s.register(s.newWorker(id), true)
	equal(s, "id of the registered worker", w.ID, id)
	return w.ID
}

func (s *stage) register(w engine.Worker, chosen bool) engine.Worker {
	s.Helper()
	got, err := s.store.RegisterWorker(s.ctx, engine.RegisterWorkerParams{Worker: w, Chosen: chosen, Now: s.now})
	s.must(err, "RegisterWorker "+w.ID)
	return got
}

// heartbeat is a plain sign of life, which must be accepted.
func (s *stage) heartbeat(worker string, changes ...func(*engine.HeartbeatParams)) engine.Beat {
	s.Helper()
	beat, err := s.tryHeartbeat(worker, changes...)
	s.must(err, "Heartbeat "+worker)
	return beat
}

func (s *stage) tryHeartbeat(worker string, changes ...func(*engine.HeartbeatParams)) (engine.Beat, error) {
	p := engine.HeartbeatParams{WorkerID: worker, Now: s.now}
	for _, change := range changes {
		change(&p)
	}
	return s.store.Heartbeat(s.ctx, p)
}

// offline takes a worker off for this reason, with the last heartbeat seen being right now's register.
func (s *stage) offline(worker string, reason engine.OfflineReason) int {
	s.Helper()
	w, err := s.store.GetWorker(s.ctx, worker)
	s.must(err, "GetWorker "+worker)
	taken, err := s.store.ForceOfflineWorker(s.ctx, engine.OfflineWorkerParams{
		WorkerID: worker, Reason: reason, HeardAt: w.LastHeartbeatAt, Now: s.now,
	})
	s.must(err, "OfflineWorker "+worker)
	equal(s, "taken off by this call", taken.Off, w.Status != engine.WorkerOffline)
	return taken.Freed
}

// lose takes a worker off as lost and brings the same instance back.
func (s *stage) lose(worker string) {
	s.Helper()
	s.offline(worker, engine.OfflineLost)
	s.worker(worker)
}

// heldAfterLosses is the lease of a run whose worker w1 has been lost so often before.
func (s *stage) heldAfterLosses(n int) engine.Lease {
	s.Helper()
	l := s.held()
	for range n {
		s.lose("w1")
		s.pass(time.Hour)
		l = s.claim("w1").Lease
	}
	return l
}

// --- Looking ---

func (s *stage) run(id engine.ID) engine.Run {
	s.Helper()
	run, err := s.store.GetRun(s.ctx, space, id)
	s.must(err, "GetRun")
	return run
}

func (s *stage) status(id engine.ID, want engine.RunStatus) engine.Run {
	s.Helper()
	run := s.run(id)
	equal(s, "status of the run", run.Status, want)
	return run
}

// attempts is all attempts of a run's steps; of one step when it is named.
func (s *stage) attempts(run engine.ID, name string) []engine.Step {
	s.Helper()
	steps, _, err := s.store.ListSteps(s.ctx, space, run, name, engine.Page{Limit: engine.MaxPage})
	s.must(err, "ListSteps")
	return steps
}

// step is the latest attempt of a step.
func (s *stage) step(run engine.ID, name string) engine.Step {
	s.Helper()
	for _, step := range s.attempts(run, name) {
		if step.Latest {
			return step
		}
	}
	s.Fatalf("step %q has no latest attempt", name)
	return engine.Step{}
}

func (s *stage) workerState(id string) engine.Worker {
	s.Helper()
	w, err := s.store.GetWorker(s.ctx, id)
	s.must(err, "GetWorker "+id)
	return w
}

func (s *stage) heldBy(worker string) []engine.Lease {
	s.Helper()
	held, err := s.store.HeldBy(s.ctx, worker)
	s.must(err, "HeldBy "+worker)
	var leases []engine.Lease
	for _, h := range held {
		leases = append(leases, h.Lease)
	}
	return leases
}

// failure fails the case unless got is want.
func (s *stage) failure(what string, got *engine.Failure, want engine.Failure) {
	s.Helper()
	if got == nil || !got.Equal(want) {
		s.Fatalf("%s = %+v, want %+v", what, got, want)
	}
}

func (s *stage) payload(what string, got, want engine.Payload) {
	s.Helper()
	if !got.Equal(want) {
		s.Fatalf("%s = %.80q %v, want %.80q %v", what, got.Data, got.Metadata, want.Data, want.Metadata)
	}
}

// ids prints as the last digits, which a mint counts.
func ids(list []engine.ID) string {
	out := ""
	for _, id := range list {
		out += fmt.Sprintf(" %x", id[12:])
	}
	return out
}

func (s *stage) sameIDs(what string, got, want []engine.ID) {
	s.Helper()
	equal(s, what, ids(got), ids(want))
}

func sortedKeys[V any](m map[string]V) []string { return slices.Sorted(maps.Keys(m)) }
