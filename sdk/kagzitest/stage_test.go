package kagzitest_test

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"math/rand/v2"
	"net"
	"os"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"google.golang.org/grpc"

	"github.com/kagzi/kagzi/backends/memory"
	"github.com/kagzi/kagzi/engine"
	"github.com/kagzi/kagzi/engine/lab/host"
	kagzi "github.com/kagzi/kagzi/sdk"
	"github.com/kagzi/kagzi/sdk/kagzitest"
)

// disturbances are what happens to the run of a script, derived from its seed.
type disturbances struct {
	attempts  int    // of the run
	booms     int    // how often the last step fails
	crashes   []int  // the worker is lost when the store has made as many writes
	cancel    int    // seconds after the start; 0 for never
	terminate int    // likewise
	overrides []int  // likewise; each overrides a step of the paused run
	pauses    []int  // likewise
	retries   string // how the run is retried when it has ended without a result, one letter each
}

func newDisturbances(r *rand.Rand) (d disturbances) {
	d.attempts = 1 + r.IntN(2)
	d.booms = r.IntN(3)
	some := func(most, odds int) (at []int) {
		for r.IntN(odds) == 0 && len(at) < 3 {
			at = append(at, 1+r.IntN(most))
		}
		return at
	}
	d.crashes, d.overrides, d.pauses = some(60, 2), some(12, 5), some(12, 5)
	if r.IntN(4) == 0 {
		d.cancel = 1 + r.IntN(12)
	}
	if r.IntN(8) == 0 {
		d.terminate = 1 + r.IntN(12)
	}
	for range r.IntN(3) {
		d.retries += string("pfrk"[r.IntN(4)]) // plain, from a step, restart, keep all
	}
	return d
}

// stage is a server with workers, each of a build of its own, on which a script is performed.
type stage struct {
	*testing.T
	disturbances
	env   *kagzitest.Env
	db    *memory.Database
	began time.Time
	ctx   context.Context // until the test ends, or code has diverged
	end   context.CancelCauseFunc
	hands sync.WaitGroup

	mu      sync.Mutex
	service []*part // the builds in service
	over    bool    // the test has ended
	writes  int
	number  int // of step executions
	boomed  int
	reports int // of divergence, while several builds are in service
	ways    []*way

	onLoss  func()                                        // called when the worker is lost, before the next one
	onWrite func(changes []memory.Change)                 // called for each write, with the database locked
	onStep  func(w *way, name string, t stmt, known bool) // called before a step's code runs
}

// part is one build of the worker and who works with it.
type part struct {
	script script
	build  int
	hand   *hand // nil while it is being replaced
}

// serves reports whether the worker is in service. Needs g.mu.
func (g *stage) serves(h *hand) bool {
	return slices.ContainsFunc(g.service, func(p *part) bool { return p.hand == h })
}

// onStage opens a stage with a build for each script and closes it after the test.
func onStage(t *testing.T, s script, d disturbances, test func(*stage), others ...script) {
	g := &stage{disturbances: d}
	for i, s := range append([]script{s}, others...) {
		g.service = append(g.service, &part{script: s, build: i})
	}
	g.db = memory.New(memory.Options{Watch: g.watch, Wrote: g.wrote})
	kagzitest.RunInMemory(t, func() engine.Store { return g.db.Open(nil) }, func(t *testing.T, env *kagzitest.Env) {
		g.T, g.env, g.began = t, env, time.Now()
		g.ctx, g.end = context.WithCancelCause(context.WithoutCancel(t.Context()))
		defer g.hands.Wait()
		defer func() {
			g.mu.Lock()
			g.over = true // the server still writes, but no worker is replaced
			g.mu.Unlock()
			g.end(nil)
		}()
		for _, p := range g.service {
			g.hire(p)
		}
		test(g)
	})
}

// watch sees every call of the store. A report of divergence ends the test, unless a worker of another
// build may take the run.
func (g *stage) watch(c *memory.Call, changes []memory.Change) {
	if c.Err != nil {
		return
	}
	switch p := c.Params.(type) {
	case engine.ReleaseParams:
		g.mu.Lock()
		others := len(g.service) > 1
		if others && p.Divergence != nil {
			g.reports++
		}
		g.mu.Unlock()
		if p.Divergence != nil && !others {
			g.end(&divergence{*p.Divergence})
		}
	case engine.CompleteRunParams:
		if len(p.Unreached) > 0 {
			g.end(fmt.Errorf("the code ended without %q", p.Unreached))
		}
	case engine.FailRunParams:
		if len(p.Unreached) > 0 {
			g.end(fmt.Errorf("the code failed without %q", p.Unreached))
		}
	}
	g.mu.Lock()
	onWrite := g.onWrite
	g.mu.Unlock()
	if onWrite != nil && c.Write {
		onWrite(changes)
	}
}

// divergence is a report of one.
type divergence struct{ engine.Divergence }

func (d *divergence) Error() string { return fmt.Sprintf("made %v, owed %v", d.Made, d.Owed) }

// wrote loses a worker at some writes, before it gets their answers.
func (g *stage) wrote() {
	g.mu.Lock()
	g.writes++
	p := g.service[g.writes%len(g.service)]
	lost := p.hand
	if g.over || !slices.Contains(g.crashes, g.writes) || lost == nil || lost.worker.ID() == "" {
		g.mu.Unlock()
		return
	}
	p.hand = nil
	g.hands.Add(1)
	g.mu.Unlock()
	lost.host.Die()
	go func() {
		defer g.hands.Done()
		g.replace(p, lost)
	}()
}

// replace takes a lost worker off and hires another one. One of several builds is never out of service.
func (g *stage) replace(p *part, lost *hand) {
	lost.kill()
	g.mu.Lock()
	others, serves := len(g.service) > 1, slices.Contains(g.service, p)
	onLoss := g.onLoss
	g.mu.Unlock()
	if others && serves {
		g.hire(p)
	}
	g.offline(lost)
	if onLoss != nil {
		onLoss()
	}
	if !others && serves {
		g.hire(p)
	}
}

func (g *stage) offline(lost *hand) {
	now := g.env.Store().Now()
	if _, err := g.env.Store().ForceOfflineWorker(context.Background(), engine.OfflineWorkerParams{
		WorkerID: lost.worker.ID(), Reason: engine.OfflineForced, AuditID: engine.NewID(now), Now: now,
	}); err != nil {
		g.Errorf("worker offline: %v", err)
	}
}

func (g *stage) dial(h *host.Host) []grpc.DialOption {
	return []grpc.DialOption{grpc.WithContextDialer(h.Dial)}
}

// newWorker returns a worker of the build, not running.
func (g *stage) newWorker(p *part, h *hand) *kagzi.Worker {
	g.mu.Lock()
	s, build := p.script, fmt.Sprint("build-", p.build)
	g.mu.Unlock()
	w := kagzi.NewWorker(kagzi.WorkerOptions{
		Profile: kagzi.NoProfile, Address: "passthrough:///kagzitest", Namespace: namespace, Queue: "default",
		Logger: slog.New(slog.DiscardHandler), BuildID: build,
		DrainTimeout: time.Second, HandleSignals: []os.Signal{}, DialOptions: g.dial(h.host),
	})
	kagzi.Handle(w, "nap", nap)
	kagzi.Handle(w, "doze", nap)
	kagzi.Handle(w, "script", func(ctx kagzi.Context, again int) (string, error) {
		info := kagzi.Info(ctx)
		return s.act(ctx, g.newWay(h, info.RunID, nil), again)
	})
	return w
}

func (g *stage) hire(p *part) {
	h := &hand{host: host.New(func(ctx context.Context) (net.Conn, int, error) {
		conn, err := g.env.Dial(ctx)
		return conn, 0, err
	})}
	h.ctx, h.kill = context.WithCancel(g.ctx)
	h.worker = g.newWorker(p, h)
	g.mu.Lock()
	p.hand = h
	g.mu.Unlock()
	g.hands.Go(func() { _ = h.worker.Run(h.ctx) }) // a lost one fails
}

func (g *stage) newWay(h *hand, run string, records map[string]bool) *way {
	g.mu.Lock()
	defer g.mu.Unlock()
	w := &way{stage: g, hand: h, run: run, live: records == nil, records: records,
		logs: map[string][]string{}, vars: map[string]int{}, uses: map[string]int{}, seeds: map[string]bool{},
		made: map[string]int{}}
	g.ways = append(g.ways, w)
	return w
}

// executes counts the execution of a step's code and returns its result.
func (g *stage) executes(w *way, name string, t stmt) int {
	s := g.db.Run(idOf(g.T, w.run)).Latest(name)
	g.mu.Lock()
	onStep := g.onStep
	g.mu.Unlock()
	if onStep != nil {
		onStep(w, name, t, s != nil)
	}
	g.mu.Lock()
	defer g.mu.Unlock()
	if s != nil && s.Status == engine.StepCompleted &&
		s.OverriddenBy == "" && g.serves(w.hand) {
		g.end(fmt.Errorf("step %s runs again, although it has the result %s", name, s.Output.Data))
	}
	g.number++
	return g.number
}

// boom returns in how many attempts the last step fails.
func (g *stage) boom() int {
	g.mu.Lock()
	defer g.mu.Unlock()
	if g.boomed == g.booms {
		return 0
	}
	g.boomed++
	return finally
}

// activations returns what the code saw in each activation of a run.
func (g *stage) activations(run string) []*way {
	g.mu.Lock()
	defer g.mu.Unlock()
	var ways []*way
	for _, w := range g.ways {
		if w.live && w.run == run {
			ways = append(ways, w)
		}
	}
	return ways
}

// after calls f some seconds after now, unless the test has ended by then.
func (g *stage) after(seconds int, f func()) {
	if seconds > 0 {
		g.hands.Go(func() {
			if pause(g.ctx, time.Duration(seconds)*time.Second) {
				f()
			}
		})
	}
}

// signals sends a run the signals of the script until the context ends.
func (g *stage) signals(ctx context.Context, run *kagzi.Run, r *rand.Rand) {
	var names []string
	g.mu.Lock()
	for _, p := range g.service {
		p.script.each(func(t *stmt) {
			if t.kind == aWait {
				names = append(names, t.name)
			}
		})
	}
	g.mu.Unlock()
	if len(names) == 0 {
		return
	}
	r = rand.New(rand.NewPCG(r.Uint64(), r.Uint64())) // of its own: the script goes on beside it
	g.hands.Go(func() {
		wait := 3 * time.Second
		for n := 1; pause(ctx, time.Duration(r.Int64N(int64(wait)))); n++ {
			name := names[r.IntN(len(names))]
			_ = kagzi.Signal(ctx, run, name, 1000+n, kagzi.SignalOptions{}) // refused if the run has ended
			wait += time.Second
		}
	})
}

// longestPlay is when a run that has not ended is stuck.
const longestPlay = time.Hour

// perform runs the script once, with disturbances, and returns how the run ended.
func (g *stage) perform(run *kagzi.Run, r *rand.Rand) (*kagzi.RunDetails, error) {
	ctx, stop := context.WithTimeout(g.ctx, longestPlay)
	defer stop()
	g.signals(ctx, run, r)
	g.after(g.cancel, func() { _ = run.CancelGracefully(ctx, 10*time.Minute, "") }) // refused if it has ended
	g.after(g.terminate, func() { _ = run.Terminate(ctx, "") })
	for _, at := range g.pauses {
		g.after(at, func() {
			_ = run.PauseNow(ctx, "a look")
			pause(ctx, time.Second)
			_ = run.Resume(ctx, "go on")
		})
	}
	for _, at := range g.overrides {
		pick := r.Uint64()
		g.after(at, func() { g.override(ctx, run, pick) })
	}
	d, err := run.Wait(ctx)
	if cause := context.Cause(g.ctx); cause != nil {
		return nil, cause
	}
	if errors.Is(err, context.DeadlineExceeded) {
		why, err := run.Explain(g.ctx)
		if err != nil {
			return nil, err
		}
		return nil, fmt.Errorf("the run has not ended: %s", why.Summary)
	}
	return d, err
}

// override sets the result of a step while the run is paused.
func (g *stage) override(ctx context.Context, run *kagzi.Run, pick uint64) {
	if run.PauseNow(ctx, "a look") != nil {
		return // it has ended
	}
	var names []string
	for _, s := range g.db.Run(idOf(g.T, run.ID())).Steps {
		if s.Latest && !strings.HasPrefix(s.Name, "kagzi:") {
			names = append(names, s.Name)
		}
	}
	if len(names) > 0 { // refused for a step of a kind that cannot be
		_ = kagzi.OverrideStep(ctx, run, names[pick%uint64(len(names))], 2000+int(pick%100), "it is known")
	}
	pause(ctx, time.Second)
	_ = run.Resume(ctx, "go on")
}

// retry retries a run that ended without a result; nil if it cannot be.
func (g *stage) retry(run *kagzi.Run, how byte, r *rand.Rand) (*kagzi.Run, error) {
	var opts kagzi.RetryOptions
	switch how {
	case 'r':
		opts.Restart = true
	case 'k':
		opts.KeepAll = true
	case 'f':
		var names []string
		for _, s := range g.db.Run(idOf(g.T, run.ID())).Steps {
			if s.Latest && !strings.HasPrefix(s.Name, "kagzi:") {
				names = append(names, s.Name)
			}
		}
		if len(names) > 0 {
			opts.FromStep = names[r.IntN(len(names))]
		}
	}
	next, err := run.Retry(g.ctx, opts)
	var refusal *kagzi.Error
	if errors.As(err, &refusal) && refusal.Code == kagzi.CodePreconditionFailed && how == 'p' {
		return run.Retry(g.ctx, kagzi.RetryOptions{KeepAll: true}) // it has cleaned up
	}
	return next, err
}

// wholePlay performs the script, retries it as planned, and compares every run with its replays. It
// returns what is wrong.
func (g *stage) wholePlay(r *rand.Rand) error {
	options := kagzi.StartOptions{}
	if g.attempts > 1 {
		options.RunRetry = &kagzi.Retry{Attempts: g.attempts}
		options.StepRetry = options.RunRetry
	}
	run, err := kagzi.Start(g.ctx, g.env.Client, "script", 0, options)
	if err != nil {
		return err
	}
	for i := 0; ; i++ {
		d, err := g.perform(run, r)
		if err != nil {
			return err
		}
		if d.Status == kagzi.StatusCompleted || i == len(g.retries) {
			break
		}
		if run, err = g.retry(g.env.Client.Run(d.RunID), g.retries[i], r); err != nil {
			return fmt.Errorf("retry %c: %w", g.retries[i], err)
		}
		g.cancel, g.terminate, g.overrides, g.pauses = 0, 0, nil, nil
	}
	g.env.Settle()
	for _, row := range g.db.Runs() {
		if row.Type == "script" {
			if err := g.compareReplays(row.ID.String()); err != nil {
				return fmt.Errorf("run %s: %w", row.Status, err)
			}
		}
	}
	return nil
}
