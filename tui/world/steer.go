package world

import (
	"context"
	"time"

	"google.golang.org/grpc"

	kagziv1 "github.com/kagzi/kagzi/proto/kagzi/v1"
)

// What people do to a run that is open.

// steerRequest is a request to change a run.
type steerRequest interface {
	runRequest
	GetReason() string
}

func (w *World) steered(r steerRequest) (*run, error) {
	target, err := w.runOf(r)
	return target, first(err, checkReason(r.GetReason()))
}

// CancelWorkflow ends a run at once or, with a grace, has its code told to stop.
func (w *World) CancelWorkflow(ctx context.Context, request *kagziv1.CancelWorkflowRequest, _ ...grpc.CallOption) (*kagziv1.CancelWorkflowResponse, error) {
	return call(w, ctx, "WorkflowService/CancelWorkflow", func() (*kagziv1.CancelWorkflowResponse, error) {
		r, err := w.steered(request)
		if err != nil {
			return nil, err
		}
		grace, err := delayOf("grace", request.Grace)
		if err != nil {
			return nil, err
		}
		if err := w.cancel(r, grace, request.Reason); err != nil {
			return nil, err
		}
		return &kagziv1.CancelWorkflowResponse{
			Cancelled: r.Status == cancelled, Status: r.Status, Requested: r.CancelGraceUntil != nil && !ended(r.Status), GraceUntil: r.CancelGraceUntil,
		}, nil
	})
}

func (w *World) cancel(r *run, grace time.Duration, reason string) error {
	if grace == 0 {
		return w.stop(r, cancelled, "CancelWorkflow", reason)
	}
	if ended(r.Status) && r.Status != cancelled {
		return runEnded(r)
	}
	until := micros(w.now.Add(grace))
	if ended(r.Status) || r.CancelRequestedAt != nil && !until.Before(moment(r.CancelGraceUntil)) {
		return nil
	}
	told := r.CancelRequestedAt != nil
	r.CancelGraceUntil = stamp(until)
	w.at(until, func() {
		if !ended(r.Status) && moment(r.CancelGraceUntil).Equal(until) {
			w.end(r, cancelled, endedBy("cancelled", r.reason))
		}
	})
	w.audited("CancelWorkflow", r.Namespace, "run", r.RunId, reason, "grace "+grace.String())
	w.changed(r)
	if told {
		return nil
	}
	r.CancelRequestedAt, r.reason = stamp(w.now), reason
	w.tell(r)
	return nil
}

// tell has the run's code drop what it does and clean up: now, or when a worker has the run.
func (w *World) tell(r *run) {
	if r.holder == nil {
		w.unpause(r)
		w.due(r)
		return
	}
	if r.holder.silent {
		return
	}
	for _, s := range r.openSteps() {
		w.closeStep(r, s, stepFailed, nil, endedBy("cancelled", r.reason))
	}
	r.unwinding = endedBy("cancelled", r.reason)
	w.proceed(r)
}

// TerminateWorkflow ends a run at once.
func (w *World) TerminateWorkflow(ctx context.Context, request *kagziv1.TerminateWorkflowRequest, _ ...grpc.CallOption) (*kagziv1.TerminateWorkflowResponse, error) {
	return call(w, ctx, "WorkflowService/TerminateWorkflow", func() (*kagziv1.TerminateWorkflowResponse, error) {
		r, err := w.steered(request)
		if err != nil {
			return nil, err
		}
		if err := w.stop(r, terminated, "TerminateWorkflow", request.Reason); err != nil {
			return nil, err
		}
		return &kagziv1.TerminateWorkflowResponse{Terminated: true, Status: r.Status}, nil
	})
}

// stop ends a run as a person wants it to end. One that has ended so already is left alone.
func (w *World) stop(r *run, status kagziv1.WorkflowStatus, method, reason string) error {
	switch {
	case r.Status == status:
		return nil
	case ended(r.Status):
		return runEnded(r)
	}
	kind := "cancelled"
	if status == terminated {
		kind = "terminated"
	}
	w.end(r, status, endedBy(kind, reason))
	w.audited(method, r.Namespace, "run", r.RunId, reason, "")
	return nil
}

// PauseWorkflow takes a run out of the workers' hands.
func (w *World) PauseWorkflow(ctx context.Context, request *kagziv1.PauseWorkflowRequest, _ ...grpc.CallOption) (*kagziv1.PauseWorkflowResponse, error) {
	return call(w, ctx, "WorkflowService/PauseWorkflow", func() (*kagziv1.PauseWorkflowResponse, error) {
		r, err := w.steered(request)
		if err != nil {
			return nil, err
		}
		if ended(r.Status) {
			return nil, runEnded(r)
		}
		if !r.Paused {
			w.pause(r, request.Reason)
		}
		return &kagziv1.PauseWorkflowResponse{Workflow: r.show()}, nil
	})
}

func (w *World) pause(r *run, reason string) {
	if r.holder != nil {
		w.interrupt(r, w.now)
	}
	if !r.gated {
		r.heldAt = r.available
	}
	r.gated = false
	r.setAvailable(time.Time{})
	r.Paused = true
	w.changed(r)
	w.audited("PauseWorkflow", r.Namespace, "run", r.RunId, reason, "")
}

// ResumeWorkflow gives a run back to the workers.
func (w *World) ResumeWorkflow(ctx context.Context, request *kagziv1.ResumeWorkflowRequest, _ ...grpc.CallOption) (*kagziv1.ResumeWorkflowResponse, error) {
	return call(w, ctx, "WorkflowService/ResumeWorkflow", func() (*kagziv1.ResumeWorkflowResponse, error) {
		r, err := w.steered(request)
		if err != nil {
			return nil, err
		}
		if ended(r.Status) {
			return nil, runEnded(r)
		}
		if r.Paused {
			w.unpause(r)
			w.audited("ResumeWorkflow", r.Namespace, "run", r.RunId, request.Reason, "")
		}
		return &kagziv1.ResumeWorkflowResponse{Workflow: r.show()}, nil
	})
}

func (w *World) unpause(r *run) {
	if !r.Paused {
		return
	}
	r.Paused = false
	r.setAvailable(r.heldAt)
	r.heldAt = time.Time{}
	w.changed(r)
	if !r.available.IsZero() {
		w.at(r.available, w.lookForWork)
	}
}

// PinWorkflow keeps a run from being deleted, or lets it go.
func (w *World) PinWorkflow(ctx context.Context, request *kagziv1.PinWorkflowRequest, _ ...grpc.CallOption) (*kagziv1.PinWorkflowResponse, error) {
	return call(w, ctx, "WorkflowService/PinWorkflow", func() (*kagziv1.PinWorkflowResponse, error) {
		r, err := w.steered(request)
		if err != nil {
			return nil, err
		}
		if r.Pinned != request.Pinned {
			r.Pinned = request.Pinned
			w.archive.keep(r)
			w.changed(r)
			detail := "unpinned"
			if r.Pinned {
				detail = "pinned"
			}
			w.audited("PinWorkflow", r.Namespace, "run", r.RunId, request.Reason, detail)
		}
		return &kagziv1.PinWorkflowResponse{Workflow: r.show()}, nil
	})
}
