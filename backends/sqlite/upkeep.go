package sqlite

import (
	"context"
	_ "embed"
	"time"

	"github.com/kagzi/kagzi/engine"
)

//go:embed sql/list_live_workers.sql
var listLiveWorkersSQL string

// LiveWorkers is the workers that are not OFFLINE, by id.
func (s *Store) LiveWorkers(ctx context.Context) ([]engine.LiveWorker, error) {
	return read(ctx, s, "LiveWorkers", func(r session) (live []engine.LiveWorker, err error) {
		err = r.query(&listLiveWorkersSQL, func(r *row) error {
			live = append(live, engine.LiveWorker{ID: r.text(), HeardAt: r.time()})
			return nil
		})
		return live, err
	})
}

//go:embed sql/due_schedules.sql
var dueSchedulesSQL string

// DueSchedules looks at one schedule more than it may answer: that one, or the first that is not due, is the next.
func (s *Store) DueSchedules(ctx context.Context, now time.Time, limit int) ([]engine.Schedule, time.Time, error) {
	type found struct {
		due  []engine.Schedule
		next time.Time
	}
	out, err := read(ctx, s, "DueSchedules", func(r session) (out found, err error) {
		err = r.query(&dueSchedulesSQL, func(r *row) error {
			schedule, err := readSchedule(r)
			if len(out.due) < limit && !schedule.NextFireAt.After(now) {
				out.due = append(out.due, schedule)
			} else if out.next.IsZero() {
				out.next = schedule.NextFireAt
			}
			return err
		}, num("limit", limit+1))
		return out, err
	})
	return out.due, out.next, err
}
