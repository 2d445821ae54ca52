//go:build linux

package workload

import (
	"context"
	"errors"
	"io"
	"reflect"
	"testing"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
	"google.golang.org/protobuf/types/known/timestamppb"

	"github.com/kagzi/kagzi/engine/lab/torture/history"
	kagziv1 "github.com/kagzi/kagzi/proto/kagzi/v1"
)

// wire is a worker's session with scripted answers of the server.
type wire struct {
	grpc.ClientStream
	says []*kagziv1.SessionResponse
}

func (w *wire) SendMsg(any) error { return nil }

func (w *wire) RecvMsg(m any) error {
	if len(w.says) == 0 {
		return io.EOF
	}
	next := w.says[0]
	w.says = w.says[1:]
	into := m.(*kagziv1.SessionResponse)
	into.Seq, into.Event = next.Seq, next.Event
	return nil
}

// witnessed returns a session with a witness, as a worker has it.
func witnessed(t *testing.T, says ...*kagziv1.SessionResponse) (*witness, grpc.ClientStream) {
	t.Helper()
	w := newWitness(history.NewLog("w"))
	s, err := w.stream(t.Context(), nil, nil, kagziv1.WorkerService_Session_FullMethodName,
		func(context.Context, *grpc.StreamDesc, *grpc.ClientConn, string,
			...grpc.CallOption) (grpc.ClientStream, error) {
			return &wire{says: says}, nil
		})
	if err != nil {
		t.Fatal(err)
	}
	return w, s
}

func data(text string) *kagziv1.Payload { return &kagziv1.Payload{Data: []byte(text)} }

// failure is an answer with an error.
func failure(code kagziv1.ErrorCode, stands string) *kagziv1.SessionResponse {
	d := &kagziv1.ErrorDetail{Code: code}
	if stands != "" {
		d.Metadata = map[string]string{"status": stands}
	}
	return &kagziv1.SessionResponse{Event: &kagziv1.SessionResponse_Error{Error: d}}
}

func TestWhatAWorkerSaysIsWrittenDownBeforeItIsSentAndWithItsAnswer(t *testing.T) {
	begin := &kagziv1.SessionRequest{Operation: &kagziv1.SessionRequest_BeginStep{
		BeginStep: &kagziv1.BeginStepRequest{RunId: "r", LeaseToken: "t", StepName: "s"}}}
	complete := &kagziv1.SessionRequest{Operation: &kagziv1.SessionRequest_CompleteStep{
		CompleteStep: &kagziv1.CompleteStepRequest{RunId: "r", LeaseToken: "t", StepId: "s", Output: data("v")}}}
	fail := &kagziv1.SessionRequest{Operation: &kagziv1.SessionRequest_FailStep{
		FailStep: &kagziv1.FailStepRequest{RunId: "r", LeaseToken: "t", StepId: "s", Hold: true}}}
	sleep := &kagziv1.SessionRequest{Operation: &kagziv1.SessionRequest_Sleep{
		Sleep: &kagziv1.SleepRequest{RunId: "r", LeaseToken: "t", StepId: "s", Hold: true}}}
	end := &kagziv1.SessionRequest{Operation: &kagziv1.SessionRequest_CompleteWorkflow{
		CompleteWorkflow: &kagziv1.CompleteWorkflowRequest{RunId: "r", LeaseToken: "t", Output: data("v")}}}
	endBadly := &kagziv1.SessionRequest{Operation: &kagziv1.SessionRequest_FailWorkflow{
		FailWorkflow: &kagziv1.FailWorkflowRequest{
			RunId: "r", LeaseToken: "t", Error: &kagziv1.ErrorDetail{Message: "broken"}}}}
	release := &kagziv1.SessionRequest{Operation: &kagziv1.SessionRequest_ReleaseTask{
		ReleaseTask: &kagziv1.ReleaseTaskRequest{RunId: "r", LeaseToken: "t"}}}
	ok := &kagziv1.SessionResponse{Event: &kagziv1.SessionResponse_CompletedStep{
		CompletedStep: &kagziv1.CompleteStepResponse{}}}
	begun := func(b *kagziv1.BeginStepResponse) *kagziv1.SessionResponse {
		return &kagziv1.SessionResponse{Event: &kagziv1.SessionResponse_BegunStep{BegunStep: b}}
	}
	failedStep := func(again bool) *kagziv1.SessionResponse {
		return &kagziv1.SessionResponse{Event: &kagziv1.SessionResponse_FailedStep{
			FailedStep: &kagziv1.FailStepResponse{ScheduledRetry: again}}}
	}
	for name, test := range map[string]struct {
		request *kagziv1.SessionRequest
		answer  *kagziv1.SessionResponse // nil: none
		want    history.Event
	}{
		"a step is begun": {begin, begun(&kagziv1.BeginStepResponse{ShouldExecute: true}),
			history.Event{Op: history.Begin, Step: "s", Outcome: history.OK}},
		"one that has a result is": {begin, begun(&kagziv1.BeginStepResponse{CachedOutput: data("v")}),
			history.Event{Op: history.Begin, Step: "s", Outcome: history.OK, Status: "COMPLETED", Value: "v"}},
		"one that has failed is": {begin, begun(&kagziv1.BeginStepResponse{Error: &kagziv1.ErrorDetail{}}),
			history.Event{Op: history.Begin, Step: "s", Outcome: history.OK}},
		"a result": {complete, ok,
			history.Event{Op: history.Complete, Step: "s", Value: "v", Outcome: history.OK}},
		"a result without answer": {complete, nil, history.Event{Op: history.Complete, Step: "s", Value: "v"}},
		"a result by its step's id": {complete, &kagziv1.SessionResponse{
			Event: &kagziv1.SessionResponse_CompletedStep{
				CompletedStep: &kagziv1.CompleteStepResponse{Step: &kagziv1.Step{Name: "name"}}}},
			history.Event{Op: history.Complete, Step: "name", Value: "v", Outcome: history.OK}},
		"a failure": {fail, failedStep(false),
			history.Event{Op: history.Fail, Step: "s", Held: true, Outcome: history.OK}},
		"a failure to be repeated": {fail, failedStep(true),
			history.Event{Op: history.Fail, Step: "s", Held: true, Outcome: history.OK, Status: "PENDING"}},
		"a sleep": {sleep, ok,
			history.Event{Op: history.Park, Step: "s", Held: true, Outcome: history.OK}},
		"an end": {end, ok, history.Event{Op: history.End, Value: "v", Outcome: history.OK}},
		"a bad end": {endBadly, &kagziv1.SessionResponse{Event: &kagziv1.SessionResponse_FailedWorkflow{
			FailedWorkflow: &kagziv1.FailWorkflowResponse{Status: kagziv1.WorkflowStatus_WORKFLOW_STATUS_FAILED}}},
			history.Event{Op: history.EndBadly, Outcome: history.OK, Status: "FAILED", Message: "broken"}},
		"a run that is handed back": {release, ok, history.Event{Op: history.Release, Outcome: history.OK}},
		"a lost lease": {complete, failure(kagziv1.ErrorCode_ERROR_CODE_LEASE_LOST, "RUNNING"),
			history.Event{Op: history.Complete, Step: "s", Value: "v", Outcome: history.Refused, Code: "LEASE_LOST",
				Status: "RUNNING"}},
		"no answer from the database": {complete, failure(kagziv1.ErrorCode_ERROR_CODE_UNAVAILABLE, ""),
			history.Event{Op: history.Complete, Step: "s", Value: "v", Code: "UNAVAILABLE"}},
		"an answer that came too late": {complete, failure(kagziv1.ErrorCode_ERROR_CODE_TIMEOUT, ""),
			history.Event{Op: history.Complete, Step: "s", Value: "v", Code: "TIMEOUT"}},
		"a mistake of the server's": {complete, failure(kagziv1.ErrorCode_ERROR_CODE_INTERNAL, ""),
			history.Event{Op: history.Complete, Step: "s", Value: "v", Code: "INTERNAL"}},
	} {
		var says []*kagziv1.SessionResponse
		if test.request.Seq = 7; test.answer != nil {
			test.answer.Seq = 7
			says = append(says, &kagziv1.SessionResponse{Seq: 6}, test.answer)
		}
		w, s := witnessed(t, says...)
		if err := s.SendMsg(test.request); err != nil {
			t.Fatal(err)
		}
		if events := w.log.Events(); len(events) != 1 || events[0].Outcome != history.Unknown ||
			events[0].Returned != 0 {
			t.Errorf("%s: before its answer the history is %+v, want it alone", name, events)
		}
		for range says {
			if err := s.RecvMsg(&kagziv1.SessionResponse{}); err != nil {
				t.Fatal(err)
			}
		}
		events := w.log.Events()
		if len(events) != 1 {
			t.Fatalf("%s: the history is %+v, want one operation", name, events)
		}
		got := events[0]
		if answered := got.Returned >= got.Invoked; answered != (test.answer != nil) {
			t.Errorf("%s: asked at %d, answered at %d", name, got.Invoked, got.Returned)
		}
		test.want.Proc, test.want.Seq, test.want.Run, test.want.Token = "w", 1, "r", "t"
		if got.Invoked, got.Returned = 0, 0; !reflect.DeepEqual(got, test.want) {
			t.Errorf("%s: %+v, want %+v", name, got, test.want)
		}
	}
}

func TestWhatAWorkerIsHandedIsWrittenDown(t *testing.T) {
	completed := kagziv1.StepStatus_STEP_STATUS_COMPLETED
	woken := time.Now().Add(-time.Hour)
	task := &kagziv1.Task{RunId: "r", LeaseToken: "t", NextHistoryToken: "more", History: []*kagziv1.Step{
		{Name: "s0", Kind: kagziv1.StepKind_STEP_KIND_FUNCTION, Status: completed, Output: data("v0")},
		{Name: "s1", Kind: kagziv1.StepKind_STEP_KIND_FUNCTION, Status: kagziv1.StepStatus_STEP_STATUS_FAILED,
			Output: data("v1")},
		{Name: "early", Kind: kagziv1.StepKind_STEP_KIND_SLEEP, Status: completed, WakeUpAt: timestamppb.New(woken)},
		{Name: "earlier", Kind: kagziv1.StepKind_STEP_KIND_SLEEP, Status: completed,
			WakeUpAt: timestamppb.New(woken.Add(-time.Hour))},
		{Name: "not over", Kind: kagziv1.StepKind_STEP_KIND_SLEEP, Status: kagziv1.StepStatus_STEP_STATUS_RUNNING,
			WakeUpAt: timestamppb.New(time.Now().Add(time.Hour))},
	}}
	w, s := witnessed(t, &kagziv1.SessionResponse{Event: &kagziv1.SessionResponse_Task{Task: task}})
	if err := s.RecvMsg(&kagziv1.SessionResponse{}); err != nil {
		t.Fatal(err)
	}
	got := w.log.Events()[0]
	if late := time.Duration(-got.Early); late < time.Hour || late > time.Hour+time.Minute {
		t.Errorf("its sleep ended late by %s, want an hour", late)
	}
	if got.Invoked == 0 || got.Returned < got.Invoked {
		t.Errorf("handed out between %d and %d", got.Invoked, got.Returned)
	}
	want := history.Event{Proc: "w", Seq: 1, Op: history.Claim, Run: "r", Token: "t", Outcome: history.OK,
		Steps: map[string]string{"s0": "v0"}, Part: true, Woken: true}
	if got.Invoked, got.Returned, got.Early = 0, 0, 0; !reflect.DeepEqual(got, want) {
		t.Errorf("claim = %+v, want %+v", got, want)
	}
	if token := w.tokenOf("r"); token != "t" {
		t.Errorf("the run's token is %q, want t", token)
	}
	task = &kagziv1.Task{RunId: "r", LeaseToken: "u", History: []*kagziv1.Step{
		{Kind: kagziv1.StepKind_STEP_KIND_SLEEP, Status: completed,
			WakeUpAt: timestamppb.New(time.Now().Add(time.Hour))}}}
	w.handed(task, 1)
	if e := w.log.Events()[1]; e.Early <= 0 || !e.Woken || e.Part || w.tokenOf("r") != "u" {
		t.Errorf("a run that was handed out an hour before its sleep ended: %+v", e)
	}
	w.handed(&kagziv1.Task{RunId: "q", LeaseToken: "v"}, 1)
	if e := w.log.Events()[2]; e.Woken || e.Early != 0 {
		t.Errorf("a run that never slept: %+v", e)
	}
}

func TestWhatAnErrorTellsOfACall(t *testing.T) {
	for _, test := range []struct {
		err  error
		want history.Outcome
		code string
	}{
		{nil, history.OK, ""},
		{status.Error(codes.NotFound, "x"), history.Refused, "NotFound"},
		{status.Error(codes.FailedPrecondition, "x"), history.Refused, "FailedPrecondition"},
		{status.Error(codes.ResourceExhausted, "x"), history.Refused, "ResourceExhausted"},
		{status.Error(codes.Unavailable, "x"), history.Unknown, "Unavailable"},
		{status.Error(codes.DeadlineExceeded, "x"), history.Unknown, "DeadlineExceeded"},
		{status.Error(codes.Canceled, "x"), history.Unknown, "Canceled"},
		{status.Error(codes.Internal, "x"), history.Unknown, "Internal"},
		{status.Error(codes.Aborted, "x"), history.Unknown, "Aborted"},
		{errors.New("x"), history.Unknown, "Unknown"},
	} {
		if got, code := Outcome(test.err); got != test.want || code != test.code {
			t.Errorf("outcome of %v = %q %q, want %q %q", test.err, got, code, test.want, test.code)
		}
	}
	lost, err := status.New(codes.FailedPrecondition, "x").WithDetails(&kagziv1.ErrorDetail{
		Code: kagziv1.ErrorCode_ERROR_CODE_LEASE_LOST, Metadata: map[string]string{"status": "RUNNING"}})
	if err != nil {
		t.Fatal(err)
	}
	if o, code, stands := Refusal(lost.Err()); o != history.Refused || code != "LEASE_LOST" || stands != "RUNNING" {
		t.Errorf("refusal = %q %q %q, want that the lease is lost and the run is running", o, code, stands)
	}
}

func TestAConfirmedHeartbeatIsWrittenDown(t *testing.T) {
	answer := &kagziv1.SessionResponse{Seq: 7,
		Event: &kagziv1.SessionResponse_Heartbeat{Heartbeat: &kagziv1.HeartbeatResponse{}}}
	w, s := witnessed(t, &kagziv1.SessionResponse{
		Event: &kagziv1.SessionResponse_Welcome{Welcome: &kagziv1.RegisterResponse{}}}, answer)
	if err := s.RecvMsg(&kagziv1.SessionResponse{}); err != nil {
		t.Fatal(err)
	}
	if err := s.SendMsg(&kagziv1.SessionRequest{
		Seq: 7, Operation: &kagziv1.SessionRequest_Heartbeat{Heartbeat: &kagziv1.HeartbeatRequest{}}}); err != nil {
		t.Fatal(err)
	}
	if got := Confirmations(w.log.Events()); len(got) != 1 {
		t.Errorf("before the answer %+v, want the welcome alone", got)
	}
	if err := s.RecvMsg(&kagziv1.SessionResponse{}); err != nil {
		t.Fatal(err)
	}
	if got := Confirmations(w.log.Events()); len(got) != 2 || got[1].Returned < got[1].Invoked {
		t.Errorf("after it %+v, want both", got)
	}
}
