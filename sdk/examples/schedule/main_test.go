package main

import (
	"slices"
	"testing"
	"time"

	kagzi "github.com/kagzi/kagzi/sdk"
	"github.com/kagzi/kagzi/sdk/kagzitest"
)

// The clock of the test begins at midnight UTC of 2000-01-01; half past two in Berlin is 01:30 UTC
// then.
func TestEachNightIsReportedOnce(t *testing.T) {
	kagzitest.Run(t, func(t *testing.T, env *kagzitest.Env) {
		kagzi.Handle(env.Worker, "report", Report)
		env.Start()
		opts := options()
		opts.Queue = "default" // which the worker of the test serves
		s, err := Ensure(t.Context(), env.Client, opts)
		if err != nil {
			t.Fatal(err)
		}
		env.Pass(3 * 24 * time.Hour)
		var reports []string
		for run, err := range s.Runs(t.Context()) { // newest first
			if err != nil {
				t.Fatal(err)
			}
			text, err := kagzi.Result[string](t.Context(), env.Client.Run(run.RunID))
			if err != nil {
				t.Fatal(err)
			}
			reports = append(reports, text)
		}
		want := []string{"sales sold 42 on 2000-01-03", "sales sold 42 on 2000-01-02", "sales sold 42 on 2000-01-01"}
		if !slices.Equal(reports, want) {
			t.Errorf("got %q, want %q", reports, want)
		}
	})
}

func TestEnsureUpdatesTheScheduleOfItsName(t *testing.T) {
	kagzitest.Run(t, func(t *testing.T, env *kagzitest.Env) {
		first, err := Ensure(t.Context(), env.Client, options())
		if err != nil {
			t.Fatal(err)
		}
		opts := options()
		opts.TimeZone = "America/New_York"
		second, err := Ensure(t.Context(), env.Client, opts)
		if err != nil || second.ID() != first.ID() {
			t.Fatalf("got %v, %v, want the same schedule", second, err)
		}
		d, err := second.Describe(t.Context())
		if err != nil || d.TimeZone != "America/New_York" || d.Overlap != kagzi.OverlapSkip || d.MaxCatchup != 1 {
			t.Errorf("got %+v, %v", d, err)
		}
	})
}

func TestTriggeredReportIsOfToday(t *testing.T) {
	kagzitest.Run(t, func(t *testing.T, env *kagzitest.Env) {
		kagzi.Handle(env.Worker, "report", Report)
		env.Start()
		opts := options()
		opts.Queue = "default"
		s, err := Ensure(t.Context(), env.Client, opts)
		if err != nil {
			t.Fatal(err)
		}
		run, err := s.Trigger(t.Context(), kagzi.TriggerOptions{})
		if err != nil {
			t.Fatal(err)
		}
		text, err := kagzi.Result[string](t.Context(), run)
		if err != nil || text != "sales sold 42 on 2000-01-01" {
			t.Errorf("got %q, %v", text, err)
		}
	})
}
