package kagzi

import (
	"cmp"
	"slices"
	"time"

	kagziv1 "github.com/kagzi/kagzi/proto/kagzi/v1"
	"github.com/kagzi/kagzi/sdk/internal/convert"
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/types/known/timestamppb"
)

// runRecord is a run and the latest attempt of each of its steps, in the order in which they began.
type runRecord struct {
	run   *kagziv1.Workflow
	steps []*kagziv1.Step
}

// newRecord picks the latest attempt of each step.
func newRecord(run *kagziv1.Workflow, attempts []*kagziv1.Step) *runRecord {
	latest := make(map[string]*kagziv1.Step, len(attempts))
	for _, s := range attempts {
		if old := latest[s.GetName()]; old == nil || newer(s, old) {
			latest[s.GetName()] = s
		}
	}
	r := &runRecord{run: run, steps: make([]*kagziv1.Step, 0, len(latest))}
	for _, s := range latest {
		r.steps = append(r.steps, stillOpen(s))
	}
	slices.SortFunc(r.steps, func(a, b *kagziv1.Step) int {
		return cmp.Or(cmp.Compare(a.GetSequence(), b.GetSequence()), cmp.Compare(a.GetName(), b.GetName()))
	})
	return r
}

// kindRunEnded is the error type of a step that was running when its run ended.
const kindRunEnded = "run_ended"

// stillOpen returns a step as the code knows it. A step that the end of the run interrupted,
// running or waiting for a retry, has no result yet for the code.
func stillOpen(s *kagziv1.Step) *kagziv1.Step {
	d := s.GetError()
	ran := d.GetCode() == kagziv1.ErrorCode_ERROR_CODE_CANCELLED && d.GetType() == kindRunEnded
	if s.GetStatus() != kagziv1.StepStatus_STEP_STATUS_FAILED || !ran && (!s.GetIsLatest() || s.GetRetryAt() == nil) {
		return s
	}
	s = proto.CloneOf(s)
	s.Status, s.Error, s.FinishedAt = kagziv1.StepStatus_STEP_STATUS_RUNNING, nil, nil
	return s
}

func newer(a, b *kagziv1.Step) bool {
	if a.GetIsLatest() != b.GetIsLatest() {
		return a.GetIsLatest()
	}
	return a.GetAttemptNumber() > b.GetAttemptNumber()
}

// task returns the task that a worker would get for the run.
func (r *runRecord) task() *kagziv1.Task {
	w := r.run
	return &kagziv1.Task{
		Namespace: w.GetNamespace(), RunId: w.GetRunId(), WorkflowType: w.GetWorkflowType(),
		TaskQueue: w.GetTaskQueue(),
		Version:   w.GetVersion(), Input: w.GetInput(), Attempt: w.GetAttempts(), DeadlineAt: w.DeadlineAt,
		RetryPolicy: w.GetRetryPolicy(), Timeouts: w.GetTimeouts(), History: r.steps, ExternalId: w.GetExternalId(),
		ParentRunId: w.ParentRunId, ScheduleId: w.ScheduleId, Tags: w.GetTags(), ScheduledAt: w.ScheduledAt,
		CancelRequested: w.CancelRequestedAt != nil, CancelGraceUntil: w.CancelGraceUntil, FailedRunId: w.FailedRunId,
		OwedFrom: w.GetOwedFrom(),
	}
}

// latest returns the latest time in the record, by the server's clock; zero if there is none.
func (r *runRecord) latest() time.Time {
	var latest time.Time
	for _, s := range r.steps {
		for _, t := range []*timestamppb.Timestamp{s.GetCreatedAt(), s.GetStartedAt(), s.GetFinishedAt()} {
			if at := convert.When(t); at.After(latest) {
				latest = at
			}
		}
	}
	return latest
}

// ordered reports whether the record is of a server that keeps the order of results.
func (r *runRecord) ordered() bool {
	return r.run.GetOwedFrom() > 0 || slices.ContainsFunc(r.steps, func(s *kagziv1.Step) bool {
		return s.GetSettled() != 0
	})
}

// patched reports whether the run may hold step results that its code need not reach again: it was
// retried as a whole, or a person overrode a result.
func (r *runRecord) patched() bool {
	return r.run.RetriedFromRunId != nil || r.mayHaveFailed() ||
		slices.ContainsFunc(r.steps, func(s *kagziv1.Step) bool { return s.GetOverriddenBy() != "" })
}

// stale reports whether the code need not reach a step, because only an earlier attempt of the run
// may have done so. Open steps remain open in a run that was retried in place or has an overridden
// result; a retry as a new run keeps results only.
func (r *runRecord) stale(s *kagziv1.Step) bool {
	switch {
	case !r.patched():
		return false
	case hasResult(s), r.triedAgain():
		return true
	}
	return slices.ContainsFunc(r.steps, func(set *kagziv1.Step) bool {
		return set.GetOverriddenBy() != "" && !convert.When(s.GetCreatedAt()).After(convert.When(set.GetCreatedAt()))
	})
}

// triedAgain reports whether the run's code failed before: an open run then has an error.
func (r *runRecord) triedAgain() bool {
	if statusOf(r.run).Ended() {
		return r.mayHaveFailed()
	}
	return r.run.GetError() != nil
}

// mayHaveFailed reports whether the run's code failed and was retried. Older servers do not tell that
// from retries of steps.
func (r *runRecord) mayHaveFailed() bool {
	return r.run.GetAttempts() > 1 && (r.run.StepRetries != nil || r.run.GetRetryPolicy() != nil)
}

// codeFailed reports whether the run's code made it FAILED, rather than the server or the SDK.
func (r *runRecord) codeFailed() bool {
	e := r.run.GetError()
	if r.run.GetStatus() != kagziv1.WorkflowStatus_WORKFLOW_STATUS_FAILED ||
		e.GetCode() != kagziv1.ErrorCode_ERROR_CODE_UNSPECIFIED {
		return false
	}
	return e.GetType() != "refused" && e.GetType() != kindNondeterministic
}

// redacted reports whether payloads were removed from the record.
func (r *runRecord) redacted() bool {
	return isRedacted(r.run.GetInput()) || isRedacted(r.run.GetOutput()) ||
		slices.ContainsFunc(r.steps, func(s *kagziv1.Step) bool { return isRedacted(s.GetOutput()) })
}

func isRedacted(p *kagziv1.Payload) bool {
	_, ok := p.GetMetadata()["kagzi-redacted-sha256"]
	return ok
}

// same reports whether two reads of a run show the same state.
func (r *runRecord) same(o *runRecord) bool {
	return r.run.GetStatus() == o.run.GetStatus() && slices.EqualFunc(r.steps, o.steps, func(a, b *kagziv1.Step) bool {
		return a.GetName() == b.GetName() && a.GetStatus() == b.GetStatus() &&
			a.GetAttemptNumber() == b.GetAttemptNumber()
	})
}
