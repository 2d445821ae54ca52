package simulate

import (
	"context"
	"encoding/json"
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"runtime"
	"runtime/pprof"
	"slices"
	"sync"
	"sync/atomic"
	"testing"
	"testing/cryptotest"
	"testing/synctest"
	"time"

	"github.com/kagzi/kagzi/backends/memory"
	"github.com/kagzi/kagzi/backends/sqlite"
	"github.com/kagzi/kagzi/engine"
)

var (
	seeds  = flag.Int("simulate.seeds", 60, "try this many seeds; -v prints progress")
	from   = flag.Uint64("simulate.from", 1, "start with this seed")
	times  = flag.Int("simulate.times", 1, "try each seed this often")
	traced = flag.Bool("simulate.trace", false, "print the history of each seed")
	file   = flag.String("simulate.plan", "",
		"try the plan in this file, as a failure writes it, instead of seeds")
	exact  = flag.Bool("simulate.exact", false, "try one seed at a time with fixed randomness; for the command replay")
	shrink = flag.Int("simulate.shrink", 150, "try at most this many plans to find a smaller failing one")
	store  = flag.String("simulate.store", "memory", "sqlite: compare the in-memory store with SQLite, call by call")
)

// simulate runs a plan in its own bubble.
func simulate(t *testing.T, plan Plan) (report *Report) {
	var open func() engine.Store
	if *store == "sqlite" {
		plan = plan.alone()
		dir, err := os.MkdirTemp(fastDir(), "kagzi-simulate-")
		if err != nil {
			t.Fatal(err)
		}
		defer os.RemoveAll(dir)
		open = func() engine.Store {
			s, err := sqlite.Open(context.Background(), filepath.Join(dir, "kagzi.db"), engine.OpenOptions{})
			if err != nil {
				panic("simulate: " + err.Error())
			}
			return s
		}
	}
	defer deadline(fmt.Sprintf("seed %d", plan.Seed))()
	synctest.Test(t, func(*testing.T) { report = Run(plan, *traced, open) })
	return report
}

// deadline panics after a minute, longer than any plan takes, unless the returned function is
// called. A bubble's time stops while a goroutine waits for a mutex, and the test's own timeout
// would not name the plan.
func deadline(what string) (moves func()) {
	timer := time.AfterFunc(time.Minute, func() {
		_ = pprof.Lookup("goroutine").WriteTo(os.Stderr, 2)
		panic(what + ": time stands still, or never ends")
	})
	return func() { timer.Stop() }
}

// fastDir is a directory on an in-memory file system if there is one: this test is not about the
// disk.
func fastDir() string {
	if info, err := os.Stat("/dev/shm"); err == nil && info.IsDir() {
		return "/dev/shm"
	}
	return ""
}

// TestSimulation wants every promise kept with every seed. It shrinks and prints the first failing
// one.
func TestSimulation(t *testing.T) {
	plans, n := func(i int) Plan { return NewPlan(*from + uint64(i)) }, *seeds
	if *file != "" {
		plan := readPlan(t, *file)
		plans, n = func(int) Plan { return plan }, 1
	}
	t.Logf("seeds %d to %d", *from, *from+uint64(n)-1)
	if *exact {
		runtime.MemProfileRate = 0
		cryptotest.SetGlobalRandom(t, 1)
		tryInOrder(t, plans, n)
		return
	}
	total, began := &Report{}, time.Now()
	progress := &progress{of: n}
	stop := progress.tell(os.Stderr)
	var next atomic.Int64
	var failed atomic.Bool
	t.Run("lanes", func(t *testing.T) {
		for lane := range runtime.GOMAXPROCS(0) {
			t.Run(fmt.Sprint(lane), func(t *testing.T) {
				t.Parallel()
				for i := int(next.Add(1) - 1); i < n && !failed.Load(); i = int(next.Add(1) - 1) {
					good := try(t, plans(i), total)
					progress.seed(good)
					if !good && !failed.Swap(true) {
						explain(t, plans(i))
					}
				}
			})
		}
	})
	stop()
	took := time.Since(began)
	t.Logf("%d seeds in %s, %.0f a second\n%s", n, took.Round(time.Millisecond), float64(n)/took.Seconds(), total)
	if !t.Failed() && *file == "" && n >= 50 {
		notVacuous(t, total)
	}
}

// tryInOrder is for replays: seeds run one at a time.
func tryInOrder(t *testing.T, plans func(i int) Plan, n int) {
	for i := range n {
		report := &Report{}
		try(t, plans(i), report)
		t.Logf("seed %d: history %016x", plans(i).Seed, report.Trace)
	}
}

// try returns false if a promise is broken.
func try(t *testing.T, plan Plan, total *Report) bool {
	histories := map[uint64]int{}
	good := true
	for range *times {
		report := simulate(t, plan)
		total.Add(report)
		histories[report.Trace]++
		for _, v := range report.Violations {
			t.Errorf("seed %d: %s", plan.Seed, v)
			good = false
		}
		if *traced {
			for _, line := range report.Log {
				t.Log(line)
			}
		}
	}
	if *times > 1 {
		t.Logf("seed %d: %d histories in %d", plan.Seed, len(histories), *times)
	}
	return good
}

// explain prints how to reproduce the failure with a plan as small as possible.
func explain(t *testing.T, plan Plan) {
	first := simulate(t, plan).Broken()
	small, tried := Shrink(plan, *shrink, func(p Plan) bool {
		return slices.ContainsFunc(simulate(t, p).Broken(), func(i int) bool { return slices.Contains(first, i) })
	})
	text, err := json.MarshalIndent(small, "", " ")
	if err != nil {
		t.Fatal(err)
	}
	path := filepath.Join(os.TempDir(), fmt.Sprintf("kagzi-simulate-%d.json", plan.Seed))
	if err := os.WriteFile(path, text, 0o600); err != nil {
		t.Fatal(err)
	}
	if *store != "memory" { // command replay has only the in-memory store
		t.Logf(
			"again:   go test ./engine/lab/simulate -run TestSimulation -simulate.store=%s -simulate.from=%d -simulate.seeds=1 -simulate.trace -v\n"+
				"smaller (of %d plans): the same with -simulate.plan=%s\n%s", *store, plan.Seed, tried, path, text)
		return
	}
	t.Logf(
		"again:   go test ./engine/lab/simulate -run TestSimulation -simulate.from=%d -simulate.seeds=1 -simulate.trace -v\n"+
			"the same each time: go run ./engine/lab/replay -seed %d -trace\n"+
			"smaller (of %d plans): go run ./engine/lab/replay -plan %s -trace\n%s", plan.Seed, plan.Seed, tried,
		path, text)
}

func readPlan(t *testing.T, path string) (plan Plan) {
	text, err := os.ReadFile(path)
	if err == nil {
		err = json.Unmarshal(text, &plan)
	}
	if err != nil {
		t.Fatal(err)
	}
	return plan
}

// notVacuous fails if something that the simulation must exercise did not happen.
func notVacuous(t *testing.T, total *Report) {
	all := []string{
		"starts", "bodies", "sleeps", "ends seen", "leases lost", "repeated calls", "schedules", "order: cancel",
		"order: stop", "order: terminate",
		"order: pause", "order: signal", "order: retry", "done: FailStep", "done: FailRun", "done: FireSchedule",
		"done: StartChild",
		"runs COMPLETED", "runs FAILED", "runs CANCELLED", "runs TIMED_OUT", "fault: call fail", "fault: call lose",
		"fault: call late",
		"fault: cut", "fault: gap", "fault: silence", "fault: stall", "fault: deaf", "fault: mute",
		"fault: server killed", "fault: worker killed",
	}
	if *store == "memory" && *seeds >= 200 { // few seeds have one, and SQLite has no standby
		all = append(all, "fault: failover")
	}
	for _, what := range all {
		if total.Counts[what] == 0 {
			t.Errorf("in %d seeds there was nothing of %q: the simulation proves little", *seeds, what)
		}
	}
}

// TestLostCommits is the control: a database that loses acknowledged commits must be detected.
func TestLostCommits(t *testing.T) {
	for seed := range uint64(50) {
		plan := NewPlan(seed)
		plan.Events = append(plan.Events, Event{Do: "lose", At: plan.Chaos / 2})
		if len(simulate(t, plan).Violations) > 0 {
			return
		}
	}
	t.Error("50 databases have lost their last commits, and nobody noticed")
}

// forgetful acknowledges timers and does not set them.
type forgetful struct{ engine.Store }

func (forgetful) Sleep(context.Context, engine.SleepParams) (engine.Step, error) {
	return engine.Step{}, nil
}

// TestAStoreThatForgetsIsFoundOut is the control of -simulate.store: a store that differs from the
// in-memory one must be detected, and one that does not differ must pass.
func TestAStoreThatForgetsIsFoundOut(t *testing.T) {
	found := false
	for seed := range uint64(6) {
		for _, forgets := range []bool{false, true} {
			var report *Report
			db := memory.New(memory.Options{})
			synctest.Test(t, func(*testing.T) {
				report = Run(NewPlan(seed).alone(), false, func() engine.Store {
					if forgets {
						return forgetful{db.Open(nil)}
					}
					return db.Open(nil)
				})
			})
			found = found || forgets && slices.Contains(report.Broken(), 16)
			if !forgets && len(report.Violations) > 0 {
				t.Errorf("seed %d, beside a store that is the same: %s", seed, report.Violations[0])
			}
		}
	}
	if !found {
		t.Error("a store that sets no timers was never found out")
	}
}

// slow delays heartbeats, as a store does that shares commits.
type slow struct{ engine.Store }

func (s slow) Heartbeat(ctx context.Context, p engine.HeartbeatParams) (engine.Beat, error) {
	time.Sleep(time.Second)
	return s.Store.Heartbeat(ctx, p)
}

// TestAStoreThatNeedsTimeIsGivenIt: time must pass for a slow store, also while a dying server
// waits for it.
func TestAStoreThatNeedsTimeIsGivenIt(t *testing.T) {
	defer deadline("a server that dies beside a slow store")()
	synctest.Test(t, func(t *testing.T) {
		db, disk := memory.New(memory.Options{}), memory.New(memory.Options{})
		report := &Report{Counts: map[string]int{}}
		b := newBeside(func() engine.Store { return slow{disk.Open(nil)} }, db, report)
		front := db.Open(func(_ context.Context, c *memory.Call) error {
			b.commit(c)
			return c.Err
		})
		var group sync.WaitGroup
		group.Go(func() { _, _ = front.Heartbeat(t.Context(), engine.HeartbeatParams{WorkerID: "nobody"}) })
		synctest.Wait()
		b.restart()
		group.Wait()
		b.end()
		if len(report.Violations) > 0 || report.Counts["compared: Heartbeat's error"] != 1 {
			t.Errorf("%v, of %v", report.Violations, report.Counts)
		}
	})
}
