package storelogic

import (
	"maps"
	"reflect"
	"strconv"
	"time"

	"github.com/kagzi/kagzi/engine"
)

// CreateSchedule makes a schedule.
func CreateSchedule(tx Tx, p engine.ScheduleParams) (engine.Schedule, error) {
	u := begin(tx, p.Now)
	s := p.Schedule
	if s.RequestID != "" {
		known, err := tx.ScheduleByRequest(s.Namespace, s.RequestID)
		if err != nil {
			return engine.Schedule{}, err
		}
		if known != nil {
			return madeBefore(known, &s)
		}
	}
	if err := u.enabled(s.Namespace); err != nil {
		return engine.Schedule{}, err
	}
	if err := u.scheduleNameFree(&s); err != nil {
		return engine.Schedule{}, err
	}
	s.CreatedAt, s.UpdatedAt, s.NextFireAt = u.now, u.now, engine.Micros(s.NextFireAt)
	s.LastFiredAt, s.Buffered = time.Time{}, time.Time{}
	s.Fired, s.Completed, s.Failed, s.Skipped, s.Revision = 0, 0, 0, 0, 1
	if s.Enabled {
		s.PauseReason = ""
	}
	if err := u.ensureNamespace(s.Namespace, p.NamespaceMustExist); err != nil {
		return engine.Schedule{}, err
	}
	if err := tx.InsertSchedule(&s); err != nil {
		return engine.Schedule{}, err
	}
	u.notifySchedule(&s)
	u.notifyTimer()
	return s, u.audit(p.By, p.AuditID, p.Method, onSchedule(&s), p.Reason, "")
}

// madeBefore answers a request that has made a schedule. If the schedule was changed since, the
// request's original content is unknown.
func madeBefore(known, wanted *engine.Schedule) (engine.Schedule, error) {
	same := known.Name == wanted.Name && known.Type == wanted.Type && known.Queue == wanted.Queue &&
		known.CronExpr == wanted.CronExpr &&
		known.TimeZone == wanted.TimeZone && known.Input.Equal(wanted.Input)
	if known.Revision == 1 && !same {
		return engine.Schedule{}, &engine.Error{
			Kind: engine.KindConflict, Subject: "schedule", SubjectID: known.ID.String(),
			Message: "this request was made before with other content: it made schedule " + known.ID.String()}
	}
	return *known, nil
}

// scheduleNameFree is nil unless another schedule of the namespace has the name.
func (u *unitOfWork) scheduleNameFree(s *engine.Schedule) error {
	if s.Name == "" {
		return nil
	}
	other, err := u.tx.Schedule(s.Namespace, s.Name)
	if err != nil || other == nil || other.ID == s.ID {
		return err
	}
	return &engine.Error{Kind: engine.KindExists, Subject: "schedule", SubjectID: other.ID.String(),
		Message: "the name " + s.Name + " is taken by schedule " + other.ID.String()}
}

// UpdateSchedule replaces the settings.
func UpdateSchedule(tx Tx, p engine.ScheduleParams) (engine.Schedule, error) {
	u := begin(tx, p.Now)
	s, err := u.schedule(p.Schedule.Namespace, p.Schedule.ID.String())
	if err != nil {
		return engine.Schedule{}, err
	}
	wanted := revised(s, p.Schedule, engine.Micros(p.Read), u.now)
	if sameSchedule(s, &wanted) {
		return *s, nil
	}
	if p.Schedule.Revision != s.Revision || p.Skipped > 0 && !s.NextFireAt.Equal(engine.Micros(p.Read)) {
		return engine.Schedule{}, &engine.Error{
			Kind: engine.KindConflict, Subject: "schedule", SubjectID: s.ID.String(),
			Message: "schedule " + s.ID.String() + " was changed by somebody else since it was read; read it again"}
	}
	if err := u.scheduleNameFree(&wanted); err != nil {
		return engine.Schedule{}, err
	}
	wanted.Revision, wanted.UpdatedAt, wanted.Skipped = s.Revision+1, u.now, wanted.Skipped+p.Skipped
	if _, err := u.fireAsSideEffect(&wanted); err != nil {
		// it may have been paused when the run that the tick waits for ended
		return engine.Schedule{}, err
	}
	if err := u.saveSchedule(&wanted); err != nil {
		return engine.Schedule{}, err
	}
	u.notifyTimer()
	return wanted, u.audit(p.By, p.AuditID, p.Method, onSchedule(s), p.Reason, "")
}

// revised returns the schedule with the wanted settings and the fields that only Kagzi sets. Ticks
// that were decided since the person read the schedule stay decided: leaving NextFireAt as it was
// read does not ask for them again.
func revised(s *engine.Schedule, wanted engine.Schedule, read, now time.Time) engine.Schedule {
	movedOn := s.NextFireAt.IsZero() || s.NextFireAt.After(wanted.NextFireAt) // none: the last tick was decided
	if (!wanted.NextFireAt.After(now) && movedOn || wanted.NextFireAt.Equal(read)) && !wanted.NextFireAt.IsZero() &&
		wanted.CronExpr == s.CronExpr && wanted.TimeZone == s.TimeZone {
		wanted.NextFireAt, wanted.Delay = s.NextFireAt, s.Delay
		if wanted.Jitter != s.Jitter {
			wanted.Delay = 0 // not computed yet
		}
	}
	if wanted.Enabled {
		wanted.PauseReason = ""
	}
	wanted.ID, wanted.Namespace, wanted.RequestID = s.ID, s.Namespace, s.RequestID
	wanted.CreatedAt, wanted.UpdatedAt, wanted.Revision = s.CreatedAt, s.UpdatedAt, s.Revision
	wanted.NextFireAt, wanted.LastFiredAt, wanted.Buffered = engine.Micros(wanted.NextFireAt), s.LastFiredAt, s.Buffered
	wanted.Fired, wanted.Completed, wanted.Failed, wanted.Skipped = s.Fired, s.Completed, s.Failed, s.Skipped
	if wanted.Overlap != engine.OverlapBufferOne && !wanted.Buffered.IsZero() {
		wanted.Buffered = time.Time{}
		wanted.Skipped++
	}
	return wanted
}

// sameSchedule compares two states of one schedule; empty and nil maps are equal.
func sameSchedule(s, t *engine.Schedule) bool {
	a, b := *s, *t
	if !a.Input.Equal(b.Input) || !maps.Equal(a.Tags, b.Tags) || !a.NextFireAt.Equal(b.NextFireAt) {
		return false
	}
	a.Input, a.Tags, a.NextFireAt = b.Input, b.Tags, b.NextFireAt
	return reflect.DeepEqual(a, b)
}

// DeleteSchedule deletes the schedule and leaves its runs.
func DeleteSchedule(tx Tx, p engine.DeleteScheduleParams) error {
	u := begin(tx, p.Now)
	s, err := u.schedule(p.Namespace, p.Ref)
	if err != nil {
		return err
	}
	if err := tx.DeleteSchedule(s.ID); err != nil {
		return err
	}
	u.notifySchedule(s)
	return u.audit(p.By, p.AuditID, "DeleteWorkflowSchedule", onSchedule(s), p.Reason, s.Name)
}

// TriggerSchedule starts one run of the schedule now.
func TriggerSchedule(tx Tx, p engine.TriggerScheduleParams) (engine.Started, error) {
	u := begin(tx, p.Now)
	if p.RequestID != "" {
		answer, err := u.triggeredBefore(&p)
		if err != nil || answer.Repeated {
			return answer, err
		}
	}
	s, err := u.schedule(p.Namespace, p.Ref)
	if err != nil {
		return engine.Started{}, err
	}
	if err := u.enabled(p.Namespace); err != nil {
		return engine.Started{}, err
	}
	start := s.Start(p.RunID, time.Time{}, u.now)
	start.RequestID = p.RequestID
	u.start(start)
	s.Fired++
	if err := u.saveSchedule(s); err != nil {
		return engine.Started{}, err
	}
	if err := u.audit(p.By, p.AuditID, "TriggerWorkflowSchedule", onSchedule(s), "",
		"run "+p.RunID.String()); err != nil {
		return engine.Started{}, err
	}
	return engine.Started{RunID: p.RunID}, u.flush()
}

// triggeredBefore returns the first answer to the request with Repeated set, if there was one.
func (u *unitOfWork) triggeredBefore(p *engine.TriggerScheduleParams) (engine.Started, error) {
	id, err := u.tx.Requested(p.Namespace, p.RequestID)
	if err != nil || id.IsZero() {
		return engine.Started{}, err
	}
	known, err := u.find(p.Namespace, id)
	if err != nil {
		return engine.Started{}, err
	}
	if known == nil { // deleted since
		first, err := u.tx.LeftRequest(p.Namespace, p.RequestID)
		if err == nil && (first == nil || first.Type == "") {
			err = requestConflict(id)
		}
		return engine.Started{RunID: id, Existed: true, Repeated: true}, err
	}
	s, err := u.tx.Schedule(p.Namespace, p.Ref)
	if err != nil {
		return engine.Started{}, err
	}
	if known.Origin != engine.OriginSchedule || s != nil && known.ScheduleID != s.ID.String() {
		return engine.Started{}, requestConflict(id)
	}
	return engine.Started{RunID: id, Repeated: true}, nil
}

// BackfillSchedule starts the runs of ticks that have none yet.
func BackfillSchedule(tx Tx, p engine.BackfillScheduleParams) ([]engine.Started, error) {
	u := begin(tx, p.Now)
	s, err := u.schedule(p.Namespace, p.Ref)
	if err != nil {
		return nil, err
	}
	if err := u.enabled(p.Namespace); err != nil {
		return nil, err
	}
	started, before := make([]engine.Started, 0, len(p.Ticks)), s.Fired
	for _, tick := range p.Ticks {
		at := engine.Micros(tick.At)
		known, err := tx.FiredRun(s.ID, at)
		if err != nil {
			return nil, err
		}
		if !known.IsZero() {
			started = append(started, engine.Started{RunID: known, Existed: true})
			continue
		}
		if _, err := u.fire(s, at, tick.RunID); err != nil {
			return nil, err
		}
		started = append(started, engine.Started{RunID: tick.RunID})
	}
	if s.Fired == before {
		return started, nil
	}
	if err := u.saveSchedule(s); err != nil {
		return nil, err
	}
	detail := strconv.FormatInt(s.Fired-before, 10) + " runs for ticks from " + p.From.UTC().Format(time.RFC3339) +
		" to " + p.To.UTC().Format(time.RFC3339)
	if err := u.audit(p.By, p.AuditID, "BackfillWorkflowSchedule", onSchedule(s), p.Reason, detail); err != nil {
		return nil, err
	}
	return started, u.flush()
}

func (u *unitOfWork) schedule(namespace, ref string) (*engine.Schedule, error) {
	s, err := u.tx.Schedule(namespace, ref)
	if err == nil && s == nil {
		err = engine.ScheduleNotFound(ref)
	}
	return s, err
}

// saveSchedule writes a changed schedule and notifies.
func (u *unitOfWork) saveSchedule(s *engine.Schedule) error {
	u.notifySchedule(s)
	return u.tx.SaveSchedule(s)
}
