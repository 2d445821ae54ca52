package engine

import (
	"cmp"
	"maps"
	"time"
)

// Continuation is the run that run continues as. next is what its code asked for: the input, and whatever it names of its
// own; the rest is run's, its external id and its parent included. A limit on the whole run counts anew, and a deadline that run's starter
// has named holds for every run that it continues as.
func Continuation(run *Run, next StartRun, now time.Time) StartRun {
	s := successor(run, next.ID, now)
	s.Input, s.Bytes = next.Input, int64(next.Input.Size())
	s.ExternalID = cmp.Or(next.ExternalID, run.ExternalID)
	s.Queue, s.Type, s.Version = cmp.Or(next.Queue, run.Queue), cmp.Or(next.Type, run.Type), cmp.Or(next.Version, run.Version)
	s.Priority = cmp.Or(next.Priority, run.Priority)
	if next.RetryPolicy != nil {
		s.RetryPolicy = next.RetryPolicy
	}
	if next.AvailableAt.After(next.CreatedAt) && next.AvailableAt.After(now) { // it was asked for, and is not just when next was read
		s.AvailableAt = next.AvailableAt
	}
	if next.Timeouts != (Timeouts{}) {
		s.Timeouts = next.Timeouts
	}
	if s.DeadlineAt = next.DeadlineAt; s.DeadlineAt.IsZero() {
		s.DeadlineAt = namedDeadline(run)
	}
	s.SettleDeadline()
	if next.OnFailureWorkflow != "" {
		s.OnFailureWorkflow, s.OnFailureQueue = next.OnFailureWorkflow, next.OnFailureQueue
	}
	if len(next.Tags) > 0 {
		s.Tags = next.Tags
	}
	if len(next.Requirements) > 0 {
		s.Requirements = next.Requirements
	}
	if next.ConcurrencyKey != "" {
		s.ConcurrencyKey, s.ConcurrencyLimit = next.ConcurrencyKey, next.ConcurrencyLimit
	}
	s.ContinuedFrom = run.ID
	s.ParentRunID, s.ParentStepID, s.ParentClose = run.ParentRunID, run.ParentStepID, run.ParentClose
	s.Origin, s.ScheduleID, s.ScheduledAt, s.FailedRunID = run.Origin, run.ScheduleID, run.ScheduledAt, run.FailedRunID
	return s
}

// RetryOf is the run that a person has run tried again as. A deadline that has passed is left behind; a limit on the whole run
// counts anew. It is nobody's child: what waited for the first run has its answer.
func RetryOf(run *Run, p *RetryRunParams) StartRun {
	s := successor(run, p.ID, p.Now)
	s.Input, s.RequestID = run.Input, p.RequestID
	if p.Input != nil {
		s.Input = *p.Input
	}
	s.Bytes = int64(s.Input.Size())
	s.RetriedFrom, s.FailedRunID = run.ID, run.FailedRunID // a handler stays one: its input is an event, and it has no handlers
	if s.DeadlineAt = namedDeadline(run); !s.DeadlineAt.After(p.Now) {
		s.DeadlineAt = time.Time{}
	}
	s.SettleDeadline()
	return s
}

// namedDeadline is the moment by which run's starter wanted it to have ended. Of a run that a version made which kept no NamedDeadlineAt, a
// deadline that can be no more than its limit, which counts from its creation or from later, is taken for that.
func namedDeadline(run *Run) time.Time {
	limit := run.Timeouts.Execution
	if !run.NamedDeadlineAt.IsZero() || limit > 0 && !run.DeadlineAt.Before(run.CreatedAt.Add(limit)) {
		return run.NamedDeadlineAt
	}
	return run.DeadlineAt
}

// SettleDeadline puts a limit on the whole run, which counts from AvailableAt, beside the deadline that was named, if any: the earlier of the
// two becomes DeadlineAt.
func (s *StartRun) SettleDeadline() {
	limit := s.Timeouts.Execution
	if limit <= 0 {
		return
	}
	s.NamedDeadlineAt = s.DeadlineAt
	if end := s.AvailableAt.Add(limit); s.DeadlineAt.IsZero() || end.Before(s.DeadlineAt) {
		s.DeadlineAt = end
	}
}

// successor is a new run with all that a starter chose for run but its deadline.
func successor(run *Run, id ID, now time.Time) StartRun {
	return StartRun{Run: Run{
		ID: id, Namespace: run.Namespace, ExternalID: run.ExternalID, Queue: run.Queue, Type: run.Type, Version: run.Version,
		Status: RunPending, Priority: run.Priority, Attempts: 1, CreatedAt: now, AvailableAt: now,
		RetryPolicy: run.RetryPolicy, Timeouts: run.Timeouts, Tags: maps.Clone(run.Tags), Requirements: maps.Clone(run.Requirements),
		OnFailureWorkflow: run.OnFailureWorkflow, OnFailureQueue: run.OnFailureQueue,
		ConcurrencyKey: run.ConcurrencyKey, ConcurrencyLimit: run.ConcurrencyLimit, Traceparent: run.Traceparent,
	}}
}
