//go:build linux

package workload

import (
	"cmp"
	"context"
	"maps"
	"slices"
	"strings"
	"sync"
	"time"

	"google.golang.org/grpc"

	"github.com/kagzi/kagzi/engine/lab/torture/history"
	kagziv1 "github.com/kagzi/kagzi/proto/kagzi/v1"
)

// witness records what passes between a worker and the server: each operation before it is sent,
// and its answer before the worker gets it.
type witness struct {
	log *history.Log

	mu     sync.Mutex
	tokens map[string]string // run → the token under which this worker last got it
	// known are the results of steps that the worker knows, by run and step: a task of a run that it keeps
	// in memory has only those that came since.
	known map[string]map[string]string
}

func newWitness(log *history.Log) *witness {
	return &witness{log: log, tokens: map[string]string{}, known: map[string]map[string]string{}}
}

// tokenOf returns the token under which the worker last got a run.
func (w *witness) tokenOf(run string) string {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.tokens[run]
}

// stream is the interceptor of the worker's connection.
func (w *witness) stream(ctx context.Context, desc *grpc.StreamDesc, conn *grpc.ClientConn, method string,
	streamer grpc.Streamer, o ...grpc.CallOption) (grpc.ClientStream, error) {
	opened := history.Now()
	s, err := streamer(ctx, desc, conn, method, o...)
	if err != nil || method != kagziv1.WorkerService_Session_FullMethodName {
		return s, err
	}
	return &session{ClientStream: s, witness: w, opened: opened, pending: map[int64]history.Event{}}, nil
}

type session struct {
	grpc.ClientStream
	witness *witness
	opened  int64

	mu      sync.Mutex
	pending map[int64]history.Event
}

func (s *session) SendMsg(m any) error {
	if request, ok := m.(*kagziv1.SessionRequest); ok {
		if e, ok := asked(request); ok {
			e = s.witness.log.Begin(e)
			s.mu.Lock()
			s.pending[request.Seq] = e
			s.mu.Unlock()
		}
	}
	return s.ClientStream.SendMsg(m)
}

func (s *session) RecvMsg(m any) error {
	if err := s.ClientStream.RecvMsg(m); err != nil {
		return err
	}
	response, ok := m.(*kagziv1.SessionResponse)
	if !ok {
		return nil
	}
	if task := response.GetTask(); task != nil {
		s.witness.handed(task, s.opened)
		return nil
	}
	if response.GetWelcome() != nil {
		s.witness.log.Note(history.Event{Op: history.Beat}, s.opened)
	}
	s.mu.Lock()
	e, ok := s.pending[response.Seq]
	delete(s.pending, response.Seq)
	s.mu.Unlock()
	if ok && response.Seq != 0 {
		e = answered(e, response)
		s.witness.log.Finish(e)
		s.witness.learn(e)
	}
	return nil
}

// learn notes the result of a step that was recorded.
func (w *witness) learn(e history.Event) {
	if e.Op != history.Complete || e.Outcome != history.OK {
		return
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.tokens[e.Run] == e.Token {
		w.known[e.Run][e.Step] = e.Value
	}
}

// handed records a claim: it happened at some time after the session was opened, and its history
// was true then.
func (w *witness) handed(t *kagziv1.Task, opened int64) {
	e := history.Event{Op: history.Claim, Run: t.RunId, Token: t.LeaseToken, Steps: map[string]string{},
		Part: t.NextHistoryToken != ""}
	now := time.Now()
	var last time.Time
	for _, step := range t.History {
		if step.Status != kagziv1.StepStatus_STEP_STATUS_COMPLETED {
			continue
		}
		switch step.Kind {
		case kagziv1.StepKind_STEP_KIND_FUNCTION:
			e.Steps[step.Name] = history.Digest(step.Output.GetData())
		case kagziv1.StepKind_STEP_KIND_SLEEP:
			if wake := step.WakeUpAt.AsTime(); step.WakeUpAt != nil && wake.After(last) {
				last = wake
			}
		}
	}
	if !last.IsZero() {
		e.Woken, e.Early = true, int64(last.Sub(now))
	}
	w.mu.Lock()
	if t.Base != "" && w.tokens[t.RunId] == t.Base {
		maps.Copy(e.Steps, w.known[t.RunId])
	} else if t.Base != "" { // the worker asks for the whole
		e.Part = true
	}
	w.tokens[t.RunId], w.known[t.RunId] = t.LeaseToken, maps.Clone(e.Steps)
	w.mu.Unlock()
	w.log.Note(e, opened)
}

// asked returns the event of an operation on a run; false for others.
func asked(r *kagziv1.SessionRequest) (history.Event, bool) {
	switch o := r.Operation.(type) {
	case *kagziv1.SessionRequest_BeginStep:
		return history.Event{Op: history.Begin, Run: o.BeginStep.RunId, Token: o.BeginStep.LeaseToken,
			Step: o.BeginStep.StepName}, true
	case *kagziv1.SessionRequest_CompleteStep:
		c := o.CompleteStep
		return history.Event{Op: history.Complete, Run: c.RunId, Token: c.LeaseToken,
			Step:  cmp.Or(c.GetStepName(), c.StepId),
			Value: history.Digest(c.Output.GetData())}, true
	case *kagziv1.SessionRequest_FailStep:
		f := o.FailStep
		return history.Event{Op: history.Fail, Run: f.RunId, Token: f.LeaseToken,
			Step: cmp.Or(f.GetStepName(), f.StepId), Held: f.Hold}, true
	case *kagziv1.SessionRequest_Sleep:
		return history.Event{Op: history.Park, Run: o.Sleep.RunId, Token: o.Sleep.LeaseToken,
			Step: cmp.Or(o.Sleep.GetStepName(), o.Sleep.StepId),
			Held: o.Sleep.Hold}, true
	case *kagziv1.SessionRequest_CompleteWorkflow:
		c := o.CompleteWorkflow
		return history.Event{Op: history.End, Run: c.RunId, Token: c.LeaseToken,
			Value: history.Digest(c.Output.GetData())}, true
	case *kagziv1.SessionRequest_FailWorkflow:
		return history.Event{Op: history.EndBadly, Run: o.FailWorkflow.RunId, Token: o.FailWorkflow.LeaseToken,
			Message: history.Digest([]byte(o.FailWorkflow.Error.GetMessage()))}, true
	case *kagziv1.SessionRequest_Heartbeat:
		return history.Event{Op: history.Beat}, true
	case *kagziv1.SessionRequest_ReleaseTask:
		return history.Event{Op: history.Release, Run: o.ReleaseTask.RunId, Token: o.ReleaseTask.LeaseToken}, true
	}
	return history.Event{}, false
}

// answered records the outcome of an operation. A completed or failed step is known by its name
// from here on, whatever id it was sent under.
func answered(e history.Event, r *kagziv1.SessionResponse) history.Event {
	e.Outcome = history.OK
	switch a := r.Event.(type) {
	case *kagziv1.SessionResponse_BegunStep:
		if !a.BegunStep.ShouldExecute && a.BegunStep.Error == nil {
			e.Status, e.Value = "COMPLETED", history.Digest(a.BegunStep.CachedOutput.GetData())
		}
	case *kagziv1.SessionResponse_CompletedStep:
		if step := a.CompletedStep.Step; step.GetName() != "" {
			e.Step = step.Name
		}
	case *kagziv1.SessionResponse_FailedStep:
		if a.FailedStep.ScheduledRetry {
			e.Status = "PENDING"
		}
	case *kagziv1.SessionResponse_FailedWorkflow:
		e.Status = StatusName(a.FailedWorkflow.Status)
	case *kagziv1.SessionResponse_Error:
		return Refused(e, a.Error)
	}
	return e
}

// Refused returns the outcome of an operation that was answered with an error. Some errors leave
// open whether it counted.
func Refused(e history.Event, d *kagziv1.ErrorDetail) history.Event {
	e.Code = strings.TrimPrefix(d.GetCode().String(), "ERROR_CODE_")
	e.Status = d.GetMetadata()["status"]
	e.Outcome = history.Refused
	switch d.GetCode() {
	case kagziv1.ErrorCode_ERROR_CODE_UNAVAILABLE, kagziv1.ErrorCode_ERROR_CODE_INTERNAL,
		kagziv1.ErrorCode_ERROR_CODE_TIMEOUT,
		kagziv1.ErrorCode_ERROR_CODE_CANCELLED, kagziv1.ErrorCode_ERROR_CODE_UNSPECIFIED:
		if e.Why = d.GetMessage(); e.Why != BehindRefused { // which promises that nothing was changed, and is checked
			e.Outcome = history.Unknown
		}
	}
	return e
}

// BehindRefused is the server's message about an operation whose predecessor was refused.
const BehindRefused = "the operation that this one builds on was refused; nothing was changed"

func StatusName(s kagziv1.WorkflowStatus) string {
	return strings.TrimPrefix(s.String(), "WORKFLOW_STATUS_")
}

// Confirmations returns a worker's confirmed heartbeats in order.
func Confirmations(events []history.Event) []history.Event {
	var beats []history.Event
	for _, e := range events {
		if e.Op == history.Beat && e.Outcome == history.OK {
			beats = append(beats, e)
		}
	}
	slices.SortStableFunc(beats, func(a, b history.Event) int { return int(a.Invoked - b.Invoked) })
	return beats
}
