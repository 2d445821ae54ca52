package sqlite

import (
	"context"
	_ "embed"
	"slices"
	"time"

	"github.com/kagzi/kagzi/engine"
)

//go:embed sql/list_live_workers.sql
var listLiveWorkersSQL string

// LiveWorkers is by id.
func (s *Store) LiveWorkers(ctx context.Context) ([]engine.LiveWorker, error) {
	return read(ctx, s, "LiveWorkers", func(r session) (live []engine.LiveWorker, err error) {
		err = r.query(&listLiveWorkersSQL, func(r *row) error {
			live = append(live, engine.LiveWorker{ID: r.text(), HeardAt: r.time()})
			return nil
		})
		return live, err
	})
}

//go:embed sql/list_held_past_heartbeat.sql
var listHeldPastHeartbeatSQL string

// FreeLost comes for the leases that OfflineWorker left.
func (s *Store) FreeLost(ctx context.Context, now time.Time) (int, time.Time, error) {
	type outcome struct {
		freed int
		next  time.Time
	}
	now = engine.Micros(now)
	out, err := write(ctx, s, "FreeLost", 0, func(t *tx) (out outcome, err error) {
		var over []runState
		err = t.query(&listHeldPastHeartbeatSQL, func(r *row) error {
			run, err := readRunState(r)
			switch at := r.time(); {
			case !at.After(now):
				over = append(over, run)
			case out.next.IsZero() || at.Before(out.next):
				out.next = at
			}
			return err
		})
		for i := range over {
			if err == nil {
				t.ringWorker(over[i].worker)
				err = t.lose(&over[i], now)
			}
		}
		out.freed = len(over)
		return out, err
	})
	return out.freed, out.next, err
}

//go:embed sql/list_timed_out.sql
var listTimedOutSQL string

//go:embed sql/next_timeout.sql
var nextTimeoutSQL string

// TimeoutSteps takes the attempts of one run together, so that the end of its lease does not interrupt one that is over itself.
func (s *Store) TimeoutSteps(ctx context.Context, p engine.TimeoutStepsParams) (int, time.Time, error) {
	type outcome struct {
		failed int
		next   time.Time
	}
	p.Now = engine.Micros(p.Now)
	out, err := write(ctx, s, "TimeoutSteps", 0, func(t *tx) (out outcome, err error) {
		var late []engine.Step
		err = t.query(&listTimedOutSQL, func(r *row) error {
			step, err := readStep(r)
			late = append(late, step)
			return err
		}, instant("now", p.Now), num("limit", p.Limit))
		if err != nil {
			return out, err
		}
		out.failed = len(late)
		for len(late) > 0 {
			run := late[0].RunID
			rest := slices.DeleteFunc(slices.Clone(late), func(s engine.Step) bool { return s.RunID == run })
			of := slices.DeleteFunc(late, func(s engine.Step) bool { return s.RunID != run })
			if err := t.timeout(run, of, &p); err != nil {
				return out, err
			}
			late = rest
		}
		err = t.query(&nextTimeoutSQL, func(r *row) error {
			out.next = r.time()
			return nil
		})
		return out, err
	})
	return out.failed, out.next, err
}

// timeout fails these attempts of a run and ends its lease.
func (t *tx) timeout(id engine.ID, late []engine.Step, p *engine.TimeoutStepsParams) error {
	run, err := t.runState("", id)
	if err != nil {
		return err
	}
	final := false
	for i := range late {
		step := &late[i]
		v := fail(&run, step, engine.StepTimedOutFailure(), p.Now, p.Roll)
		final = final || !v.Retry
		step.Token = engine.Token{} // no lease has reported this, so no late report is a repetition of it
		if err := t.update(step); err != nil {
			return err
		}
	}
	t.ringWorker(run.worker)
	if final { // another worker takes the error into the code
		return t.free(&run, due(p.Now), p.Now)
	}
	return t.park(&run, p.Now)
}

//go:embed sql/list_prunable.sql
var listPrunableSQL string

//go:embed sql/prune_steps.sql
var pruneStepsSQL string

//go:embed sql/prune_payload.sql
var prunePayloadSQL string

//go:embed sql/prune_tags.sql
var pruneTagsSQL string

//go:embed sql/prune_requests.sql
var pruneRequestsSQL string

//go:embed sql/prune_receipts.sql
var pruneReceiptsSQL string

//go:embed sql/prune_run.sql
var pruneRunSQL string

//go:embed sql/prune_workers.sql
var pruneWorkersSQL string

// Prune deletes a run after all that refers to it.
func (s *Store) Prune(ctx context.Context, p engine.PruneParams) (int, error) {
	before := engine.Micros(p.Before)
	return write(ctx, s, "Prune", 0, func(t *tx) (int, error) {
		var old []engine.ID
		err := t.query(&listPrunableSQL, func(r *row) error {
			old = append(old, r.id())
			return nil
		}, instant("before", before), num("limit", p.Limit))
		if err != nil {
			return 0, err
		}
		for _, id := range old {
			for _, statement := range []*string{
				&pruneStepsSQL, &prunePayloadSQL, &pruneTagsSQL, &pruneRequestsSQL, &pruneReceiptsSQL, &pruneRunSQL,
			} {
				if _, err := t.exec(statement, idArg("run_id", id)); err != nil {
					return 0, err
				}
			}
		}
		_, err = t.exec(&pruneWorkersSQL, instant("before", before))
		return len(old), err
	})
}
