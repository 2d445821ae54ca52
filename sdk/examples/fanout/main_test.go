package main

import (
	"slices"
	"testing"
	"time"

	kagzi "github.com/kagzi/kagzi/sdk"
	"github.com/kagzi/kagzi/sdk/kagzitest"
)

func begin(
	t *testing.T, env *kagzitest.Env, count func(kagzi.Context, string) (int, error), texts ...string,
) *kagzi.Run {
	t.Helper()
	kagzi.Handle(env.Worker, "count-all", CountAll)
	kagzi.Handle(env.Worker, "count", count)
	env.Start()
	run, err := kagzi.Start(t.Context(), env.Client, "count-all", texts, kagzi.StartOptions{})
	if err != nil {
		t.Fatal(err)
	}
	return run
}

func TestCountAll(t *testing.T) {
	kagzitest.Run(t, func(t *testing.T, env *kagzitest.Env) {
		report, err := kagzi.Result[Report](t.Context(), begin(t, env, Count, "one two\nthree", "four", ""))
		if err != nil || report.Words != 4 || !slices.Equal(report.Failed, []string{"the text is empty"}) {
			t.Errorf("got %+v, %v", report, err)
		}
	})
}

// Ten children of an hour each take an hour together.
func TestChildrenRunInParallel(t *testing.T) {
	kagzitest.Run(t, func(t *testing.T, env *kagzitest.Env) {
		slow := func(ctx kagzi.Context, _ string) (int, error) {
			kagzi.Sleep(ctx, "work", time.Hour)
			return 1, nil
		}
		began := time.Now()
		report, err := kagzi.Result[Report](t.Context(), begin(t, env, slow, make([]string, 10)...))
		if err != nil || report.Words != 10 {
			t.Errorf("got %+v, %v", report, err)
		}
		if took := time.Since(began); took < time.Hour || took > time.Hour+time.Minute {
			t.Errorf("took %v of the test's clock, want about 1h", took)
		}
	})
}

func TestCancelledParentTakesItsChildrenWithIt(t *testing.T) {
	kagzitest.Run(t, func(t *testing.T, env *kagzitest.Env) {
		forever := func(ctx kagzi.Context, _ string) (int, error) {
			return kagzi.WaitSignal[int](ctx, "never", 0)
		}
		run := begin(t, env, forever, "a", "b")
		env.Settle() // both children wait
		if err := run.CancelGracefully(t.Context(), time.Minute, ""); err != nil {
			t.Fatal(err)
		}
		if _, err := run.Wait(t.Context()); err != nil {
			t.Fatal(err)
		}
		env.Settle()
		children := 0
		for child, err := range env.Client.List(t.Context(), kagzi.ListOptions{ParentRunID: run.ID()}) {
			if children++; err != nil || child.Status != kagzi.StatusCancelled {
				t.Errorf("got %+v, %v, want CANCELLED", child, err)
			}
		}
		if children != 2 {
			t.Errorf("%d children, want 2", children)
		}
	})
}
