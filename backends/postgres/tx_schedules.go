package postgres

import (
	_ "embed"
	"slices"
	"time"

	"github.com/kagzi/kagzi/engine"
)

//go:embed sql/lock_schedule.sql
var lockScheduleSQL string

//go:embed sql/lock_schedule_by_name.sql
var lockScheduleByNameSQL string

// Schedule is locked after the runs, when both are.
func (t *tx) Schedule(namespace, ref string) (*engine.Schedule, error) {
	if id, err := engine.ParseID(ref); err == nil {
		s, err := t.oneSchedule(lockScheduleSQL, args{"namespace": namespace, "schedule_id": [16]byte(id)})
		if err != nil || s != nil {
			return s, err
		}
	}
	return t.oneSchedule(lockScheduleByNameSQL, args{"namespace": namespace, "name": ref})
}

//go:embed sql/get_schedule_by_request.sql
var getScheduleByRequestSQL string

// ScheduleByRequest is asked when a client repeats the making of a schedule.
func (t *tx) ScheduleByRequest(namespace, requestID string) (*engine.Schedule, error) {
	return t.oneSchedule(getScheduleByRequestSQL, args{"namespace": namespace, "request_id": requestID})
}

func (t *tx) oneSchedule(statement string, a args) (*engine.Schedule, error) {
	var s engine.Schedule
	found, err := t.found(statement, a, wholeSchedule(&s)...)
	if err != nil || !found {
		return nil, err
	}
	return &s, nil
}

func wholeSchedule(s *engine.Schedule) []any {
	return slices.Concat(schedulePlaces(s), payloadPlaces(&s.Input))
}

//go:embed sql/insert_schedule.sql
var insertScheduleSQL string

// InsertSchedule has a rival who took the name or the request meanwhile make the insert fail, so that the verb is tried again.
func (t *tx) InsertSchedule(s *engine.Schedule) error {
	a := scheduleArgs(s)
	a["namespace"], a["request_id"], a["created_at"] = s.Namespace, s.RequestID, micros(s.CreatedAt)
	return t.queue(insertScheduleSQL, a)
}

//go:embed sql/update_schedule.sql
var updateScheduleSQL string

// SaveSchedule is for one that is locked.
func (t *tx) SaveSchedule(s *engine.Schedule) error {
	return t.queue(updateScheduleSQL, scheduleArgs(s))
}

// scheduleArgs is what can change of a schedule, for the statements that write it.
func scheduleArgs(s *engine.Schedule) args {
	return args{
		"schedule_id": [16]byte(s.ID), "name": s.Name, "cron_expr": s.CronExpr, "time_zone": s.TimeZone, "enabled": s.Enabled,
		"task_queue": s.Queue, "workflow_type": s.Type, "version": s.Version,
		"input": dataOrNull(s.Input.Data), "input_meta": mapText(s.Input.Metadata), "retry_policy": pointerText(s.RetryPolicy),
		"start_to_close_us": s.Timeouts.StartToClose.Microseconds(), "heartbeat_us": s.Timeouts.Heartbeat.Microseconds(),
		"execution_us": s.Timeouts.Execution.Microseconds(), "on_failure_workflow": s.OnFailureWorkflow,
		"on_failure_queue": s.OnFailureQueue, "tags": mapText(s.Tags), "max_catchup": s.MaxCatchup, "overlap": int16(s.Overlap),
		"updated_at": micros(s.UpdatedAt), "next_fire_at": microsOrNull(s.NextFireAt), "last_fired_at": microsOrNull(s.LastFiredAt),
		"buffered": microsOrNull(s.Buffered), "broken": s.Broken, "fired": s.Fired, "completed": s.Completed, "failed": s.Failed,
		"skipped": s.Skipped, "revision": s.Revision,
	}
}

//go:embed sql/delete_fires.sql
var deleteFiresSQL string

//go:embed sql/delete_schedule.sql
var deleteScheduleSQL string

// DeleteSchedule leaves its runs.
func (t *tx) DeleteSchedule(id engine.ID) error {
	if err := t.queue(deleteFiresSQL, args{"schedule_id": [16]byte(id)}); err != nil {
		return err
	}
	return t.queue(deleteScheduleSQL, args{"schedule_id": [16]byte(id)})
}

//go:embed sql/waiting_schedules.sql
var waitingSchedulesSQL string

// WaitingSchedules locks none of them. Whoever ends a run of one meanwhile, and goes by the namespace as it was, has the schedule locked, so that what he
// left is seen by who locks it next.
func (t *tx) WaitingSchedules(namespace string) ([]engine.ID, error) {
	return t.ids(waitingSchedulesSQL, args{"namespace": namespace})
}

//go:embed sql/open_of.sql
var openOfSQL string

// OpenOf is exact while the schedule is locked, for whoever starts or ends one of its runs locks it.
func (t *tx) OpenOf(schedule, but engine.ID) (n int, err error) {
	_, err = t.found(openOfSQL, args{"schedule_id": schedule.String(), "but": [16]byte(but)}, &n)
	return n, err
}

//go:embed sql/insert_fire.sql
var insertFireSQL string

// InsertFire is where a tick that another server fires as well stops.
func (t *tx) InsertFire(schedule engine.ID, tick time.Time, run engine.ID, now time.Time) (bool, error) {
	n, err := t.exec(insertFireSQL, args{"schedule_id": [16]byte(schedule), "tick": micros(tick), "run_id": [16]byte(run), "now": micros(now)})
	return n > 0, err
}
