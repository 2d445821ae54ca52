package kagzitest_test

import (
	"cmp"
	"context"
	"errors"
	"flag"
	"fmt"
	"log/slog"
	"math/rand/v2"
	"net"
	"os"
	"slices"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"google.golang.org/grpc"

	"github.com/kagzi/kagzi/engine"
	"github.com/kagzi/kagzi/engine/simulate/host"
	kagziv1 "github.com/kagzi/kagzi/proto/kagzi/v1"
	kagzi "github.com/kagzi/kagzi/sdk"
	"github.com/kagzi/kagzi/sdk/kagzitest"
)

var (
	faulty     = flag.Int("programs.faulty", 15, "how many random programs are tried among faults; at most 5 with -short")
	faultyTold = flag.Bool("programs.told", false, "with -v: tell of each of these what happened in it")
)

const (
	namespace = "default"
	heartbeat = 4 * time.Second
	lease     = 12 * time.Second
	// longest bounds what a program waits for among faults, where heartbeats go on all the while.
	longest = time.Minute
	// rest is how long a program may take beside its calls when the last fault is over: a worker that could not reach the server for long tries again
	// after a minute, and what others had claimed for workers that are gone comes back by their leases.
	rest = 5 * time.Minute
)

// plan is what goes wrong in a program, by its seed.
type plan struct {
	rate   float64
	fates  []string
	gentle bool // no fault costs anybody a lease
	events []event
	slots  [2]int // of each worker
	heal   time.Duration
	start  kagzi.StartOptions // of the program's run
	fails  int                // how often that fails when it has come to its end, and is tried again
}

// event is a fault that comes at a time: "cut", "silence" and "kill" meet the host of a worker or, the first two, of the client; "off" and "drain" are an
// operator's words to a worker; "pause" are those to the run.
type event struct {
	kind  string
	at    time.Duration
	who   int
	lasts time.Duration
}

// newPlan has faults meet a program that takes so long.
func newPlan(r *rand.Rand, want time.Duration) plan {
	p := plan{heal: want + want/2 + time.Minute, slots: [2]int{1 + r.IntN(4), 1 + r.IntN(4)}}
	p.rate = []float64{0, 0.05, 0.15, 0.3}[r.IntN(4)]
	p.fates = [][]string{
		{fateLose}, {fateFail, fateLose}, {fateLate, fateLose}, {fateCutBefore, fateCutAfter}, {fateOffBefore, fateOffAfter},
		{fateFail, fateLose, fateCutAfter, fateCutBefore, fateOffAfter, fateOffBefore, fateLate},
	}[r.IntN(6)]
	kinds := []string{"cut", "silence", "kill", "off", "drain", "pause"}
	r.Shuffle(len(kinds), func(i, j int) { kinds[i], kinds[j] = kinds[j], kinds[i] })
	for _, kind := range kinds[:r.IntN(4)] {
		for range 1 + r.IntN(3) {
			within := p.heal // or as long as the program is likely to be at work
			if r.IntN(3) > 0 {
				within = want + want/4 + time.Second
			}
			e := event{kind: kind, at: time.Duration(r.Int64N(int64(within))), who: r.IntN(3), lasts: time.Duration(r.Int64N(int64(time.Minute)))}
			e.lasts = min(e.lasts, p.heal-e.at)
			p.events = append(p.events, e)
		}
	}
	p.start.RequestID = "the-program"
	if r.IntN(3) == 0 { // so that who has lost contact keeps it for longer
		p.start.HeartbeatTimeout = lease + time.Duration(r.IntN(30))*time.Second
	}
	if r.IntN(3) == 0 {
		p.fails = 1 + r.IntN(2)
		p.start.Retry = &kagzi.Retry{Attempts: 100}
	}
	p.gentle = len(p.events) == 0 && !slices.ContainsFunc(p.fates, func(fate string) bool { return fate != fateFail && fate != fateLose })
	return p
}

// among is a server among faults, with two workers and a client that they meet.
type among struct {
	*testing.T
	plan
	env    *kagzitest.Env
	faults *faults
	client *kagzi.Client
	host   *host.Host // of the client
	run    *kagzi.Run
	began  time.Time
	stop   context.CancelFunc
	ctx    context.Context // until the test is over
	group  sync.WaitGroup

	eventful  context.Context // until nothing happens any more
	endEvents context.CancelFunc
	happening sync.WaitGroup

	handle func(w *kagzi.Worker)

	mu     sync.Mutex
	hands  [2]*hand
	probes [2]int // steps of probes that are at work, by worker
}

// hand is one life of a worker.
type hand struct {
	host   *host.Host
	worker *kagzi.Worker
	ctx    context.Context
	kill   context.CancelFunc
}

// prepare has the plan's faults meet the server's calls.
func (a *among) prepare(p plan) {
	a.plan = p
	a.ctx, a.stop = context.WithCancel(context.WithoutCancel(a.Context()))
	a.eventful, a.endEvents = context.WithCancel(a.ctx)
	f := a.faults
	f.mu.Lock()
	defer f.mu.Unlock()
	f.rate, f.fates = p.rate, p.fates
	f.someHost, f.off = a.someHost, a.takeOff
	if p.gentle {
		f.spare = []string{"Heartbeat", "RegisterWorker", "OfflineWorker"}
	}
}

func (a *among) options(h *host.Host) []grpc.DialOption {
	return []grpc.DialOption{grpc.WithContextDialer(h.Dial)}
}

// open brings the client and the workers up.
func (a *among) open(handle func(w *kagzi.Worker)) {
	a.handle, a.began, a.host = handle, time.Now(), a.newHost()
	client, err := kagzi.NewClient(kagzi.ClientOptions{
		Profile: kagzi.NoProfile, Address: "passthrough:///kagzitest", Namespace: namespace, Logger: slog.New(slog.DiscardHandler), DialOptions: a.options(a.host),
	})
	if err != nil {
		a.Fatal(err)
	}
	a.client = client
	for i := range a.hands {
		a.hands[i] = a.hire(i)
	}
	a.faults.begin()
	for i := range a.hands {
		a.group.Go(func() { a.man(i) })
	}
	for _, e := range a.events {
		a.after(e.at, func() { a.happen(e) })
	}
	a.after(a.heal, a.faults.heal)
}

// after has f called at a time after the beginning, unless nothing is to happen any more by then.
func (a *among) after(d time.Duration, f func()) {
	a.happening.Go(func() {
		if pause(a.eventful, d-time.Since(a.began)) {
			f()
		}
	})
}

func (a *among) pause(d time.Duration) bool { return pause(a.ctx, d) }

// pause is false when ctx ends.
func pause(ctx context.Context, d time.Duration) bool {
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-timer.C:
		return true
	case <-ctx.Done():
		return false
	}
}

// close ends workers and client.
func (a *among) close() {
	a.faults.heal()
	a.endEvents()
	a.happening.Wait()
	a.stop()
	a.group.Wait()
	if err := a.client.Close(); err != nil {
		a.Error(err)
	}
}

func (a *among) hire(i int) *hand {
	h := &hand{host: a.newHost()}
	h.ctx, h.kill = context.WithCancel(a.ctx)
	h.worker = kagzi.NewWorker(kagzi.WorkerOptions{
		Profile: kagzi.NoProfile, Address: "passthrough:///kagzitest", Namespace: namespace, Queue: "default", Logger: slog.New(slog.DiscardHandler),
		MaxConcurrent: a.slots[i], DrainTimeout: time.Second, HandleSignals: []os.Signal{}, DialOptions: a.options(h.host),
	})
	a.handle(h.worker)
	kagzi.Handle(h.worker, "probe", func(ctx kagzi.Context, _ int) (int, error) { return a.probe(ctx, i) })
	return h
}

// man has a worker in the i-th place until the test is over.
func (a *among) man(i int) {
	for {
		a.mu.Lock()
		h := a.hands[i]
		a.mu.Unlock()
		_ = h.worker.Run(h.ctx) // that runs were handed back is no fault
		h.kill()
		if !a.pause(time.Second) {
			return
		}
		a.mu.Lock()
		a.hands[i] = a.hire(i)
		a.mu.Unlock()
	}
}

func (a *among) hand(i int) *hand {
	a.mu.Lock()
	defer a.mu.Unlock()
	return a.hands[i%len(a.hands)]
}

// someHost is that of a worker or of the client.
func (a *among) someHost(who int) *host.Host {
	if who %= 3; who == 2 {
		return a.host
	}
	return a.hand(who).host
}

// newHost is a machine that the server can be reached from.
func (a *among) newHost() *host.Host {
	return host.New(func(ctx context.Context) (net.Conn, int, error) {
		conn, err := a.env.Dial(ctx)
		return conn, 0, err
	})
}

// silence has nothing come through for d.
func (a *among) silence(h *host.Host, d time.Duration) {
	if h.Hush() {
		pause(a.eventful, d)
		h.Speak()
	}
}

// takeOff is an operator's worker offline, in the store as no fault meets it.
func (a *among) takeOff(who uint64) {
	id := a.hand(int(who % 2)).worker.ID()
	if id == "" {
		return
	}
	now := a.env.Store().Now()
	if _, err := a.env.Store().OfflineWorker(context.Background(), engine.OfflineWorkerParams{
		WorkerID: id, Reason: engine.OfflineForced, AuditID: engine.NewID(now), Now: now,
	}); err != nil && !errors.Is(err, engine.ErrNotFound) {
		a.Errorf("worker offline: %v", err)
	}
}

// happen carries an event out.
func (a *among) happen(e event) {
	a.faults.hit(e.kind)
	switch e.kind {
	case "cut":
		a.someHost(e.who).Cut(host.All)
	case "silence":
		a.silence(a.someHost(e.who), e.lasts)
	case "kill":
		h := a.hand(e.who)
		h.host.Die()
		pause(a.eventful, e.lasts) // its code goes on meanwhile, and counts for nothing
		h.kill()
	case "off":
		a.takeOff(uint64(e.who))
	case "drain":
		admin := kagziv1.NewAdminServiceClient(a.client.Conn())
		_, _ = admin.DrainWorker(a.ctx, &kagziv1.DrainWorkerRequest{WorkerId: a.hand(e.who).worker.ID()}) // refused when it is off
	case "pause":
		a.pauseRun(e.lasts)
	}
}

// pauseRun is an operator's pause of the run, and its end.
func (a *among) pauseRun(d time.Duration) {
	a.mu.Lock()
	run := a.run
	a.mu.Unlock()
	if run == nil {
		return
	}
	_ = a.insist(func() error { return run.Pause(a.ctx, "a look") }) // refused when it has ended
	pause(a.eventful, d)
	_ = a.insist(func() error { return run.Resume(a.ctx, "go on") })
}

// insist repeats a call until it is known what has become of it.
func (a *among) insist(call func() error) error {
	for {
		err := call()
		if err == nil || a.ctx.Err() != nil || !inDoubt(err) {
			return err
		}
		a.pause(time.Second)
	}
}

// inDoubt says that a call may or may not have counted, or a run still be under way.
func inDoubt(err error) bool {
	var refusal *kagzi.Error
	var end *kagzi.RunError
	switch {
	case errors.As(err, &end):
		return false
	case errors.As(err, &refusal):
		return refusal.Code == kagzi.CodeUnavailable || refusal.Code == kagzi.CodeTimeout || refusal.Code == kagzi.CodeInternal
	}
	return true
}

// start starts the program's run, with its signals.
func (a *among) start(p program) *kagzi.Run {
	var run *kagzi.Run
	if err := a.insist(func() (err error) {
		run, err = kagzi.Start(a.ctx, a.client, "program", 0, a.plan.start)
		return err
	}); err != nil {
		a.Fatal(err)
	}
	a.mu.Lock()
	a.run = run
	a.mu.Unlock()
	p.each(func(c *call) {
		if c.kind == "signal" {
			a.after(c.sent, func() {
				_ = a.insist(func() error { return kagzi.Signal(a.ctx, run, c.name, 1, kagzi.SignalOptions{ID: c.name}) }) // refused when the run has ended
			})
		}
	})
	return run
}

// result is what the run comes to, by a time.
func result[Out any](a *among, run *kagzi.Run, by time.Duration) (out Out, took time.Duration, err error) {
	ctx, cancel := context.WithTimeout(a.ctx, by)
	defer cancel()
	err = a.insist(func() (err error) {
		if out, err = kagzi.Result[Out](ctx, run); ctx.Err() != nil {
			a.late(run)
		}
		return err
	})
	return out, time.Since(a.began), err
}

// late fails a test whose run does not end.
func (a *among) late(run *kagzi.Run) {
	why, err := run.Explain(a.ctx)
	if err != nil {
		a.Fatalf("the run has not ended, and nobody can say why: %v", err)
	}
	a.Fatalf("the run has not ended %s after the last fault: %s", time.Since(a.began)-a.heal, why.Summary)
}

// stay is one stay of the program's run on a worker.
type stay struct {
	*ledger
	run  string
	mu   sync.Mutex
	seen map[string]outcome
}

// outcome is what a call came to.
type outcome struct {
	value int
	err   error
}

func (o outcome) String() string {
	if step := (*kagzi.StepError)(nil); errors.As(o.err, &step) {
		return fmt.Sprintf("%d, %+v", o.value, *step)
	}
	return fmt.Sprintf("%d, %v", o.value, o.err)
}

// ledger is what is known of a program's calls over all stays.
type ledger struct {
	*among
	before map[string][]string // by call: those that come before it
	steps  map[string]bool     // the names of steps

	mu     sync.Mutex
	number int
	begun  map[string]int     // how often its code has begun, by step
	final  map[string]outcome // what a call has come to for good
}

// newLedger is that of a program, or of some that follow each other.
func newLedger(a *among, programs ...program) *ledger {
	l := &ledger{among: a, before: map[string][]string{}, steps: map[string]bool{}, begun: map[string]int{}, final: map[string]outcome{}}
	var before []string
	for _, p := range programs {
		before = l.order(p, before)
	}
	return l
}

// order notes for each call of a program which come before it, and returns those that come before what follows.
func (l *ledger) order(p program, before []string) []string {
	for _, c := range p {
		l.before[c.name] = before
		l.steps[c.name] = c.kind == "step" || c.kind == "retried"
		first, n := before, len(before)
		before = append(before[:n:n], c.name)
		for _, branch := range c.branches {
			before = append(before, l.order(branch, first)[n:]...)
		}
	}
	return before
}

func (l *ledger) stay(ctx kagzi.Context) *stay {
	return &stay{ledger: l, run: kagzi.Info(ctx).RunID, seen: map[string]outcome{}}
}

// values is what the calls without an error came to.
func (s *stay) values() map[string]int {
	s.mu.Lock()
	defer s.mu.Unlock()
	values := map[string]int{}
	for name, o := range s.seen {
		if o.err == nil {
			values[name] = o.value
		}
	}
	return values
}

// saw notes what a call came to. A result that the server has told is so for good. What this worker has made, a step's result or that a call was
// cancelled, is so when it is recorded, and of a lease that is lost it never is.
func (s *stay) saw(name string, value int, err error) {
	o := outcome{value, err}
	s.mu.Lock()
	s.seen[name] = o
	s.mu.Unlock()
	if err != nil || s.steps[name] {
		return
	}
	s.ledger.mu.Lock()
	defer s.ledger.mu.Unlock()
	final, is := s.final[name]
	if is && final.err == nil && final.value != value {
		s.Errorf("%s came to %s for good, and later to %s", name, final, o)
	}
	if !is {
		s.final[name] = o
	}
}

// begins is told when a step's code does: what its code builds on has to be recorded by then. The result is another one each time.
func (s *stay) begins(name string) int {
	recorded := s.recorded(s.run)
	s.mu.Lock()
	defer s.mu.Unlock()
	s.ledger.mu.Lock()
	defer s.ledger.mu.Unlock()
	for _, before := range s.before[name] {
		o, seen := s.seen[before]
		if !seen {
			continue
		}
		if final, is := s.final[before]; is && final.String() != o.String() {
			s.Errorf("step %s begins behind %s, which came to %s here, and to %s for good", name, before, o, final)
		}
		s.final[before] = o
		if s.steps[before] && o.err == nil && recorded[before] != fmt.Sprint(o.value) {
			s.Errorf("step %s begins behind %s, whose result %d is recorded as %q", name, before, o.value, recorded[before])
		}
	}
	s.number++
	s.begun[name]++
	return s.number
}

// recordsOf is a run's steps as the store has them.
func (a *among) recordsOf(run string) []engine.Step {
	steps, _, err := a.env.Store().ListSteps(context.Background(), namespace, idOf(a.T, run), "", engine.Page{Limit: 1000})
	if err != nil {
		a.Error(err)
	}
	return steps
}

// calmDown ends what goes wrong, and waits until both workers are there and nothing is left to do.
func (a *among) calmDown() {
	a.faults.heal()
	a.endEvents()
	a.happening.Wait()
	for limit := time.Now().Add(rest); !a.settled(); a.pause(time.Second) {
		if time.Now().After(limit) {
			a.Fatalf("a worker has not come back, or a child not ended, within %s", rest)
		}
	}
	a.pause(2*lease + 20*time.Second) // what others had claimed is free again, and the longest step that nobody waits for is over
}

// settled says that both workers are there and all runs have ended; children may outlive a run that was cancelled.
func (a *among) settled() bool {
	for i := range a.hands {
		w, err := a.env.Store().GetWorker(a.ctx, cmp.Or(a.hand(i).worker.ID(), "none"))
		if err != nil || w.Status != engine.WorkerOnline {
			return false
		}
	}
	return !slices.ContainsFunc(a.runs(), func(r engine.Run) bool { return !r.Status.Ended() })
}

func (a *among) runs() []engine.Run {
	runs, _, err := a.env.Store().ListRuns(a.ctx, engine.RunFilter{Namespace: namespace}, engine.Page{Limit: 1000})
	if err != nil {
		a.Fatal(err)
	}
	return runs
}

// probe is a workflow that holds a slot for a while.
func (a *among) probe(ctx kagzi.Context, worker int) (int, error) {
	return kagzi.Step(ctx, "hold", func(context.Context) (int, error) {
		count := func(n int) {
			a.mu.Lock()
			defer a.mu.Unlock()
			if a.probes[worker] += n; a.probes[worker] > a.slots[worker] {
				a.Errorf("worker %d works on %d runs at once, want at most %d", worker, a.probes[worker], a.slots[worker])
			}
		}
		count(1)
		defer count(-1)
		time.Sleep(5 * time.Second)
		return 0, nil
	})
}

// hasAllSlots wants each worker to take as many runs at once as it may.
func (a *among) hasAllSlots() {
	began := time.Now()
	var runs []*kagzi.Run
	for range a.slots[0] + a.slots[1] {
		run, err := kagzi.Start(a.ctx, a.client, "probe", 0, kagzi.StartOptions{})
		if err != nil {
			a.Fatal(err)
		}
		runs = append(runs, run)
	}
	for _, run := range runs {
		if _, err := kagzi.Result[int](a.ctx, run); err != nil {
			a.Errorf("a probe: %v", err)
		}
	}
	if took := time.Since(began); took > 6*time.Second {
		a.Errorf("workers with %v slots needed %s for as many runs of 5 s: slots are lost", a.slots, took)
	}
}

// leftBehind looks at what there is in the end: the run and those children that it has on record, and nothing that is held. It returns how many.
func (a *among) leftBehind(run *kagzi.Run) (children int) {
	for _, s := range a.recordsOf(run.ID()) {
		if !s.ChildRunID.IsZero() {
			children++
		}
	}
	if n := len(a.runs()); n != 1+children {
		a.Errorf("there are %d runs, want the program's and %d children", n, children)
	}
	for i := range a.hands {
		if held, err := a.env.Store().HeldBy(a.ctx, a.hand(i).worker.ID()); err != nil || len(held) > 0 {
			a.Errorf("worker %d holds %d runs in the end, %v", i, len(held), err)
		}
	}
	return children
}

// eachFaultyProgram tries as many seeds as are asked for.
func eachFaultyProgram(t *testing.T, try func(a *among, r *rand.Rand)) {
	n := *faulty
	if testing.Short() {
		n = min(n, 5)
	}
	for seed := *firstProgram; seed < *firstProgram+uint64(n) && !t.Failed(); seed++ {
		f := &faults{seed: seed, calls: map[string]int{}, hits: map[string]int{}, recorded: map[string]string{}, ended: map[engine.ID]engine.Token{}}
		kagzitest.RunAmongFaults(t, heartbeat, lease, func(s engine.Store) engine.Store { f.Store = s; return f }, func(t *testing.T, env *kagzitest.Env) {
			a := &among{T: t, env: env, faults: f}
			f.t = t
			defer func() {
				if t.Failed() || *faultyTold {
					t.Logf("seed %d: %s events %v; again: go test ./sdk/kagzitest -run '%s' -args -programs.faulty=1 -programs.from=%[1]d", seed, f, a.events, t.Name())
				}
			}()
			try(a, rand.New(rand.NewPCG(seed, 7)))
		})
	}
}

// shorten bounds what a program waits for.
func (p program) shorten() {
	p.each(func(c *call) {
		c.takes, c.sent = min(c.takes, longest), min(c.sent, 2*longest)
		if c.kind == "step" {
			c.takes = min(c.takes, 20*time.Second)
		}
		for i := range c.children {
			c.children[i] = min(c.children[i], longest)
		}
	})
}

// crowd has children wait for each other's slots.
func (p program) crowd(r *rand.Rand) {
	limit := r.IntN(4)
	p.each(func(c *call) {
		if limit > 0 && r.IntN(2) == 0 {
			c.options.ConcurrencyKey, c.options.ConcurrencyLimit = "crowd", limit
		}
	})
}

// counts is how many children a program starts, and how often its steps fail.
func (p program) counts() (children, failures int) {
	p.each(func(c *call) {
		switch c.kind {
		case "child":
			children++
		case "children":
			children += len(c.children)
		case "retried":
			failures += c.fails
		}
	})
	return children, failures
}

// replayed wants the run as it stands to be replayed by the code, if it can be had.
func replayed[Out any](a *among, when string, look func(kagzi.Context, int) (Out, error)) {
	a.mu.Lock()
	run := a.run
	a.mu.Unlock()
	if run == nil {
		return
	}
	record, err := record(a.T, run)
	if err != nil {
		return
	}
	if err := kagzi.Replay(record, look, kagzi.ReplayOptions{}); err != nil {
		a.Errorf("a replay %s: %v", when, err)
	}
}

// The same programs as of TestARandomProgramTakesAsLong…, with shorter waits, on a server whose calls fail, are carried out and told to have failed, or
// come late, while connections are cut and fall silent, workers are killed, drained and taken off, leases end, and the run is paused: what that costs is
// time, and code that runs again. Many of them, and how a program is tried again:
//
//	go test ./sdk/kagzitest -run RandomProgramAmongFaults -args -programs.faulty=400
//	go test ./sdk/kagzitest -run RandomProgramAmongFaults -v -args -programs.faulty=1 -programs.from=258 -programs.told
func TestARandomProgramAmongFaultsComesToWhatItsCallsCameTo(t *testing.T) {
	eachFaultyProgram(t, func(a *among, r *rand.Rand) {
		p := (&author{Rand: r, prefix: "call-"}).program(2)
		p.shorten()
		want := p.end(0)
		a.prepare(newPlan(r, want))
		defer a.close()
		p.crowd(r)
		l := newLedger(a, p)
		var endings atomic.Int64
		code := func(ctx kagzi.Context, _ int) (map[string]int, error) {
			s := l.stay(ctx)
			err := p.run(ctx, s)
			if err == nil && endings.Add(1) <= int64(a.fails) {
				err = errors.New("again as a whole")
			}
			return s.values(), err
		}
		look := func(ctx kagzi.Context, _ int) (map[string]int, error) {
			s := &viewer{seen: map[string]int{}}
			err := p.run(ctx, s)
			return s.seen, err
		}
		a.open(func(w *kagzi.Worker) {
			kagzi.Handle(w, "nap", nap)
			kagzi.Handle(w, "program", code)
		})
		for _, at := range []time.Duration{want / 3, want * 3 / 4} {
			a.after(at, func() { replayed(a, "at "+at.String(), look) })
		}
		run := a.start(p)
		got, took, err := result[map[string]int](a, run, a.heal+want+rest)
		if err != nil || took < want || a.gentle && took > want+2*late {
			a.Errorf("it took %s and came to %v, want %s at least and no error; gently met: %v", took, err, want, a.gentle)
		}
		a.calmDown()
		children, failures := p.counts()
		if n := a.leftBehind(run); n != children {
			a.Errorf("it has %d children, want %d", n, children)
		}
		replayed(a, "at the end", look)
		l.check(run, p, got, failures)
		a.hasAllSlots()
		if *faultyTold {
			a.Logf("it took %s, want %s at least, gentle: %v", took, want, a.gentle)
		}
		if a.Failed() {
			a.Logf("the program, which takes %s:\n%s", want, p)
		}
	})
}

// As TestARandomProgramThatIsCancelled…, likewise: what goes wrong keeps no run from its clean-up, nor the clean-up from its end.
func TestARandomProgramAmongFaultsThatIsCancelledCleansUpInFull(t *testing.T) {
	eachFaultyProgram(t, func(a *among, r *rand.Rand) {
		p := (&author{Rand: r, prefix: "call-"}).program(2)
		undo := (&author{Rand: r, prefix: "undo-"}).program(1)
		p.shorten()
		undo.shorten()
		p.crowd(r)
		undo.crowd(r)
		p.each(func(c *call) {
			if c.kind == "signal" && r.IntN(3) == 0 {
				c.limit = time.Second + time.Duration(r.IntN(60))*time.Second
			}
		})
		calls := 0
		undo.each(func(c *call) {
			c.limit = time.Minute
			calls++
		})
		want := p.end(0)
		a.prepare(newPlan(r, want))
		defer a.close()
		l := newLedger(a, p, undo)
		began, done := make(chan struct{}), false
		var first sync.Once
		codeOf := func(witnessOf func(kagzi.Context) witness, done func(error)) func(kagzi.Context, int) (int, error) {
			return func(ctx kagzi.Context, _ int) (int, error) {
				w := witnessOf(ctx)
				err := p.run(ctx, w)
				if errors.Is(err, kagzi.ErrCancelled) || ctx.Err() != nil {
					done(undo.run(kagzi.Cleanup(ctx), w))
					return 2, err
				}
				return 1, err
			}
		}
		code := codeOf(func(ctx kagzi.Context) witness { first.Do(func() { close(began) }); return l.stay(ctx) }, func(err error) {
			if err != nil {
				a.Errorf("the clean-up came to %v", err)
			}
			done = true
		})
		look := codeOf(func(kagzi.Context) witness { return &viewer{seen: map[string]int{}} }, func(error) {})
		a.open(func(w *kagzi.Worker) {
			kagzi.Handle(w, "nap", nap)
			kagzi.Handle(w, "program", code)
		})
		run := a.start(p)
		cancelAt := time.Duration(r.Int64N(int64(want + time.Second)))
		a.after(cancelAt, func() {
			select {
			case <-began: // else there is nothing to clean up
				_ = a.insist(func() error { return run.CancelGracefully(a.ctx, 24*time.Hour, "") }) // refused when it has ended
			case <-a.eventful.Done():
			}
		})
		for _, at := range []time.Duration{cancelAt / 2, cancelAt + time.Second, cancelAt + 30*time.Second} {
			a.after(at, func() { replayed(a, "at "+at.String(), look) })
		}
		_, took, err := result[int](a, run, a.heal+want+time.Duration(calls)*2*time.Minute+rest)
		a.calmDown()
		a.leftBehind(run)
		replayed(a, "at the end", look)
		cleaned := err != nil && a.output(run) != "1" // else the code was at its end before it was told, or heard of
		if cleaned && !done {
			a.Errorf("cancelled at %s it took %s and came to %v, cleaned up: %v", cancelAt, took, err, done)
		}
		undo.each(func(c *call) {
			if recorded := l.recorded(run.ID())[c.name]; cleaned && c.kind == "step" && (recorded == "" || l.faults.recordOf(run.ID(), c.name) != recorded) {
				a.Errorf("step %s of the clean-up is recorded as %q, and was taken as %q", c.name, recorded, l.faults.recordOf(run.ID(), c.name))
			}
		})
		a.hasAllSlots()
		if a.Failed() {
			a.Logf("the program, which takes %s, and is cancelled at %s:\n%s\n%s", want, cancelAt, p, undo)
		}
	})
}

// output is what a run has come to, whatever its status.
func (a *among) output(run *kagzi.Run) string {
	r, err := a.env.Store().GetRun(a.ctx, namespace, idOf(a.T, run.ID()))
	if err != nil {
		a.Fatal(err)
	}
	return string(r.Output.Data)
}

// viewer is the witness of a replay, which runs no step.
type viewer struct {
	mu   sync.Mutex
	seen map[string]int
}

func (v *viewer) saw(name string, value int, err error) {
	v.mu.Lock()
	defer v.mu.Unlock()
	if err == nil {
		v.seen[name] = value
	}
}

func (v *viewer) begins(string) int { return -1 }

// recorded is the results of a run's steps, by name.
func (l *ledger) recorded(run string) map[string]string {
	recorded := map[string]string{}
	for _, s := range l.recordsOf(run) {
		if s.Latest && s.Status == engine.StepCompleted {
			recorded[s.Name] = string(s.Output.Data)
		}
	}
	return recorded
}

// check holds the run's result against what is recorded, and against what the program is.
func (l *ledger) check(run *kagzi.Run, p program, got map[string]int, failures int) {
	recorded := l.recorded(run.ID())
	p.each(func(c *call) {
		if c.kind != "step" && c.kind != "retried" {
			return
		}
		value, saw := got[c.name]
		if !saw || recorded[c.name] != fmt.Sprint(value) || l.faults.recordOf(run.ID(), c.name) != recorded[c.name] {
			l.Errorf("step %s came to %d, is recorded as %q and was taken as %q", c.name, value, recorded[c.name], l.faults.recordOf(run.ID(), c.name))
		}
		if begun := l.begun[c.name]; begun < 1 || l.gentle && begun != 1+c.fails {
			l.Errorf("the code of step %s ran %d times, want %d", c.name, begun, 1+c.fails)
		}
	})
	d, err := run.Describe(l.ctx)
	if err != nil || d.Status != kagzi.StatusCompleted || d.Attempts > 1+failures+l.fails || l.gentle && d.Attempts != 1+failures+l.fails {
		l.Errorf("the run is %v, %v, want it completed and at most %d failures counted", d, err, failures)
	}
	signals, _, err := l.env.Store().ListSignals(l.ctx, namespace, idOf(l.T, run.ID()), engine.Page{Limit: 1000})
	for _, s := range signals {
		if s.StepName != s.Name {
			l.Errorf("signal %s was taken by %q", s.Name, s.StepName)
		}
	}
	if err != nil {
		l.Error(err)
	}
}

func idOf(t *testing.T, run string) engine.ID {
	id, err := engine.ParseID(run)
	if err != nil {
		t.Fatal(err)
	}
	return id
}
