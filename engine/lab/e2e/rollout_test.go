package e2e

import (
	"context"
	"os"
	"slices"
	"testing"
	"time"

	kagziv1 "github.com/kagzi/kagzi/proto/kagzi/v1"
	kagzi "github.com/kagzi/kagzi/sdk"
)

// crew is a worker of one build, whose slots can all be kept busy.
type crew struct {
	build   string
	slots   int
	held    chan struct{}
	release chan struct{} // gives a slot back
}

// rolled is the workflow that is deployed; the new build checks orders that were not past that place.
func rolled(patched bool) func(kagzi.Context, int) (string, error) {
	done := func(ctx kagzi.Context, name string) error {
		return kagzi.Do(ctx, name, func(context.Context) error { return nil })
	}
	return func(ctx kagzi.Context, _ int) (string, error) {
		if err := done(ctx, "pay"); err != nil {
			return "", err
		}
		way := "old way"
		if patched && kagzi.Patched(ctx, "check") {
			way = "new way"
			if err := done(ctx, "check"); err != nil {
				return "", err
			}
		}
		if _, err := kagzi.WaitSignal[string](ctx, "go", 0); err != nil {
			return "", err
		}
		return way, done(ctx, "ship")
	}
}

// deploy starts a worker of a build.
func (s *Server) deploy(t *testing.T, build string, patched bool) *crew {
	t.Helper()
	c := &crew{build: build, slots: 8, held: make(chan struct{}, 8), release: make(chan struct{})}
	s.work(t, kagzi.WorkerOptions{BuildID: build, MaxConcurrent: c.slots}, func(w *kagzi.Worker) {
		kagzi.Handle(w, "order", rolled(patched))
		kagzi.Handle(w, "hold-"+build, func(ctx kagzi.Context, _ int) (int, error) {
			return 0, kagzi.Do(ctx, "hold", func(context.Context) error {
				c.held <- struct{}{}
				<-c.release
				return nil
			})
		})
	})
	return c
}

// hold fills the worker's slots until free is called.
func (c *crew) hold(t *testing.T, ctx context.Context, client *kagzi.Client) (free func()) {
	t.Helper()
	holds := fine(kagzi.StartMany(ctx, client, "hold-"+c.build, make([]int, c.slots), kagzi.StartOptions{}))(t)
	for range holds {
		receive(t, "a slot", c.held)
	}
	return func() {
		for range holds {
			c.release <- struct{}{}
		}
		for _, run := range holds {
			fine(kagzi.Result[int](ctx, run))(t)
		}
	}
}

// TestTwoSDKBuildsInARollingDeploymentPauseNothing has runs in flight while two builds of the same
// workflow are in service, one of them with a new Patched. Half of the runs were begun by each. The old
// build gets those of the new one, which it cannot continue; the new one gets some of the old one.
func TestTwoSDKBuildsInARollingDeploymentPauseNothing(t *testing.T) {
	eachPair(t, patient, func(t *testing.T, one, other *Server) {
		half := 100
		switch {
		case testing.Short():
			half = 20
		case os.Getenv("KAGZI_TEST_LONG") != "":
			half = 500
		}
		ctx, client := within(t, 5*time.Minute), one.client(t)
		begin := func(way string) (runs []*kagzi.Run) {
			runs = fine(kagzi.StartMany(ctx, client, "order", make([]int, half), kagzi.StartOptions{}))(t)
			for _, run := range runs {
				one.until(t, run.ID(), "waiting, begun the "+way, func(w *kagziv1.Workflow, _ map[string]*kagziv1.Step) bool {
					return w.Status == sleeping && w.WaitingFor == "signal:go"
				})
			}
			return runs
		}
		send := func(runs []*kagzi.Run) {
			for _, run := range runs {
				if err := kagzi.Signal(ctx, run, "go", "on", kagzi.SignalOptions{}); err != nil {
					t.Fatal(err)
				}
			}
		}
		want := func(way string, runs []*kagzi.Run) {
			for _, run := range runs {
				if got := fine(kagzi.Result[string](ctx, run))(t); got != way {
					t.Errorf("run %s went the %s, want the %s", run.ID(), got, way)
				}
			}
		}

		old := one.deploy(t, "old", false)
		begunByOld := begin("old way")
		free := old.hold(t, ctx, client)
		fresh := other.deploy(t, "new", true)
		begunByNew := begin("new way")
		free()

		free = fresh.hold(t, ctx, client) // only the old build has room
		send(begunByNew)
		for _, run := range begunByNew {
			one.until(t, run.ID(), "reported by the old build", func(w *kagziv1.Workflow, _ map[string]*kagziv1.Step) bool {
				return slices.Equal(builds(w), []string{"old"}) && !w.Paused
			})
		}
		send(begunByOld[:half/2])
		want("old way", begunByOld[:half/2])
		free()
		want("new way", begunByNew)

		free = old.hold(t, ctx, client) // only the new build has room
		send(begunByOld[half/2:])
		want("old way", begunByOld[half/2:])
		free()

		for _, run := range slices.Concat(begunByOld, begunByNew) {
			steps := map[string]int{}
			for _, s := range one.steps(t, run.ID()) {
				steps[s.Name]++
			}
			w := one.get(t, run.ID())
			if w.Status != completed || w.Paused || w.PausedAt != nil || w.Attempts != 1 || len(w.Unreached) > 0 ||
				steps["pay"] != 1 || steps["ship"] != 1 {
				t.Errorf("run %s is %s, paused %t, attempts %d, without %q, steps %v", w.RunId, w.Status, w.Paused,
					w.Attempts, w.Unreached, steps)
			}
		}
		events := fine(one.admin().ListAuditEvents(ctx, &kagziv1.ListAuditEventsRequest{}))(t).Events
		for _, e := range events {
			if e.Method == "PauseWorkflow" || e.Method == "ResumeWorkflow" {
				t.Errorf("audit log: %v", e)
			}
		}
	})
}
