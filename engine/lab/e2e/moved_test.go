package e2e

import (
	"context"
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/kagzi/kagzi/backends"
	"github.com/kagzi/kagzi/engine"
	"github.com/kagzi/kagzi/engine/server"
	kagzi "github.com/kagzi/kagzi/sdk"
)

// executions counts how often the code of a step ran.
type executions struct {
	mu sync.Mutex
	of map[string]int
}

func (e *executions) note(step string) {
	e.mu.Lock()
	defer e.mu.Unlock()
	e.of[step]++
}

func (e *executions) count(step string) int {
	e.mu.Lock()
	defer e.mu.Unlock()
	return e.of[step]
}

// A database moves to the other kind while a step runs, another run sleeps, and a schedule ticks
// every second. The old server is stopped before the copy where it must be, and keeps running where
// it can.
func TestRunsInFlightFinishInTheDatabaseThatTheyWereMovedTo(t *testing.T) {
	t.Parallel()
	for _, way := range [][2]string{{"sqlite", "postgres"}, {"postgres", "sqlite"}} {
		t.Run(way[0]+" to "+way[1], func(t *testing.T) {
			t.Parallel()
			from, to := freshURL(t, way[0]), freshURL(t, way[1])
			// The lease outlives the move, so the worker keeps its run.
			options := Options{Server: server.Options{
				HeartbeatInterval: 200 * time.Millisecond, WorkerLease: 30 * time.Second}}
			old := New(t, openStore(t, from), options)
			ran := &executions{of: map[string]int{}}
			busy, free := make(chan struct{}), make(chan struct{})
			step := func(ctx kagzi.Context, name string, do func()) error {
				_, err := kagzi.Step(ctx, name, func(context.Context) (string, error) {
					ran.note(kagzi.Info(ctx).RunID + "/" + name)
					do()
					return name, nil
				})
				return err
			}
			old.work(t, kagzi.WorkerOptions{}, func(w *kagzi.Worker) {
				kagzi.Handle(w, "held", func(ctx kagzi.Context, _ int) (string, error) {
					if err := step(ctx, "before", func() {}); err != nil {
						return "", err
					}
					if err := step(ctx, "within", func() { close(busy); <-free }); err != nil {
						return "", err
					}
					return "held", step(ctx, "after", func() {})
				})
				kagzi.Handle(w, "asleep", func(ctx kagzi.Context, _ int) (string, error) {
					if err := step(ctx, "before", func() {}); err != nil {
						return "", err
					}
					kagzi.Sleep(ctx, "nap", 3*time.Second)
					return "asleep", step(ctx, "after", func() {})
				})
				kagzi.Handle(w, "tick", func(ctx kagzi.Context, _ int) (string, error) {
					return "tick", step(ctx, "only", func() {})
				})
			})
			ctx, c := within(t, 2*time.Minute), old.client(t)
			schedule := fine(kagzi.CreateSchedule(
				ctx, c, "tick", "* * * * * *", 1, kagzi.ScheduleOptions{Name: "every-second"}))(t)
			runs := map[string]*kagzi.Run{}
			for _, kind := range []string{"held", "asleep"} {
				run, err := kagzi.Start(ctx, c, kind, 1, kagzi.StartOptions{})
				if err != nil {
					t.Fatal(err)
				}
				runs[kind] = run
			}
			receiveClosed(t, "the step that is under way", busy)
			eventually(t, "the other run sleeps", func() bool { return ran.count(runs["asleep"].ID()+"/before") == 1 })
			fired := old.awaitFired(t, schedule.ID(), 1)

			if way[0] == "sqlite" {
				old.Stop()
				close(free)
			}
			told := sync.OnceFunc(func() {
				if way[0] == "postgres" { // the result meets a fence
					close(free)
				}
			})
			report, err := backends.Copy(ctx, engine.CopyParams{
				From: from, To: to, Now: time.Now(), Progress: func(engine.CopyProgress) { told() }})
			if err != nil {
				t.Fatal(err)
			}
			if report.Rows() == 0 {
				t.Error("nothing was moved")
			}
			old.Stop()
			options.Address = old.Address
			s := New(t, openStore(t, to), options)

			for kind, run := range runs {
				if got, err := kagzi.Result[string](ctx, s.client(t).Run(run.ID())); err != nil || got != kind {
					t.Errorf("result of %s = %q (%v)", kind, got, err)
				}
			}
			for _, name := range []string{runs["held"].ID() + "/before", runs["held"].ID() + "/within",
				runs["held"].ID() + "/after",
				runs["asleep"].ID() + "/before", runs["asleep"].ID() + "/after"} {
				if n := ran.count(name); n != 1 {
					t.Errorf("step %s ran %d times, want once", name, n)
				}
			}
			s.wantEveryTick(t, schedule.ID(), len(fired)+3)
			s.Stop()
			checkDatabase(t, to)
		})
	}
}

// wantEveryTick wants exactly one run for each second from the first tick on.
func (s *Server) wantEveryTick(t *testing.T, schedule string, n int) {
	t.Helper()
	var ticks []time.Time
	for _, run := range s.awaitFired(t, schedule, n) {
		ticks = append(ticks, run.ScheduledAt.AsTime())
	}
	slices.SortFunc(ticks, time.Time.Compare)
	for i := 1; i < len(ticks); i++ {
		if gap := ticks[i].Sub(ticks[i-1]); gap != time.Second {
			t.Errorf("%s after tick %s comes %s", gap, ticks[i-1].Format(time.RFC3339), ticks[i].Format(time.RFC3339))
		}
	}
	if skipped := s.look(t, schedule).SkippedTicks; skipped != 0 {
		t.Errorf("%d ticks were skipped", skipped)
	}
}
