package kagzitest_test

import (
	"cmp"
	"context"
	"errors"
	"log/slog"
	"math/rand/v2"
	"net"
	"os"
	"slices"
	"sync"
	"testing"
	"time"

	"google.golang.org/grpc"

	"github.com/kagzi/kagzi/engine"
	"github.com/kagzi/kagzi/engine/lab/host"
	kagzi "github.com/kagzi/kagzi/sdk"
	"github.com/kagzi/kagzi/sdk/kagzitest"
)

const (
	namespace = "default"
	heartbeat = 4 * time.Second
	lease     = 12 * time.Second
	// longest limits what a program waits for when there are faults, as heartbeats continue all the
	// time.
	longest = time.Minute
	// rest limits the extra time of a program after the last fault: a worker without contact
	// retries after up to a minute, and runs claimed for workers that are gone come back when their
	// leases expire.
	rest = 5 * time.Minute
)

// plan is what goes wrong in a program, derived from its seed.
type plan struct {
	rate   float64
	fates  []string
	gentle bool // no fault may cost a lease
	events []event
	slots  [2]int // per worker
	heal   time.Duration
	start  kagzi.StartOptions // options of the program's run
	fails  int                // how often the run fails at its end and is retried
}

// newPlan returns faults for a program that takes want.
func newPlan(r *rand.Rand, want time.Duration) plan {
	p := plan{heal: want + want/2 + time.Minute, slots: [2]int{1 + r.IntN(4), 1 + r.IntN(4)}}
	p.rate = []float64{0, 0.05, 0.15, 0.3}[r.IntN(4)]
	p.fates = [][]string{
		{fateLose}, {fateFail, fateLose}, {fateLate, fateLose}, {fateCutBefore, fateCutAfter},
		{fateOffBefore, fateOffAfter},
		{fateFail, fateLose, fateCutAfter, fateCutBefore, fateOffAfter, fateOffBefore, fateLate},
	}[r.IntN(6)]
	kinds := []string{"cut", "silence", "deaf", "mute", "stall", "kill", "off", "drain", "pause"}
	r.Shuffle(len(kinds), func(i, j int) { kinds[i], kinds[j] = kinds[j], kinds[i] })
	for _, kind := range kinds[:r.IntN(4)] {
		for range 1 + r.IntN(3) {
			within := p.heal // or while the program is likely to be running
			if r.IntN(3) > 0 {
				within = want + want/4 + time.Second
			}
			e := event{kind: kind, at: time.Duration(r.Int64N(int64(within))), who: r.IntN(3),
				lasts: time.Duration(r.Int64N(int64(time.Minute)))}
			e.lasts = min(e.lasts, p.heal-e.at)
			p.events = append(p.events, e)
		}
	}
	p.start.RequestID = "the-program"
	if r.IntN(3) == 0 { // so that a lost contact lasts longer
		p.start.HeartbeatTimeout = lease + time.Duration(r.IntN(30))*time.Second
	}
	if r.IntN(3) == 0 {
		p.fails = 1 + r.IntN(2)
		p.start.StepRetry = &kagzi.Retry{Attempts: 100}
		p.start.RunRetry = p.start.StepRetry
	}
	p.gentle = len(p.events) == 0 && !slices.ContainsFunc(p.fates, func(fate string) bool {
		return fate != fateFail && fate != fateLose
	})
	return p
}

// among is a server with faults, two workers and a client.
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
	ctx    context.Context // until the test ends
	group  sync.WaitGroup

	eventful  context.Context // until the last event
	endEvents context.CancelFunc
	happening sync.WaitGroup

	handle func(w *kagzi.Worker)

	mu     sync.Mutex
	hands  [2]*hand
	probes [2]int // running steps of probes, by worker
}

// hand is one life of a worker.
type hand struct {
	host   *host.Host
	worker *kagzi.Worker
	ctx    context.Context
	kill   context.CancelFunc
}

// prepare applies the plan's faults to calls of the server.
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
		f.spare = []string{"Heartbeat", "RegisterWorker", "ForceOfflineWorker"}
	}
}

func (a *among) options(h *host.Host) []grpc.DialOption {
	return []grpc.DialOption{grpc.WithContextDialer(h.Dial)}
}

// open starts the client and the workers.
func (a *among) open(handle func(w *kagzi.Worker)) {
	a.handle, a.began, a.host = handle, time.Now(), a.newHost()
	client, err := kagzi.NewClient(kagzi.ClientOptions{
		Profile: kagzi.NoProfile, Address: "passthrough:///kagzitest", Namespace: namespace,
		Logger: slog.New(slog.DiscardHandler), DialOptions: a.options(a.host),
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

// after calls f at a time after the start, unless events have ended by then.
func (a *among) after(d time.Duration, f func()) {
	a.happening.Go(func() {
		if pause(a.eventful, d-time.Since(a.began)) {
			f()
		}
	})
}

func (a *among) pause(d time.Duration) bool { return pause(a.ctx, d) }

// pause waits; it returns false when ctx ends.
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

// close ends the workers and the client.
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
		Profile: kagzi.NoProfile, Address: "passthrough:///kagzitest", Namespace: namespace, Queue: "default",
		Logger:        slog.New(slog.DiscardHandler),
		MaxConcurrent: a.slots[i], DrainTimeout: time.Second, HandleSignals: []os.Signal{},
		DialOptions: a.options(h.host),
	})
	a.handle(h.worker)
	kagzi.Handle(h.worker, "probe", func(ctx kagzi.Context, _ int) (int, error) { return a.probe(ctx, i) })
	return h
}

// man keeps a worker running in place i until the test ends.
func (a *among) man(i int) {
	for {
		a.mu.Lock()
		h := a.hands[i]
		a.mu.Unlock()
		_ = h.worker.Run(h.ctx) // released runs are no failure
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

// someHost returns the host of a worker or of the client.
func (a *among) someHost(who int) *host.Host {
	if who %= 3; who == 2 {
		return a.host
	}
	return a.hand(who).host
}

// newHost returns a machine that can reach the server.
func (a *among) newHost() *host.Host {
	return host.New(func(ctx context.Context) (net.Conn, int, error) {
		conn, err := a.env.Dial(ctx)
		return conn, 0, err
	})
}

// insist repeats a call until its outcome is known.
func (a *among) insist(call func() error) error {
	for {
		err := call()
		if err == nil || a.ctx.Err() != nil || !inDoubt(err) {
			return err
		}
		a.pause(time.Second)
	}
}

// inDoubt reports that the outcome of a call is unknown, or the run still open.
func inDoubt(err error) bool {
	var refusal *kagzi.Error
	var end *kagzi.RunError
	switch {
	case errors.As(err, &end):
		return false
	case errors.As(err, &refusal):
		return refusal.Code == kagzi.CodeUnavailable || refusal.Code == kagzi.CodeTimeout ||
			refusal.Code == kagzi.CodeInternal
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
				// refused if the run has ended
				_ = a.insist(func() error {
					return kagzi.Signal(a.ctx, run, c.name, 1, kagzi.SignalOptions{ID: c.name})
				})
			})
		}
	})
	return run
}

// result returns the run's result, or fails after a time.
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

// recordsOf returns a run's steps from the store.
func (a *among) recordsOf(run string) []engine.Step {
	steps, _, err := a.env.Store().ListSteps(
		context.Background(), namespace, idOf(a.T, run), engine.StepFilter{}, engine.Page{Limit: 1000})
	if err != nil {
		a.Error(err)
	}
	return steps
}

// calmDown ends the faults and waits until both workers are registered and all runs have ended.
func (a *among) calmDown() {
	a.faults.heal()
	a.endEvents()
	a.happening.Wait()
	for limit := time.Now().Add(rest); !a.settled(); a.pause(time.Second) {
		if time.Now().After(limit) {
			a.Fatalf("a worker has not come back, or a child not ended, within %s", rest)
		}
	}
	// leases of other claims have expired, and the longest abandoned step has ended
	a.pause(2*lease + 20*time.Second)
}

// settled reports that both workers are registered and all runs have ended; children may outlive a
// cancelled run.
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
				a.Errorf("worker %d works on %d runs at once, want at most %d", worker, a.probes[worker],
					a.slots[worker])
			}
		}
		count(1)
		defer count(-1)
		time.Sleep(5 * time.Second)
		return 0, nil
	})
}

// hasAllSlots checks that each worker can run as many runs at once as configured.
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

// leftBehind checks what remains at the end: the run and its recorded children, and no leases. It
// returns the number of children.
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

// output returns a run's output, whatever its status.
func (a *among) output(run *kagzi.Run) string {
	r, err := a.env.Store().GetRun(a.ctx, namespace, idOf(a.T, run.ID()))
	if err != nil {
		a.Fatal(err)
	}
	return string(r.Output.Data)
}

func idOf(t *testing.T, run string) engine.ID {
	id, err := engine.ParseID(run)
	if err != nil {
		t.Fatal(err)
	}
	return id
}
