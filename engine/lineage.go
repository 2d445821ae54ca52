package engine

import (
	"cmp"
	"time"
)

// ChildOf returns the run that a CHILD step of parent starts. It has no request id, because the
// step makes its start safe to repeat. wanted is what the parent's code asked for.
func ChildOf(parent *Run, step ID, wanted StartRun, now time.Time) StartRun {
	c := wanted
	c.Namespace, c.RequestID = parent.Namespace, ""
	c.Bytes = int64(c.Input.Size())
	c.CreatedAt = now
	if c.AvailableAt.Before(now) {
		c.AvailableAt = now
	}
	c.ParentRunID, c.ParentStepID = parent.ID, step
	c.Traceparent = cmp.Or(c.Traceparent, parent.Traceparent)
	c.BelowHandler = parent.BelowHandler || parent.IsHandler()
	c.Origin, c.ScheduleID, c.ScheduledAt = OriginUser, "", time.Time{}
	c.FailedRunID, c.RetriedFrom, c.ContinuedFrom, c.FirstRunID = ID{}, ID{}, ID{}, ID{}
	c.HasPlace = false
	c.Run = c.NewRun()
	return c
}

// Imported returns the run that an import makes from run, whose ids are already those of the
// importing server. An open run is paused until it is resumed. Requests to cancel it and deadlines
// that have passed are dropped.
func Imported(run Run, namespace string, now time.Time) Run {
	run.Namespace, run.Origin, run.Suspect, run.Divergences = namespace, OriginImport, Suspect{}, nil
	run.OwedFrom, run.HasPlace = 0, false
	if run.Status.Ended() {
		return run
	}
	run.Status, run.WaitingFor, run.WorkerID, run.ScheduleID = RunPending, "", "", ""
	run.Output, run.FinishedAt, run.ContinuedAs, run.Unreached = Payload{}, time.Time{}, ID{}, nil
	run.UnreadSignals = 0
	run.Pausing, run.Paused, run.PausedAt = false, true, now
	run.Gated, run.AvailableAt, run.HeldAt = false, time.Time{}, now
	run.CancelRequestedAt, run.CancelReason, run.GraceUntil = time.Time{}, "", time.Time{}
	if !run.NamedDeadlineAt.After(now) {
		run.NamedDeadlineAt = time.Time{}
	}
	if !run.DeadlineAt.After(now) { // it was the earlier of two deadlines
		run.DeadlineAt = run.NamedDeadlineAt
	}
	return run
}
