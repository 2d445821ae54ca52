package postgres

import (
	"testing"

	"github.com/kagzi/kagzi/engine"
)

// heldExternal returns a run that has the external id that these two starts of one request ask for.
func heldExternal(t *testing.T, a, b *Store) (holder, asked, again engine.StartRun) {
	t.Helper()
	holder, asked, again = newStart(a), newStart(a), newStart(b)
	holder.ExternalID, asked.ExternalID, again.ExternalID = "external", "external", "external"
	asked.RequestID, again.RequestID = "request", "request"
	if _, err := a.StartRuns(t.Context(), engine.StartRunsParams{Runs: []engine.StartRun{holder}}); err != nil {
		t.Fatal(err)
	}
	return holder, asked, again
}

// terminate ends the run; it may be called from any goroutine.
func terminate(t *testing.T, s *Store, run engine.ID) {
	p := engine.EndRunParams{Namespace: "default", RunID: run, AuditID: engine.NewID(s.Now()), Now: s.Now()}
	if _, err := s.TerminateRun(t.Context(), p); err != nil {
		t.Errorf("TerminateRun: %v", err)
	}
}

func TestRequestHasOneAnswerWhileRunEnds(t *testing.T) {
	a, b := rivals(t)
	holder, asked, again := heldExternal(t, a, b)
	watch := adminConnection(t, a.pool.Config().ConnString())
	second := make(chan engine.Started, 1)
	begun := false
	first, err := write(a, "start a run, slowly", func(x *tx) (engine.Started, error) {
		answer, err := x.startOne(&asked, false, map[string]error{})
		if err != nil || begun {
			return answer, err
		}
		begun = true
		go func() {
			terminate(t, b, holder.ID)
			started, err := b.StartRuns(t.Context(), engine.StartRunsParams{Runs: []engine.StartRun{again}})
			if err != nil {
				t.Errorf("StartRuns: %v", err)
				started = make([]engine.Started, 1)
			}
			second <- started[0]
		}()
		for waits := false; !waits && len(second) == 0; { // for the first to be answered
			err := watch.QueryRow(t.Context(),
				"select exists (select from pg_locks where not granted and $1 = any(pg_blocking_pids(pid)))",
				int32(x.conn.Conn().PgConn().PID())).Scan(&waits)
			if err != nil {
				return answer, err
			}
		}
		return answer, nil
	})
	if err != nil || first.RunID != holder.ID || !first.Existed {
		t.Fatalf("first answer = %+v, %v, want run %s, which existed", first, err, holder.ID)
	}
	if got := <-second; got.RunID != holder.ID || !got.Existed || !got.Repeated {
		t.Errorf("second answer = %+v, want the first again, run %s", got, holder.ID)
	}
}

func TestRequestAnsweredDuringLookup(t *testing.T) {
	a, b := rivals(t)
	holder, asked, again := heldExternal(t, a, b)
	answered := false
	got, err := write(b, "start a run, slowly", func(x *tx) (answer engine.Started, err error) {
		if answer, found, err := x.repeated(&again); err != nil || found {
			return answer, err
		}
		if !answered {
			answered = true
			if _, err := a.StartRuns(t.Context(), engine.StartRunsParams{Runs: []engine.StartRun{asked}}); err != nil {
				return answer, err
			}
			terminate(t, a, holder.ID)
		}
		answer, _, err = x.earlier(&again)
		return answer, err
	})
	if err != nil || got.RunID != holder.ID || !got.Existed || !got.Repeated {
		t.Errorf("answer = %+v, %v, want the first again, run %s", got, err, holder.ID)
	}
}

// slowly begins a transaction that makes this run. Before the commit it calls before, which starts
// others that wait for it, and ends the run.
func slowly(t *testing.T, a *Store, holder engine.StartRun, before func(x *tx) error, others func()) {
	t.Helper()
	watch := adminConnection(t, a.pool.Config().ConnString())
	_, err := write(a, "start a run, slowly", func(x *tx) (answer engine.Started, err error) {
		if answer, err = x.startOne(&holder, false, map[string]error{}); err != nil {
			return answer, err
		}
		if err := x.send(); err != nil {
			return answer, err
		}
		go others()
		for waits := false; !waits; {
			err := watch.QueryRow(t.Context(),
				"select exists (select from pg_locks where not granted and $1 = any(pg_blocking_pids(pid)))",
				int32(x.conn.Conn().PgConn().PID())).Scan(&waits)
			if err != nil {
				return answer, err
			}
		}
		if err := before(x); err != nil {
			return answer, err
		}
		return answer,
			x.queue("update runs set status = 6, available_at = null, finished_at = created_at where run_id = @run_id",
				args{"run_id": [16]byte(holder.ID)})
	})
	if err != nil {
		t.Fatal(err)
	}
}

func TestAStartThatARunOvertakesFindsItThoughItHasEnded(t *testing.T) {
	nothing := func(*tx, engine.StartRun, engine.ID) error { return nil }
	for name, test := range map[string]struct {
		change func(r *engine.StartRun)
		before func(x *tx, r engine.StartRun, holder engine.ID) error
		want   bool // it is answered with the run that has ended
	}{
		"an id that is never had again": {func(r *engine.StartRun) { r.Reuse = engine.ReuseNever }, nothing, true},
		"a request that was answered": {func(r *engine.StartRun) {
			r.RequestID = "request"
		}, func(x *tx, r engine.StartRun, holder engine.ID) error { return x.LeaveRequest(&r, holder) }, true},
		"an id that may be had again": {func(r *engine.StartRun) { r.RequestID = "request" }, nothing, false},
	} {
		for way, started := range map[string]func(s *Store, r engine.StartRun) (engine.Started, error){
			"in a group": func(s *Store, r engine.StartRun) (engine.Started, error) {
				answers, err := s.StartRuns(t.Context(), engine.StartRunsParams{Runs: []engine.StartRun{r}})
				return append(answers, engine.Started{})[0], err
			},
			"alone": func(s *Store, r engine.StartRun) (engine.Started, error) {
				return write(s, "start a run", func(x *tx) (engine.Started, error) {
					return x.startOne(&r, false, map[string]error{})
				})
			},
		} {
			t.Run(name+", "+way, func(t *testing.T) {
				a, b := rivals(t)
				start(t, a, 1) // so that the namespace and the lane exist and are cached
				start(t, b, 1)
				holder, late := newStart(a), newStart(b)
				holder.ExternalID, late.ExternalID = "external", "external"
				test.change(&late)
				var got engine.Started
				var err error
				done := make(chan struct{})
				slowly(t, a, holder, func(x *tx) error { return test.before(x, late, holder.ID) }, func() {
					defer close(done)
					got, err = started(b, late)
				})
				<-done
				want := engine.Started{RunID: late.ID}
				if test.want {
					want = engine.Started{RunID: holder.ID, Existed: true, Repeated: late.RequestID != ""}
				}
				if err != nil || got != want {
					t.Errorf("answer = %+v, %v, want %+v", got, err, want)
				}
			})
		}
	}
}
