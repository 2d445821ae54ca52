package server

import (
	"context"
	"math"
	"math/rand/v2"
	"time"

	"google.golang.org/protobuf/types/known/durationpb"
	"google.golang.org/protobuf/types/known/timestamppb"

	"github.com/kagzi/kagzi/engine"
	kagziv1 "github.com/kagzi/kagzi/proto/kagzi/v1"
)

// The operations of a worker, once: the unary calls and the session are two ways to them.

// leased is a request about a run that a worker holds.
type leased interface {
	GetNamespace() string
	GetRunId() string
	GetLeaseToken() string
}

// leaseOf reads the lease of a request.
func (s *Server) leaseOf(ctx context.Context, r leased) (engine.Lease, error) {
	namespace, id, err := runOf(r)
	if err != nil {
		return engine.Lease{}, err
	}
	if r.GetLeaseToken() == "" {
		if s.options.AllowUnleased {
			return s.store.CurrentLease(ctx, namespace, id)
		}
		return engine.Lease{}, engine.Invalid("lease_token", "must not be empty: each write carries the token that came with the task")
	}
	token, err := engine.ParseToken(r.GetLeaseToken())
	if err != nil {
		return engine.Lease{}, engine.Invalid("lease_token", "is not a token that a task carried")
	}
	return engine.Lease{Namespace: namespace, RunID: id, Token: token}, nil
}

// stepRefOf reads the one field that holds the id of an attempt or the name of a step.
func stepRefOf(s string) (engine.StepRef, error) {
	ref := engine.StepRef{Name: s}
	if id, err := engine.ParseID(s); err == nil {
		ref.ID = id
	}
	return ref, engine.CheckName("step_id", s)
}

func (s *Server) beginStep(ctx context.Context, r *kagziv1.BeginStepRequest) (*kagziv1.BeginStepResponse, error) {
	lease, err := s.leaseOf(ctx, r)
	if err != nil {
		return nil, err
	}
	p := engine.BeginStepParams{
		Lease: lease, Name: r.StepName, Kind: engine.StepFunction, Input: payloadOf(r.Input),
		RetryPolicy: retryPolicyOf(r.RetryPolicy), StartToClose: milliseconds(r.StartToCloseTimeoutMs), Now: s.now(),
	}
	switch r.Kind {
	case kagziv1.StepKind_STEP_KIND_UNSPECIFIED, kagziv1.StepKind_STEP_KIND_FUNCTION:
	case kagziv1.StepKind_STEP_KIND_SLEEP:
		p.Kind = engine.StepSleep
	default:
		return nil, engine.Invalid("kind", "must be FUNCTION or SLEEP, got %d", r.Kind)
	}
	if err := engine.CheckName("step_name", r.StepName); err != nil {
		return nil, err
	}
	if err := engine.CheckPayload("input", p.Input); err != nil {
		return nil, err
	}
	if err := engine.CheckRetryPolicy("retry_policy", p.RetryPolicy); err != nil {
		return nil, err
	}
	if r.StartToCloseTimeoutMs != 0 {
		if err := engine.CheckDelay("start_to_close_timeout_ms", p.StartToClose); err != nil {
			return nil, err
		}
	}
	if p.StartedAt, err = startedOf(r.StartedAt, p.Now); err != nil {
		return nil, err
	}
	p.ID = engine.NewID(p.Now)
	begun, err := s.store.BeginStep(ctx, p)
	if err != nil {
		return nil, err
	}
	response := &kagziv1.BeginStepResponse{
		StepId: begun.Step.ID.String(), ShouldExecute: begun.Execute, AttemptNumber: int32(begun.Step.Attempt),
	}
	if !begun.Execute {
		if begun.Step.Status == engine.StepCompleted {
			response.CachedOutput = stepTo("", &begun.Step).Output
		}
		response.Error = failureTo(begun.Step.Error)
	}
	return response, nil
}

// startedOf reads when a worker says that it began. Its clock is its own: what lies ahead of ours, or a day back, is taken as now.
func startedOf(t *timestamppb.Timestamp, now time.Time) (time.Time, error) {
	started, err := timeOf("started_at", t)
	if err != nil {
		return time.Time{}, err
	}
	if started.IsZero() || started.After(now) || now.Sub(started) > 24*time.Hour {
		return now, nil
	}
	return started, nil
}

func (s *Server) completeStep(ctx context.Context, r *kagziv1.CompleteStepRequest) (*kagziv1.CompleteStepResponse, error) {
	lease, err := s.leaseOf(ctx, r)
	if err != nil {
		return nil, err
	}
	p := engine.CompleteStepParams{Lease: lease, Output: payloadOf(r.Output), Now: s.now()}
	if p.Step, err = stepRefOf(r.StepId); err != nil {
		return nil, err
	}
	if err := engine.CheckPayload("output", p.Output); err != nil {
		return nil, err
	}
	if p.StartedAt, err = startedOf(r.StartedAt, p.Now); err != nil {
		return nil, err
	}
	p.ID = engine.NewID(p.Now)
	step, err := s.store.CompleteStep(ctx, p)
	if err != nil {
		return nil, err
	}
	s.counters.steps.Add(1)
	step.Output = engine.Payload{} // the worker has it
	return &kagziv1.CompleteStepResponse{Step: stepTo(lease.Namespace, &step)}, nil
}

func (s *Server) failStep(ctx context.Context, r *kagziv1.FailStepRequest) (*kagziv1.FailStepResponse, error) {
	lease, err := s.leaseOf(ctx, r)
	if err != nil {
		return nil, err
	}
	failure, err := failureOf(r.Error)
	if err != nil {
		return nil, err
	}
	p := engine.FailStepParams{
		Lease: lease, Failure: failure, RetryPolicy: retryPolicyOf(r.RetryPolicy), Hold: r.Hold,
		Now: s.now(), Roll: rand.Float64(),
	}
	if p.Step, err = stepRefOf(r.StepId); err != nil {
		return nil, err
	}
	if err := engine.CheckRetryPolicy("retry_policy", p.RetryPolicy); err != nil {
		return nil, err
	}
	if p.StartedAt, err = startedOf(r.StartedAt, p.Now); err != nil {
		return nil, err
	}
	p.ID = engine.NewID(p.Now)
	verdict, err := s.store.FailStep(ctx, p)
	if err != nil {
		return nil, err
	}
	if verdict.Retry {
		s.log.Info("step will be retried", "run", lease.RunID, "step", p.Step.String(), "at", verdict.RetryAt, "delay", verdict.RetryAt.Sub(p.Now))
	}
	return &kagziv1.FailStepResponse{ScheduledRetry: verdict.Retry, RetryAt: timeTo(verdict.RetryAt)}, nil
}

func (s *Server) sleep(ctx context.Context, r *kagziv1.SleepRequest) (*kagziv1.SleepResponse, error) {
	lease, err := s.leaseOf(ctx, r)
	if err != nil {
		return nil, err
	}
	p := engine.SleepParams{Lease: lease, Hold: r.Hold, Now: s.now()}
	if p.Step, err = stepRefOf(r.StepId); err != nil {
		return nil, err
	}
	if p.Until, err = timeOf("until", r.Until); err != nil {
		return nil, err
	}
	if p.Duration, err = durationOf("duration", r.Duration); err != nil {
		return nil, err
	}
	switch {
	case r.Until != nil && r.Duration != nil:
		return nil, engine.Invalid("until", "cannot be given together with duration")
	case r.Until != nil:
		if p.Until.Sub(p.Now) > engine.MaxDelay {
			return nil, engine.Invalid("until", "lies more than 10 years ahead")
		}
	default:
		if err := engine.CheckDelay("duration", p.Duration); err != nil {
			return nil, err
		}
	}
	p.ID = engine.NewID(p.Now)
	if err := s.store.Sleep(ctx, p); err != nil {
		return nil, err
	}
	return &kagziv1.SleepResponse{}, nil
}

func (s *Server) completeWorkflow(ctx context.Context, r *kagziv1.CompleteWorkflowRequest) (*kagziv1.CompleteWorkflowResponse, error) {
	lease, err := s.leaseOf(ctx, r)
	if err != nil {
		return nil, err
	}
	if r.ContinueAs != nil {
		return nil, engine.Invalid("continue_as", "is not supported by this server yet")
	}
	p := engine.CompleteRunParams{Lease: lease, Output: payloadOf(r.Output), Now: s.now()}
	if err := engine.CheckPayload("output", p.Output); err != nil {
		return nil, err
	}
	if err := s.store.CompleteRun(ctx, p); err != nil {
		return nil, err
	}
	s.counters.finished.Add(1)
	return &kagziv1.CompleteWorkflowResponse{Status: kagziv1.WorkflowStatus_WORKFLOW_STATUS_COMPLETED}, nil
}

func (s *Server) failWorkflow(ctx context.Context, r *kagziv1.FailWorkflowRequest) (*kagziv1.FailWorkflowResponse, error) {
	lease, err := s.leaseOf(ctx, r)
	if err != nil {
		return nil, err
	}
	failure, err := failureOf(r.Error)
	if err != nil {
		return nil, err
	}
	p := engine.FailRunParams{Lease: lease, Failure: failure, Now: s.now(), Roll: rand.Float64()}
	verdict, err := s.store.FailRun(ctx, p)
	if err != nil {
		return nil, err
	}
	if verdict.Retry {
		s.log.Info("run will be retried", "run", lease.RunID, "at", verdict.RetryAt, "delay", verdict.RetryAt.Sub(p.Now))
		return &kagziv1.FailWorkflowResponse{Status: kagziv1.WorkflowStatus_WORKFLOW_STATUS_PENDING, RetryAt: timeTo(verdict.RetryAt)}, nil
	}
	s.counters.finished.Add(1)
	return &kagziv1.FailWorkflowResponse{Status: kagziv1.WorkflowStatus_WORKFLOW_STATUS_FAILED}, nil
}

func (s *Server) releaseTask(ctx context.Context, r *kagziv1.ReleaseTaskRequest) (*kagziv1.ReleaseTaskResponse, error) {
	lease, err := s.leaseOf(ctx, r)
	if err != nil {
		return nil, err
	}
	if err := s.store.Release(ctx, engine.ReleaseParams{Lease: lease, Park: r.Park, Now: s.now()}); err != nil {
		return nil, err
	}
	return &kagziv1.ReleaseTaskResponse{}, nil
}

// nameWithin is how soon after its claim a run must be named in a heartbeat that names all.
func (s *Server) nameWithin() time.Duration { return min(10*time.Second, s.options.WorkerLease) }

func (s *Server) heartbeat(ctx context.Context, r *kagziv1.HeartbeatRequest) (*kagziv1.HeartbeatResponse, error) {
	if err := engine.CheckWorkerID("worker_id", r.WorkerId); err != nil {
		return nil, err
	}
	for _, n := range []struct {
		field string
		value int32
	}{{"active_count", r.ActiveCount}, {"completed_delta", r.CompletedDelta}, {"failed_delta", r.FailedDelta}} {
		if n.value < 0 {
			return nil, engine.Invalid(n.field, "must not be negative, got %d", n.value)
		}
	}
	p := engine.HeartbeatParams{
		WorkerID: r.WorkerId, Active: int(r.ActiveCount), Completed: int(r.CompletedDelta), Failed: int(r.FailedDelta),
		Whole: r.HeldIsWhole, NameWithin: s.nameWithin(), Now: s.now(),
	}
	var err error
	if p.Stats, err = statsOf(r.Stats); err != nil {
		return nil, err
	}
	if n := len(r.Held); n > engine.MaxConcurrent {
		return nil, engine.Invalid("held", "names %d runs, at most %d are allowed", n, engine.MaxConcurrent)
	}
	for _, l := range r.Held {
		id, err := idOf("held.run_id", l.RunId)
		if err != nil {
			return nil, err
		}
		token, err := engine.ParseToken(l.LeaseToken)
		if err != nil {
			return nil, engine.Invalid("held.lease_token", "is not a token that a task carried")
		}
		p.Held = append(p.Held, engine.Lease{RunID: id, Token: token})
	}
	beat, err := s.store.Heartbeat(ctx, p)
	if err != nil {
		return nil, err
	}
	response := &kagziv1.HeartbeatResponse{Accepted: true, ShouldDrain: beat.Status == engine.WorkerDraining}
	for _, l := range beat.Lost {
		response.Lost = append(response.Lost, &kagziv1.Lease{RunId: l.RunID.String(), LeaseToken: l.Token.Wire()})
	}
	return response, nil
}

// statsOf reads what a worker measured about itself; absent is nil.
func statsOf(t *kagziv1.WorkerStats) (*engine.WorkerStats, error) {
	if t == nil {
		return nil, nil
	}
	for _, n := range []struct {
		field string
		value float64
	}{
		{"cpu_percent", t.CpuPercent}, {"memory_bytes", float64(t.MemoryBytes)}, {"disk_available_bytes", float64(t.DiskAvailableBytes)},
		{"uptime_seconds", float64(t.UptimeSeconds)}, {"average_run_ms", t.AverageRunMs},
	} {
		if !(n.value >= 0 && n.value <= math.MaxFloat64) { // also refuses NaN and what is endless
			return nil, engine.Invalid("stats."+n.field, "must be a number that is not negative, got %v", n.value)
		}
	}
	return &engine.WorkerStats{
		CPUPercent: t.CpuPercent, MemoryBytes: t.MemoryBytes, DiskAvailableBytes: t.DiskAvailableBytes,
		UptimeSeconds: t.UptimeSeconds, AverageRunMS: t.AverageRunMs,
	}, nil
}

func (s *Server) deregister(ctx context.Context, r *kagziv1.DeregisterRequest) (*kagziv1.DeregisterResponse, error) {
	if err := engine.CheckWorkerID("worker_id", r.WorkerId); err != nil {
		return nil, err
	}
	if r.Drain {
		if err := s.store.DrainWorker(ctx, r.WorkerId, s.now()); err != nil {
			return nil, err
		}
		return &kagziv1.DeregisterResponse{Drained: true}, nil
	}
	_, err := s.store.OfflineWorker(ctx, engine.OfflineWorkerParams{WorkerID: r.WorkerId, Reason: engine.OfflineDeregistered, Now: s.now()})
	if err != nil {
		return nil, err
	}
	return &kagziv1.DeregisterResponse{}, nil
}

// waitOf reads how long a call may wait: absent is the most.
func waitOf(d *durationpb.Duration, most time.Duration) (time.Duration, error) {
	if d == nil {
		return most, nil
	}
	wait, err := durationOf("wait", d)
	if err != nil {
		return 0, err
	}
	if wait < 0 || wait > engine.MaxPollWait {
		return 0, engine.Invalid("wait", "must be between 0 and %s, got %s", engine.MaxPollWait, wait)
	}
	return wait, nil
}
