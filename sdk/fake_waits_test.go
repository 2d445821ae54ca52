package kagzi

import (
	"cmp"
	"fmt"
	"slices"
	"time"

	kagziv1 "github.com/kagzi/kagzi/proto/kagzi/v1"
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/types/known/timestamppb"
)

func open(st *kagziv1.Step) bool {
	return st.Status == kagziv1.StepStatus_STEP_STATUS_RUNNING || st.Status == kagziv1.StepStatus_STEP_STATUS_PENDING
}

// settle gives a result its place in the order.
func (f *fake) settle(r *fakeRun, st *kagziv1.Step) {
	if !f.keepsNoOrder && st.Settled == 0 {
		r.settled++
		st.Settled = r.settled
	}
}

// settleAll settles what has happened while nobody held the run.
func (f *fake) settleAll(r *fakeRun) {
	for _, s := range slices.Clone(r.signals) { // in order of arrival
		for _, st := range r.steps {
			if r.awaited[st.Name] > 0 && open(st) && st.SignalName == s.Name && f.consume(r, st) {
				f.settle(r, st)
				break
			}
		}
	}
	f.lapse(r)
	for _, st := range r.steps {
		if !open(st) && st.Status != kagziv1.StepStatus_STEP_STATUS_UNSPECIFIED &&
			st.GetError().GetCode() != kagziv1.ErrorCode_ERROR_CODE_CRASHED {
			f.settle(r, st)
		}
	}
}

// lapse completes the sleeps and waits that are due.
func (f *fake) lapse(r *fakeRun) {
	for _, st := range r.steps {
		if st.Status != kagziv1.StepStatus_STEP_STATUS_RUNNING || st.WakeUpAt == nil ||
			st.WakeUpAt.AsTime().After(f.now()) {
			continue
		}
		st.Status, st.SignalTimedOut = kagziv1.StepStatus_STEP_STATUS_COMPLETED,
			st.Kind == kagziv1.StepKind_STEP_KIND_SIGNAL
	}
}

func (f *fake) release(r *fakeRun, park bool) {
	if park {
		f.park(r)
	} else {
		r.base = ""
		r.token, r.Status, r.available = "", kagziv1.WorkflowStatus_WORKFLOW_STATUS_PENDING, f.now()
		f.hold(r)
	}
	f.interrupt(r)
}

func (f *fake) parkUnless(hold bool, r *fakeRun) {
	if !hold {
		f.park(r)
	}
}

// hold keeps a run that was just freed from workers, if it is to be paused.
func (f *fake) hold(r *fakeRun) {
	if r.Pausing {
		r.Pausing, r.Paused, r.available = false, true, time.Time{}
	}
}

// askPause asks the worker of a run to pause it, or takes that back.
func (f *fake) askPause(runID string, pausing bool) {
	f.mu.Lock()
	defer f.mu.Unlock()
	r := f.runs[runID]
	r.Pausing = pausing
	r.session.send(&kagziv1.SessionResponse{Event: &kagziv1.SessionResponse_PauseTask{PauseTask: &kagziv1.PauseTask{
		RunId: r.RunId, LeaseToken: r.token, TakenBack: !pausing}}})
}

// resume makes a paused run due.
func (f *fake) resume(runID string) {
	f.mu.Lock()
	defer f.mu.Unlock()
	r := f.runs[runID]
	r.Paused, r.available = false, f.now()
	f.pump()
}

// park frees a run until its earliest timer, or until what it waits for has happened.
func (f *fake) park(r *fakeRun) {
	defer func() {
		f.hold(r)
		if f.parked != nil {
			f.parked(r)
		}
	}()
	r.base, r.baseSettled = r.token, r.settled
	r.token, r.Status, r.available = "", kagziv1.WorkflowStatus_WORKFLOW_STATUS_SLEEPING, time.Time{}
	if r.untold { // its code waits without knowing of the cancellation
		r.Status, r.available = kagziv1.WorkflowStatus_WORKFLOW_STATUS_PENDING, f.now()
		return
	}
	waits := false
	for _, st := range r.steps {
		var at *timestamppb.Timestamp
		switch {
		case st.Status == kagziv1.StepStatus_STEP_STATUS_PENDING:
			at = st.RetryAt
		case st.Status == kagziv1.StepStatus_STEP_STATUS_RUNNING &&
			(st.Kind == kagziv1.StepKind_STEP_KIND_SLEEP || r.awaited[st.Name] > 0):
			at = st.WakeUpAt
		default:
			continue
		}
		waits = true
		if at != nil && (r.available.IsZero() || at.AsTime().Before(r.available)) {
			r.available = at.AsTime()
		}
	}
	if !waits || r.satisfied() {
		r.available = f.now()
	}
}

// satisfied reports whether an awaited step, or all of a group, has ended.
func (r *fakeRun) satisfied() bool {
	openGroups := map[int]bool{}
	for _, st := range r.steps {
		if n := r.awaited[st.Name]; n > 1 && open(st) {
			openGroups[n] = true
		}
	}
	return slices.ContainsFunc(r.steps, func(st *kagziv1.Step) bool {
		n := r.awaited[st.Name]
		came := slices.ContainsFunc(r.signals, func(s *kagziv1.Signal) bool {
			return st.Kind == kagziv1.StepKind_STEP_KIND_SIGNAL && s.Name == st.SignalName
		})
		return n > 0 && (!open(st) && !openGroups[n] || came && open(st))
	})
}

// wake makes a parked run due if what it waits for has happened.
func (f *fake) wake(r *fakeRun) {
	if r.Status == kagziv1.WorkflowStatus_WORKFLOW_STATUS_SLEEPING && r.satisfied() {
		r.available = f.now()
	}
}

// consume completes a wait with the oldest signal of its name, if there is one.
func (f *fake) consume(r *fakeRun, st *kagziv1.Step) bool {
	i := slices.IndexFunc(r.signals, func(s *kagziv1.Signal) bool { return s.Name == st.SignalName })
	if i < 0 {
		return false
	}
	st.Status, st.Output = kagziv1.StepStatus_STEP_STATUS_COMPLETED, r.signals[i].Payload
	r.signals = slices.Delete(r.signals, i, i+1)
	return true
}

func (r *fakeRun) cancelTask() *kagziv1.CancelTask {
	return &kagziv1.CancelTask{RunId: r.RunId, LeaseToken: r.token, Reason: r.reason, GraceUntil: r.CancelGraceUntil}
}

// askCancel starts a graceful cancellation.
func (f *fake) askCancel(runID string, grace time.Duration) {
	f.mu.Lock()
	defer f.mu.Unlock()
	r := f.runs[runID]
	r.cancelAsk, r.CancelGraceUntil = true, timestamppb.New(f.now().Add(grace))
	time.AfterFunc(grace, func() {
		f.mu.Lock()
		defer f.mu.Unlock()
		if !ended(r) {
			f.log = append(f.log, "grace over")
			f.cancel(r, r.reason)
			f.pump()
		}
	})
	if r.token != "" {
		r.untold = true
		r.session.send(&kagziv1.SessionResponse{Event: &kagziv1.SessionResponse_CancelTask{CancelTask: r.cancelTask()}})
		return
	}
	r.available = f.now()
	f.pump()
}

// cancel ends a run as CANCELLED and tells its worker why the lease is lost.
func (f *fake) cancel(r *fakeRun, d *kagziv1.ErrorDetail) {
	token := r.token
	f.end(r, kagziv1.WorkflowStatus_WORKFLOW_STATUS_CANCELLED, d)
	if token != "" {
		r.session.send(&kagziv1.SessionResponse{
			Event: &kagziv1.SessionResponse_CancelTask{CancelTask: &kagziv1.CancelTask{
				RunId: r.RunId, LeaseToken: token, Reason: &kagziv1.ErrorDetail{
					Code:     kagziv1.ErrorCode_ERROR_CODE_LEASE_LOST,
					Metadata: map[string]string{"status": string(StatusCancelled)}}}}})
	}
}

func ended(r *fakeRun) bool {
	return r.Status != kagziv1.WorkflowStatus_WORKFLOW_STATUS_PENDING &&
		r.Status != kagziv1.WorkflowStatus_WORKFLOW_STATUS_RUNNING &&
		r.Status != kagziv1.WorkflowStatus_WORKFLOW_STATUS_SLEEPING
}

// complete ends a run as COMPLETED, or CANCELLED if requested, and starts its continuation.
func (f *fake) complete(r *fakeRun, next *kagziv1.StartWorkflowRequest) {
	if next == nil || r.cancelAsk {
		f.end(r, kagziv1.WorkflowStatus_WORKFLOW_STATUS_COMPLETED, nil)
		return
	}
	n := f.add(fmt.Sprintf("run-%d", len(f.order)+1), next)
	n.ExternalId, n.parent, n.parentStep, n.closing, n.ContinuedFromRunId = r.ExternalId, r.parent, r.parentStep,
		r.closing, &r.RunId
	r.ContinuedAsRunId, r.parent = &n.RunId, nil
	f.end(r, kagziv1.WorkflowStatus_WORKFLOW_STATUS_COMPLETED, nil)
}

// add creates a run.
func (f *fake) add(id string, req *kagziv1.StartWorkflowRequest) *fakeRun {
	r := &fakeRun{awaited: map[string]int{}, available: f.now()}
	r.RunId, r.WorkflowType, r.Namespace, r.TaskQueue = id, req.GetWorkflowType(), "default",
		cmp.Or(req.GetTaskQueue(), "default")
	r.Input, r.ExternalId, r.Tags = req.GetInput(), req.GetExternalId(), req.GetTags()
	r.Status, r.Attempts = kagziv1.WorkflowStatus_WORKFLOW_STATUS_PENDING, 1
	r.ParentRunId, r.ParentStepId = named(req.GetParentRunId()), named(req.GetParentStepId())
	if req.GetStartAt() != nil {
		r.available = req.GetStartAt().AsTime()
	}
	f.runs[id] = r
	f.order = append(f.order, r)
	return r
}

// end ends a run and wakes or starts what depends on it.
func (f *fake) end(r *fakeRun, status kagziv1.WorkflowStatus, d *kagziv1.ErrorDetail) {
	if r.cancelAsk {
		status, d = kagziv1.WorkflowStatus_WORKFLOW_STATUS_CANCELLED, r.reason
	}
	r.Status, r.Error, r.token = status, d, ""
	f.tellParent(r)
	for _, c := range f.order {
		if c.parent != r || ended(c) || r.ContinuedAsRunId != nil {
			continue
		}
		switch c.closing {
		case kagziv1.ParentClosePolicy_PARENT_CLOSE_POLICY_CANCEL:
			f.cancel(c, &kagziv1.ErrorDetail{Code: kagziv1.ErrorCode_ERROR_CODE_CANCELLED, Message: "the parent ended"})
		case kagziv1.ParentClosePolicy_PARENT_CLOSE_POLICY_TERMINATE:
			f.end(c, kagziv1.WorkflowStatus_WORKFLOW_STATUS_TERMINATED, nil)
		}
	}
}

// tellParent completes the parent's step that started a child.
func (f *fake) tellParent(r *fakeRun) {
	if r.parent == nil {
		return
	}
	st := f.step(r.parent, r.parentStep, kagziv1.StepKind_STEP_KIND_CHILD_WORKFLOW)
	st.Status, st.Output = kagziv1.StepStatus_STEP_STATUS_COMPLETED, r.Output
	if r.RunId != st.GetChildRunId() && r.Output != nil {
		st.Output = proto.CloneOf(r.Output)
		st.Output.Metadata[metaChildRunID] = r.RunId
	}
	if r.Status != kagziv1.WorkflowStatus_WORKFLOW_STATUS_COMPLETED {
		e := proto.Clone(cmp.Or(r.Error, &kagziv1.ErrorDetail{})).(*kagziv1.ErrorDetail)
		e.Metadata = map[string]string{"child_run_id": r.RunId, "child_status": r.Status.String()[len(statusPrefix):]}
		e.NonRetryable = true
		st.Status, st.Output, st.Error = kagziv1.StepStatus_STEP_STATUS_FAILED, nil, e
	}
	f.wake(r.parent)
	f.hint(r.parent, st)
}

// hint tells the holder of a run that a wait may be over.
func (f *fake) hint(r *fakeRun, st *kagziv1.Step) {
	if r.token != "" && !f.keepsNoOrder {
		r.session.send(&kagziv1.SessionResponse{Event: &kagziv1.SessionResponse_WaitOver{WaitOver: &kagziv1.WaitOver{
			RunId: r.RunId, LeaseToken: r.token, StepName: st.Name}}})
	}
}

// applyWait applies the operations that wait.
func (f *fake) applyWait(req *kagziv1.SessionRequest) *kagziv1.SessionResponse {
	switch op := req.Operation.(type) {
	case *kagziv1.SessionRequest_AwaitSignal:
		return f.awaitSignal(op.AwaitSignal)
	case *kagziv1.SessionRequest_StartChild:
		return f.startChild(op.StartChild)
	case *kagziv1.SessionRequest_AwaitChildren:
		return f.awaitChildren(op.AwaitChildren)
	}
	return refusing(kagziv1.ErrorCode_ERROR_CODE_INVALID_ARGUMENT, "unknown operation")
}

func refusing(code kagziv1.ErrorCode, text string) *kagziv1.SessionResponse {
	return &kagziv1.SessionResponse{Event: &kagziv1.SessionResponse_Error{
		Error: &kagziv1.ErrorDetail{Code: code, Message: text}}}
}

func (f *fake) awaitSignal(req *kagziv1.AwaitSignalRequest) *kagziv1.SessionResponse {
	r, lost := f.lookup(req.GetRunId(), req.GetLeaseToken())
	if lost != nil {
		return lost
	}
	st := f.step(r, req.GetStepName(), kagziv1.StepKind_STEP_KIND_SIGNAL)
	f.log = append(f.log, fmt.Sprintf("wait %s hold=%v", st.Name, req.GetHold()))
	if st.Status == kagziv1.StepStatus_STEP_STATUS_UNSPECIFIED {
		attempt(st)
		st.SignalName, st.Branch = req.GetSignalName(), req.GetBranch()
		if req.GetTimeout() != nil {
			st.WakeUpAt = timestamppb.New(f.now().Add(req.GetTimeout().AsDuration()))
		}
	}
	if open(st) {
		f.consume(r, st)
	}
	f.lapse(r)
	answer := &kagziv1.AwaitSignalResponse{TimedOut: st.SignalTimedOut}
	switch {
	case open(st):
		r.awaited[st.Name] = 1
		f.parkUnless(req.GetHold(), r)
	case !st.SignalTimedOut:
		answer.Payload = st.Output
	}
	if !open(st) {
		f.settle(r, st)
		answer.Settled = st.Settled
	}
	if !open(st) {
		delete(r.awaited, st.Name) // reported: no reason to wake the run again
	}
	return &kagziv1.SessionResponse{Event: &kagziv1.SessionResponse_AwaitedSignal{AwaitedSignal: answer}}
}

func (f *fake) startChild(req *kagziv1.StartChildRequest) *kagziv1.SessionResponse {
	r, lost := f.lookup(req.GetChild().GetParentRunId(), req.GetLeaseToken())
	if lost != nil {
		return lost
	}
	for _, o := range f.order {
		if req.GetChild().GetExternalId() != "" && o.ExternalId == req.GetChild().GetExternalId() && !ended(o) {
			return refusing(kagziv1.ErrorCode_ERROR_CODE_CONFLICT, "external id "+o.ExternalId+" is taken")
		}
	}
	st := f.step(r, req.GetStepName(), kagziv1.StepKind_STEP_KIND_CHILD_WORKFLOW)
	if st.ChildRunId == nil {
		attempt(st)
		c := f.add(fmt.Sprintf("%s.%d", r.RunId, len(f.order)), req.GetChild())
		c.parent, c.parentStep, c.closing, c.ParentRunId = r, st.Name, req.GetParentClosePolicy(), &r.RunId
		st.ChildRunId, st.ChildType = &c.RunId, c.WorkflowType
		f.log = append(f.log, "child "+st.Name)
	}
	return &kagziv1.SessionResponse{Event: &kagziv1.SessionResponse_StartedChild{
		StartedChild: &kagziv1.StartChildResponse{
			ChildRunId: st.GetChildRunId(), StepId: st.StepId, Step: proto.Clone(st).(*kagziv1.Step)}}}
}

func (f *fake) awaitChildren(req *kagziv1.AwaitChildrenRequest) *kagziv1.SessionResponse {
	r, lost := f.lookup(req.GetRunId(), req.GetLeaseToken())
	if lost != nil {
		return lost
	}
	f.log = append(f.log, fmt.Sprintf("children %d any=%v hold=%v", len(req.GetChildRunIds()), req.GetAny(),
		req.GetHold()))
	var all, over []*kagziv1.Step
	for _, id := range req.GetChildRunIds() {
		i := slices.IndexFunc(r.steps, func(st *kagziv1.Step) bool { return st.GetChildRunId() == id })
		if i < 0 {
			return refusing(kagziv1.ErrorCode_ERROR_CODE_NOT_FOUND, "no child "+id)
		}
		if all = append(all, r.steps[i]); !open(r.steps[i]) {
			over = append(over, r.steps[i])
		}
	}
	answer := &kagziv1.AwaitChildrenResponse{}
	if len(over) == len(all) || req.GetAny() && len(over) > 0 {
		answer.Steps = over[:min(len(over), f.answerSize())]
		for _, st := range answer.Steps {
			f.settle(r, st)
		}
		for _, st := range over {
			delete(r.awaited, st.Name)
		}
		answer = proto.Clone(answer).(*kagziv1.AwaitChildrenResponse)
	} else {
		group := 1
		if len(all) > 1 && !req.GetAny() {
			r.groups++
			group = 1 + r.groups
		}
		for _, st := range all {
			r.awaited[st.Name] = group
		}
		f.parkUnless(req.GetHold(), r)
	}
	return &kagziv1.SessionResponse{Event: &kagziv1.SessionResponse_AwaitedChildren{AwaitedChildren: answer}}
}

// answerSize returns how many steps of children fit into an answer.
func (f *fake) answerSize() int { return cmp.Or(f.pageSize, 1<<20) }
