package sqlite

import (
	_ "embed"
	"time"

	"github.com/kagzi/kagzi/engine"
)

//go:embed sql/get_schedule.sql
var getScheduleSQL string

//go:embed sql/get_schedule_by_name.sql
var getScheduleByNameSQL string

func (t *tx) Schedule(namespace, ref string) (*engine.Schedule, error) {
	if err := t.flushCounts(); err != nil {
		return nil, err
	}
	return t.schedule(namespace, ref)
}

// schedule tries ref as an id first, because a name may look like one.
func (s session) schedule(namespace, ref string) (*engine.Schedule, error) {
	if id, err := engine.ParseID(ref); err == nil {
		found, err := s.oneSchedule(&getScheduleSQL, text("namespace", namespace), idArg("schedule_id", id))
		if err != nil || found != nil {
			return found, err
		}
	}
	return s.oneSchedule(&getScheduleByNameSQL, text("namespace", namespace), text("name", ref))
}

func (s session) oneSchedule(statement *string, args ...arg) (*engine.Schedule, error) {
	var schedule engine.Schedule
	found, err := s.found(statement, func(r *row) (err error) {
		schedule, err = readWholeSchedule(r)
		return err
	}, args...)
	if err != nil || !found {
		return nil, err
	}
	return &schedule, nil
}

//go:embed sql/get_schedule_by_request.sql
var getScheduleByRequestSQL string

func (t *tx) ScheduleByRequest(namespace, requestID string) (*engine.Schedule, error) {
	if err := t.flushCounts(); err != nil {
		return nil, err
	}
	return t.oneSchedule(&getScheduleByRequestSQL, text("namespace", namespace), text("request_id", requestID))
}

//go:embed sql/insert_schedule.sql
var insertScheduleSQL string

func (t *tx) InsertSchedule(s *engine.Schedule) error {
	if err := t.useNamespace(s.Namespace, s.CreatedAt); err != nil {
		return err
	}
	_, err := t.exec(&insertScheduleSQL, append(
		scheduleArgs(s), text("namespace", s.Namespace), text("request_id", s.RequestID),
		instant("created_at", s.CreatedAt))...)
	return err
}

//go:embed sql/update_schedule.sql
var updateScheduleSQL string

func (t *tx) SaveSchedule(s *engine.Schedule) error {
	_, err := t.exec(&updateScheduleSQL, scheduleArgs(s)...)
	return err
}

// scheduleArgs returns the columns of a schedule that can change.
func scheduleArgs(s *engine.Schedule) []arg {
	return []arg{
		idArg("schedule_id", s.ID), text("name", s.Name), text("cron_expr", s.CronExpr), text("time_zone", s.TimeZone),
		flag("enabled", s.Enabled), text("task_queue", s.Queue), text("workflow_type", s.Type),
		text("version", s.Version),
		blob("input", s.Input.Data), text("input_meta", encodeMap(s.Input.Metadata)),
		text("retry_policy", encodePolicy(s.RetryPolicy)),
		length("start_to_close_us", s.Timeouts.StartToClose), length("heartbeat_us", s.Timeouts.Heartbeat),
		length("execution_us", s.Timeouts.Execution), text("on_failure_workflow", s.OnFailureWorkflow),
		text("on_failure_queue", s.OnFailureQueue), text("tags", encodeMap(s.Tags)), num("max_catchup", s.MaxCatchup),
		num("overlap", s.Overlap), instant("updated_at", s.UpdatedAt), instant("next_fire_at", s.NextFireAt),
		instant("last_fired_at", s.LastFiredAt), instant("buffered", s.Buffered), text("broken", s.Broken),
		num("fired", s.Fired),
		num("completed", s.Completed), num("failed", s.Failed), num("skipped", s.Skipped), num("revision", s.Revision),
		text("pause_reason", s.PauseReason), length("jitter_us", s.Jitter), length("delay_us", s.Delay),
		text("concurrency_key", s.ConcurrencyKey), num("concurrency_limit", s.ConcurrencyLimit),
		num("concurrency_scope", s.ConcurrencyScope), text("run_retry_policy", encodePolicy(s.RunRetryPolicy)),
	}
}

//go:embed sql/delete_fires.sql
var deleteFiresSQL string

//go:embed sql/delete_schedule.sql
var deleteScheduleSQL string

func (t *tx) DeleteSchedule(id engine.ID) error {
	if _, err := t.exec(&deleteFiresSQL, idArg("schedule_id", id)); err != nil {
		return err
	}
	_, err := t.exec(&deleteScheduleSQL, idArg("schedule_id", id))
	return err
}

//go:embed sql/waiting_schedules.sql
var waitingSchedulesSQL string

func (t *tx) WaitingSchedules(namespace string) ([]engine.ID, error) {
	return t.listIDs(&waitingSchedulesSQL, text("namespace", namespace))
}

//go:embed sql/open_of.sql
var openOfSQL string

func (t *tx) OpenOf(schedule, but engine.ID) (n int, err error) {
	err = t.query(&openOfSQL, func(r *row) error {
		n = int(r.num())
		return nil
	}, text("schedule_id", schedule.String()), idArg("but", but))
	return n, err
}

//go:embed sql/insert_fire.sql
var insertFireSQL string

func (t *tx) InsertFire(schedule engine.ID, tick time.Time, run engine.ID, now time.Time) (bool, error) {
	made, err := t.exec(&insertFireSQL, idArg("schedule_id", schedule), instant("tick", tick), idArg("run_id", run),
		instant("now", now))
	return made > 0, err
}

//go:embed sql/fired_run.sql
var firedRunSQL string

func (t *tx) FiredRun(schedule engine.ID, tick time.Time) (run engine.ID, err error) {
	_, err = t.found(&firedRunSQL, func(r *row) error {
		run = r.id()
		return nil
	}, idArg("schedule_id", schedule), instant("tick", tick))
	return run, err
}

//go:embed sql/get_namespace.sql
var getNamespaceSQL string

func (t *tx) Namespace(name string) (*engine.Namespace, error) {
	if err := t.flushCounts(); err != nil {
		return nil, err
	}
	return t.namespace(name)
}

func (s session) namespace(name string) (*engine.Namespace, error) {
	var n engine.Namespace
	found, err := s.found(&getNamespaceSQL, func(r *row) (err error) {
		n, err = readNamespace(r)
		return err
	}, text("namespace", name))
	if err != nil || !found {
		return nil, err
	}
	return &n, nil
}

//go:embed sql/insert_namespace.sql
var insertNamespaceSQL string

func (t *tx) InsertNamespace(n *engine.Namespace) error {
	_, err := t.exec(&insertNamespaceSQL, append(
		namespaceArgs(n), idArg("id", n.ID), instant("created_at", n.CreatedAt))...)
	if err == nil {
		t.queues.namespaces[n.Name] = n.Enabled
	}
	return err
}

//go:embed sql/update_namespace.sql
var updateNamespaceSQL string

func (t *tx) SaveNamespace(n *engine.Namespace) error {
	_, err := t.exec(&updateNamespaceSQL, namespaceArgs(n)...)
	if err == nil {
		t.queues.namespaces[n.Name] = n.Enabled
	}
	return err
}

// namespaceArgs returns the columns of a namespace that can change.
func namespaceArgs(n *engine.Namespace) []arg {
	return []arg{
		text("namespace", n.Name), text("display_name", n.DisplayName), text("description", n.Description),
		flag("enabled", n.Enabled),
		instant("updated_at", n.UpdatedAt), length("retention_us", n.Retention), text("keep", encodeKeep(n.Keep)),
		text("failure_queue", n.FailureQueue),
	}
}
