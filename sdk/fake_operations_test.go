package kagzi

import (
	"cmp"
	"fmt"
	"slices"
	"time"

	kagziv1 "github.com/kagzi/kagzi/proto/kagzi/v1"
	"google.golang.org/protobuf/types/known/durationpb"
	"google.golang.org/protobuf/types/known/timestamppb"
)

func (f *fake) lookup(runID, token string) (*fakeRun, *kagziv1.SessionResponse) {
	r := f.runs[runID]
	if r == nil || r.token != token || token == "" {
		f.log = append(f.log, "stale write for "+runID)
		return nil, &kagziv1.SessionResponse{Event: &kagziv1.SessionResponse_Error{Error: &kagziv1.ErrorDetail{
			Code: kagziv1.ErrorCode_ERROR_CODE_LEASE_LOST, Message: "the lease is another's"}}}
	}
	return r, nil
}

func (f *fake) step(r *fakeRun, name string, kind kagziv1.StepKind) *kagziv1.Step {
	for _, st := range r.steps {
		if st.Name == name {
			return st
		}
	}
	st := &kagziv1.Step{RunId: r.RunId, Name: name, StepId: name, Kind: kind, Sequence: int64(len(r.steps) + 1),
		IsLatest: true}
	r.steps = append(r.steps, st)
	return st
}

// attempt starts the next attempt of a step, unless one is running.
func attempt(st *kagziv1.Step) {
	if st.Status != kagziv1.StepStatus_STEP_STATUS_RUNNING {
		st.AttemptNumber++
		st.Status = kagziv1.StepStatus_STEP_STATUS_RUNNING
	}
}

func (f *fake) apply(s *fakeSession, req *kagziv1.SessionRequest) *kagziv1.SessionResponse {
	resp := &kagziv1.SessionResponse{}
	switch op := req.Operation.(type) {
	case *kagziv1.SessionRequest_Credit:
		s.credit += int(op.Credit.GetTasks())
		resp.Event = &kagziv1.SessionResponse_Ack{Ack: &kagziv1.Ack{}}
	case *kagziv1.SessionRequest_SetNote:
		if r, lost := f.lookup(op.SetNote.GetRunId(), op.SetNote.GetLeaseToken()); lost == nil {
			r.Note = op.SetNote.GetNote()
			f.log = append(f.log, "note "+r.Note)
		}
		resp.Event = &kagziv1.SessionResponse_Ack{Ack: &kagziv1.Ack{}}
	case *kagziv1.SessionRequest_Goodbye:
		f.log = append(f.log, fmt.Sprintf("goodbye drain=%v", op.Goodbye.GetDrain()))
		s.credit, s.drained = 0, true
		resp.Event = &kagziv1.SessionResponse_Goodbye{Goodbye: &kagziv1.DeregisterResponse{}}
	case *kagziv1.SessionRequest_Heartbeat:
		if f.stalled {
			return nil
		}
		f.blocked = op.Heartbeat.GetBlocked()
		f.log = append(f.log, fmt.Sprintf("heartbeat held=%d of=%d", len(op.Heartbeat.GetHeld()),
			op.Heartbeat.GetTasksReceived()))
		h := &kagziv1.HeartbeatResponse{Accepted: true}
		for _, l := range op.Heartbeat.GetHeld() {
			if r := f.runs[l.GetRunId()]; r == nil {
				h.Lost = append(h.Lost, l)
			} else if r.token != l.GetLeaseToken() {
				h.Lost = append(h.Lost, &kagziv1.Lease{
					RunId: l.GetRunId(), LeaseToken: l.GetLeaseToken(), RunStatus: r.Status})
			} else if r.cancelAsk {
				h.Cancelling = append(h.Cancelling, r.cancelTask())
			}
		}
		resp.Event = &kagziv1.SessionResponse_Heartbeat{Heartbeat: h}
	default:
		return f.applyRun(req)
	}
	return resp
}

func (f *fake) applyRun(req *kagziv1.SessionRequest) *kagziv1.SessionResponse {
	resp := &kagziv1.SessionResponse{}
	switch op := req.Operation.(type) {
	case *kagziv1.SessionRequest_BeginStep:
		r, lost := f.lookup(op.BeginStep.GetRunId(), op.BeginStep.GetLeaseToken())
		if lost != nil {
			return lost
		}
		st := f.step(r, op.BeginStep.GetStepName(), op.BeginStep.GetKind())
		attempt(st)
		f.log = append(f.log, "begin "+st.Name)
		resp.Event = &kagziv1.SessionResponse_BegunStep{
			BegunStep: &kagziv1.BeginStepResponse{
				StepId: st.Name, ShouldExecute: true, AttemptNumber: st.AttemptNumber}}
	case *kagziv1.SessionRequest_CompleteStep:
		r, lost := f.lookup(op.CompleteStep.GetRunId(), op.CompleteStep.GetLeaseToken())
		if lost != nil {
			return lost
		}
		st := f.step(r, op.CompleteStep.GetStepName(), kagziv1.StepKind_STEP_KIND_FUNCTION)
		if st.Status != kagziv1.StepStatus_STEP_STATUS_COMPLETED {
			attempt(st)
			st.Status, st.Output = kagziv1.StepStatus_STEP_STATUS_COMPLETED, op.CompleteStep.GetOutput()
			f.log = append(f.log, "complete "+st.Name)
			f.settle(r, st)
		}
		resp.Event = &kagziv1.SessionResponse_CompletedStep{CompletedStep: &kagziv1.CompleteStepResponse{}}
	case *kagziv1.SessionRequest_FailStep:
		r, lost := f.lookup(op.FailStep.GetRunId(), op.FailStep.GetLeaseToken())
		if lost != nil {
			return lost
		}
		st := f.step(r, op.FailStep.GetStepName(), kagziv1.StepKind_STEP_KIND_FUNCTION)
		if st.Status == kagziv1.StepStatus_STEP_STATUS_PENDING && st.RetryAt.AsTime().After(f.now()) {
			resp.Event = &kagziv1.SessionResponse_Error{
				Error: &kagziv1.ErrorDetail{Code: kagziv1.ErrorCode_ERROR_CODE_CONFLICT, Message: "not due"}}
			return resp
		}
		resp.Event = &kagziv1.SessionResponse_FailedStep{FailedStep: f.failStep(r, op.FailStep)}
	case *kagziv1.SessionRequest_Sleep:
		r, lost := f.lookup(op.Sleep.GetRunId(), op.Sleep.GetLeaseToken())
		if lost != nil {
			return lost
		}
		st := f.step(r, op.Sleep.GetStepName(), kagziv1.StepKind_STEP_KIND_SLEEP)
		answer := &kagziv1.SleepResponse{}
		resp.Event = &kagziv1.SessionResponse_Sleeping{Sleeping: answer}
		if op.Sleep.GetOver() {
			f.log = append(f.log, "over "+st.Name)
			st.Status = kagziv1.StepStatus_STEP_STATUS_COMPLETED
			f.settle(r, st)
			answer.Settled = st.Settled
			return resp
		}
		attempt(st)
		due := f.now().Add(op.Sleep.GetDuration().AsDuration())
		if op.Sleep.GetUntil() != nil {
			due = op.Sleep.GetUntil().AsTime()
		}
		st.WakeUpAt = timestamppb.New(due)
		f.log = append(f.log, fmt.Sprintf("sleep %s hold=%v", st.Name, op.Sleep.GetHold()))
		if !due.After(f.now()) && !f.keepsNoOrder {
			st.Status = kagziv1.StepStatus_STEP_STATUS_COMPLETED
			f.settle(r, st)
			answer.Settled = st.Settled
			return resp
		}
		f.parkUnless(op.Sleep.GetHold(), r)
	case *kagziv1.SessionRequest_CompleteWorkflow:
		r, lost := f.lookup(op.CompleteWorkflow.GetRunId(), op.CompleteWorkflow.GetLeaseToken())
		if lost != nil {
			return lost
		}
		f.log = append(f.log, "end "+r.RunId)
		r.Output, f.unreached = op.CompleteWorkflow.GetOutput(), op.CompleteWorkflow.GetUnreached()
		f.unreceived = op.CompleteWorkflow.GetUnreceived()
		f.complete(r, op.CompleteWorkflow.GetContinueAs())
		resp.Event = &kagziv1.SessionResponse_CompletedWorkflow{CompletedWorkflow: &kagziv1.CompleteWorkflowResponse{
			Status: cmp.Or(f.verdicts[r.RunId], r.Status), ContinuedAsRunId: r.GetContinuedAsRunId()}}
	case *kagziv1.SessionRequest_FailWorkflow:
		r, lost := f.lookup(op.FailWorkflow.GetRunId(), op.FailWorkflow.GetLeaseToken())
		if lost != nil {
			return lost
		}
		f.log = append(f.log, "fail "+r.RunId)
		f.end(r, kagziv1.WorkflowStatus_WORKFLOW_STATUS_FAILED, op.FailWorkflow.GetError())
		resp.Event = &kagziv1.SessionResponse_FailedWorkflow{
			FailedWorkflow: &kagziv1.FailWorkflowResponse{Status: cmp.Or(f.verdicts[r.RunId], r.Status)}}
	case *kagziv1.SessionRequest_ReleaseTask:
		r, lost := f.lookup(op.ReleaseTask.GetRunId(), op.ReleaseTask.GetLeaseToken())
		if lost != nil {
			return lost
		}
		if d := op.ReleaseTask.GetDivergence(); d != nil {
			f.reports = append(f.reports, d)
			f.log = append(f.log, "diverged "+r.RunId)
			f.release(r, false)
			r.available = f.now().Add(time.Hour) // paused
			resp.Event = &kagziv1.SessionResponse_ReleasedTask{ReleasedTask: &kagziv1.ReleaseTaskResponse{}}
			return resp
		}
		f.log = append(f.log, fmt.Sprintf("release park=%v", op.ReleaseTask.GetPark()))
		f.release(r, op.ReleaseTask.GetPark())
		resp.Event = &kagziv1.SessionResponse_ReleasedTask{ReleasedTask: &kagziv1.ReleaseTaskResponse{}}
	default:
		return f.applyWait(req)
	}
	return resp
}

// interrupt marks running steps as interrupted.
func (f *fake) interrupt(r *fakeRun) {
	for _, st := range r.steps {
		if st.Status == kagziv1.StepStatus_STEP_STATUS_RUNNING && st.Kind == kagziv1.StepKind_STEP_KIND_FUNCTION {
			st.Status, st.Error = kagziv1.StepStatus_STEP_STATUS_FAILED,
				&kagziv1.ErrorDetail{Code: kagziv1.ErrorCode_ERROR_CODE_CRASHED}
		}
	}
}

func (f *fake) failStep(r *fakeRun, req *kagziv1.FailStepRequest) *kagziv1.FailStepResponse {
	st := f.step(r, req.GetStepName(), kagziv1.StepKind_STEP_KIND_FUNCTION)
	attempt(st)
	st.Error = req.GetError()
	most, delay := int32(3), time.Second
	if p := req.GetRetryPolicy(); p != nil {
		if p.MaximumAttempts != 0 {
			most = p.MaximumAttempts
		}
		if p.InitialIntervalMs != 0 {
			delay = time.Duration(p.InitialIntervalMs) * time.Millisecond
		}
	}
	delay <<= min(st.AttemptNumber-1, 20)
	if ms := req.GetError().GetRetryAfterMs(); ms > 0 {
		delay = time.Duration(ms) * time.Millisecond
	}
	f.log = append(f.log, fmt.Sprintf("failed %s hold=%v", st.Name, req.GetHold()))
	named := slices.Contains(req.GetRetryPolicy().GetNonRetryableErrors(), req.GetError().GetType()) &&
		req.GetError().GetType() != ""
	if req.GetError().GetNonRetryable() || named || most > 0 && st.AttemptNumber >= most {
		st.Status = kagziv1.StepStatus_STEP_STATUS_FAILED
		f.settle(r, st)
		return &kagziv1.FailStepResponse{Settled: st.Settled}
	}
	due := f.now().Add(delay)
	st.Status, st.RetryAt = kagziv1.StepStatus_STEP_STATUS_PENDING, timestamppb.New(due)
	f.parkUnless(req.GetHold(), r)
	return &kagziv1.FailStepResponse{ScheduledRetry: true, RetryAt: st.RetryAt, RetryIn: durationpb.New(delay)}
}
