package postgres

import (
	"errors"
	"testing"
	"time"

	"github.com/kagzi/kagzi/backends/internal/storelogic"
	"github.com/kagzi/kagzi/engine"
)

// waitingTick makes a schedule that has fired one tick, and a buffered tick that waits for the run
// of the first, which w1 holds.
func waitingTick(t *testing.T, s *Store) (engine.Schedule, engine.Lease) {
	t.Helper()
	register(t, s, "w1")
	now := s.Now()
	first := now.Truncate(time.Hour).Add(time.Hour)
	plan, err := s.CreateSchedule(t.Context(),
		engine.ScheduleParams{Now: now, AuditID: engine.NewID(now), Schedule: engine.Schedule{
			ID: engine.NewID(now), Namespace: "default", CronExpr: "0 * * * *", Enabled: true, Queue: "orders",
			Type: "order", MaxCatchup: 100,
			Overlap: engine.OverlapBufferOne, NextFireAt: first,
		}})
	if err != nil {
		t.Fatalf("CreateSchedule: %v", err)
	}
	p := engine.FireScheduleParams{ScheduleID: plan.ID, Revision: plan.Revision, Expect: first,
		Next: first.Add(24 * time.Hour), Now: now}
	for i := range 2 {
		p.Ticks = append(p.Ticks, engine.Tick{At: first.Add(time.Duration(i) * time.Hour), RunID: engine.NewID(now)})
	}
	if fired, err := s.FireSchedule(t.Context(), p); err != nil || fired.Runs != 1 {
		t.Fatalf("FireSchedule = %+v, %v, want one run", fired, err)
	}
	claimed, err := s.Claim(t.Context(), claimParams(s, "w1", 1))
	if err != nil || len(claimed.Tasks) != 1 {
		t.Fatalf("claimed %d runs, %v, want 1", len(claimed.Tasks), err)
	}
	return plan, claimed.Tasks[0].Lease
}

// enable may be called from any goroutine.
func enable(t *testing.T, s *Store, on bool) {
	n, err := s.GetNamespace(t.Context(), "default")
	if err == nil {
		n.Enabled = on
		_, err = s.UpdateNamespace(t.Context(), engine.NamespaceParams{
			Namespace: n, AuditID: engine.NewID(s.Now()), Now: s.Now()})
	}
	if err != nil {
		t.Errorf("UpdateNamespace: %v", err)
	}
}

func firedRuns(t *testing.T, s *Store, schedule engine.ID) int {
	t.Helper()
	runs, _, err := s.ListRuns(t.Context(), engine.RunFilter{Namespace: "default", ScheduleID: schedule.String()},
		engine.Page{Limit: 10})
	if err != nil {
		t.Fatal(err)
	}
	return len(runs)
}

func TestBufferedTickStartsWhenRunEndRacesEnable(t *testing.T) {
	a, b := rivals(t)
	plan, lease := waitingTick(t, a)
	enable(t, a, false)
	watch := adminConnection(t, a.pool.Config().ConnString())
	enabled := make(chan struct{})
	begun := false
	_, err := write(a, "end a run, slowly", func(x *tx) (done engine.Completed, err error) {
		done, err = storelogic.CompleteRun(x, engine.CompleteRunParams{Lease: lease, Now: a.Now()})
		if err == nil {
			err = x.send()
		}
		if err != nil || begun {
			return done, err
		}
		begun = true
		go func() {
			defer close(enabled)
			enable(t, b, true)
		}()
		for waits := false; !waits; {
			select {
			case <-enabled:
				return done, nil
			default:
			}
			err := watch.QueryRow(t.Context(),
				"select exists (select from pg_locks where not granted and $1 = any(pg_blocking_pids(pid)))",
				int32(x.conn.Conn().PgConn().PID())).Scan(&waits)
			if err != nil {
				return done, err
			}
		}
		return done, nil
	})
	if err != nil {
		t.Fatal(err)
	}
	<-enabled
	if n := firedRuns(t, a, plan.ID); n != 2 {
		t.Errorf("%d runs of the schedule, want that of the tick which waited, too", n)
	}
}

func TestBufferedTickOfOldVersionStarts(t *testing.T) {
	s := open(t).(*Store)
	plan, lease := waitingTick(t, s)
	enable(t, s, false)
	if _, err := s.CompleteRun(t.Context(), engine.CompleteRunParams{Lease: lease, Now: s.Now()}); err != nil {
		t.Fatal(err)
	}
	now := s.Now() // that server checked the schedule when the namespace was enabled, and left it as it was
	for _, statement := range []string{"update schedules set next_fire_at = $1",
		"update namespaces set enabled = $1::bigint > 0"} {
		if _, err := s.pool.Exec(t.Context(), statement, micros(now)); err != nil {
			t.Fatal(err)
		}
	}
	due, _, err := s.DueSchedules(t.Context(), now, 10)
	if err != nil || len(due) != 1 {
		t.Fatalf("%d schedules are due, %v, want 1", len(due), err)
	}
	fired, err := s.FireSchedule(t.Context(),
		engine.FireScheduleParams{ScheduleID: plan.ID, Revision: due[0].Revision, Expect: due[0].NextFireAt,
			Next: now.Add(time.Hour), Now: now})
	if err != nil || fired.Runs != 1 {
		t.Errorf("FireSchedule = %+v, %v, want the run of the tick that waits", fired, err)
	}
	if n := firedRuns(t, s, plan.ID); n != 2 {
		t.Errorf("%d runs of the schedule, want 2", n)
	}
}

func TestTriggerRacingScheduleChangeIsCounted(t *testing.T) {
	a, b := rivals(t)
	now := engine.Micros(a.Now())
	plan, err := a.CreateSchedule(t.Context(),
		engine.ScheduleParams{AuditID: engine.NewID(now), Now: now, Schedule: engine.Schedule{
			ID: engine.NewID(now), Namespace: "default", Name: "nightly", CronExpr: "@daily", Enabled: true,
			Queue: "orders", Type: "order", NextFireAt: now.Add(time.Hour),
		}})
	if err != nil {
		t.Fatalf("CreateSchedule: %v", err)
	}
	trigger := func(ref string) engine.TriggerScheduleParams {
		return engine.TriggerScheduleParams{Namespace: "default", Ref: ref, RunID: engine.NewID(now),
			AuditID: engine.NewID(now), Now: now}
	}
	_, err = meanwhile(t, b, func(x *tx) error {
		if _, err := storelogic.TriggerSchedule(x, trigger(plan.ID.String())); err != nil {
			return err
		}
		return x.send()
	}, func() (engine.Started, error) { return a.TriggerSchedule(t.Context(), trigger("nightly")) })
	if err != nil {
		t.Fatalf("TriggerSchedule: %v", err)
	}
	if got, err := a.GetSchedule(t.Context(), "default", "nightly"); err != nil || got.Fired != 2 {
		t.Errorf("the schedule has fired %d runs, %v, want 2", got.Fired, err)
	}
}

func TestConcurrentNamespaceChangeIsRefused(t *testing.T) {
	a, b := rivals(t)
	start(t, a, 1) // makes the namespace
	n, err := a.GetNamespace(t.Context(), "default")
	if err != nil {
		t.Fatal(err)
	}
	change := func(description string, now time.Time) engine.NamespaceParams {
		p := engine.NamespaceParams{Namespace: n, AuditID: engine.NewID(now), Now: now}
		p.Namespace.Description = description
		return p
	}
	now := n.UpdatedAt.Add(time.Minute)
	_, err = meanwhile(t, b, func(x *tx) error {
		if err := x.queue(lockNamespaceSQL, args{"namespace": "default"}); err != nil {
			return err
		}
		if _, err := storelogic.UpdateNamespace(x, change("first", now)); err != nil {
			return err
		}
		return x.send()
	}, func() (engine.Namespace, error) { return a.UpdateNamespace(t.Context(), change("second", now)) })
	if !errors.Is(err, engine.ErrConflict) {
		t.Errorf("UpdateNamespace of what another has changed: %v, want ErrConflict", err)
	}
	if got, err := a.GetNamespace(t.Context(), "default"); err != nil || got.Description != "first" {
		t.Errorf("the description is %q, %v, want what was written first", got.Description, err)
	}
}
