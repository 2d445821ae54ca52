package postgres

import (
	_ "embed"
	"strconv"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/kagzi/kagzi/engine"
)

// groupSchedules are the schedules of a group, with the changes of its operations.
type groupSchedules struct {
	schedules map[engine.ID]*groupSchedule
	fired     map[want]bool // recorded ticks
	fires     []args        // of insert_fires.sql
}

type groupSchedule struct {
	base *engine.Schedule // as it is stored
	now  *engine.Schedule // as operations have left it; nil: unchanged
}

func newGroupSchedules() groupSchedules {
	return groupSchedules{schedules: map[engine.ID]*groupSchedule{}, fired: map[want]bool{}}
}

// wantTick looks for the record of a tick.
func wantTick(schedule engine.ID, tick int64) want {
	return want{wantFire, schedule, strconv.FormatInt(tick, 10)}
}

//go:embed sql/try_schedules.sql
var trySchedulesSQL string

//go:embed sql/find_fires.sql
var findFiresSQL string

//go:embed sql/insert_fires.sql
var insertFiresText string

var insertFiresSQL = hot(insertFiresText)

// queueSchedules queues what locks and reads schedules, after the runs, and their recorded ticks.
func (g *groupRows) queueSchedules(t *tx, w wants) error {
	if ids := w.ids[wantSchedule]; len(ids) > 0 {
		t.batch.Queue(trySchedulesSQL, args{"schedule_ids": idArray(ids)}).Query(func(rows pgx.Rows) error {
			for rows.Next() {
				var s engine.Schedule
				if err := rows.Scan(wholeSchedule(&s)...); err != nil {
					return err
				}
				g.schedules[s.ID] = &groupSchedule{base: &s}
			}
			return rows.Err()
		})
	}
	ids := w.ids[wantFire]
	if len(ids) == 0 {
		return nil
	}
	ticks := make([]int64, len(ids))
	for i, text := range w.texts[wantFire] {
		tick, err := strconv.ParseInt(text, 10, 64)
		if err != nil {
			return err
		}
		ticks[i] = tick
	}
	var id engine.ID
	var tick int64
	t.later(findFiresSQL, args{"schedule_ids": idArray(ids), "ticks": ticks}, []any{idOf(&id), &tick}, func() {
		g.fired[wantTick(id, tick)] = true
	})
	return nil
}

// Schedule returns a copy, because operations change it.
func (t *groupTx) Schedule(namespace, ref string) (*engine.Schedule, error) {
	id, err := engine.ParseID(ref)
	if err != nil {
		return nil, errElsewhere
	}
	if err := t.rows.need(wantSchedule, id, ""); err != nil {
		return nil, err
	}
	s := t.rows.schedules[id]
	if s == nil {
		return nil, errLocked // or it does not exist
	}
	copied := *s.base
	if s.now != nil {
		copied = *s.now
	}
	if namespace != "" && copied.Namespace != namespace {
		return nil, errElsewhere // it may be a name
	}
	return &copied, nil
}

func (t *groupTx) SaveSchedule(saved *engine.Schedule) error {
	s := t.rows.schedules[saved.ID]
	if s == nil {
		return errElsewhere
	}
	before, copied := s.now, *saved
	t.rows.change(func() { s.now = before })
	s.now = &copied
	return nil
}

func (t *groupTx) InsertFire(schedule engine.ID, tick time.Time, run engine.ID, now time.Time) (bool, error) {
	w := wantTick(schedule, micros(tick))
	if err := t.rows.need(w.what, w.id, w.text); err != nil {
		return false, err
	}
	if t.rows.fired[w] {
		return false, nil
	}
	t.rows.change(func() {
		delete(t.rows.fired, w)
		t.rows.fires = t.rows.fires[:len(t.rows.fires)-1]
	})
	t.rows.fired[w] = true
	t.rows.fires = append(t.rows.fires, args{"schedule_id": [16]byte(schedule), "tick": micros(tick),
		"run_id": [16]byte(run), "now": micros(now)})
	return true, nil
}

// writeSchedules queues the changes of schedules.
func (g *opGroup) writeSchedules() error {
	for _, s := range g.rows.schedules {
		if s.now == nil {
			continue
		}
		if err := g.tx.SaveSchedule(s.now); err != nil {
			return err
		}
	}
	return g.tx.queueRows(insertFiresSQL, g.rows.fires...)
}
