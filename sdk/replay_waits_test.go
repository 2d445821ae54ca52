package kagzi

import (
	"errors"
	"testing"
	"time"

	kagziv1 "github.com/kagzi/kagzi/proto/kagzi/v1"
	"google.golang.org/protobuf/types/known/timestamppb"
)

func signalled(name, value string) *kagziv1.Step {
	s := done(name, value)
	s.Kind, s.SignalName = kagziv1.StepKind_STEP_KIND_SIGNAL, name
	return s
}

func waitingFor(name string) *kagziv1.Step {
	return &kagziv1.Step{Name: name, Kind: kagziv1.StepKind_STEP_KIND_SIGNAL, SignalName: name,
		Status: kagziv1.StepStatus_STEP_STATUS_RUNNING}
}

func childStep(name string, status kagziv1.StepStatus, output string) *kagziv1.Step {
	s := &kagziv1.Step{Name: name, Kind: kagziv1.StepKind_STEP_KIND_CHILD_WORKFLOW, Status: status,
		ChildRunId: new(childRun)}
	if output != "" {
		s.Output = &kagziv1.Payload{Data: []byte(output)}
	}
	return s
}

const (
	childRuns  = kagziv1.StepStatus_STEP_STATUS_RUNNING
	childEnded = kagziv1.StepStatus_STEP_STATUS_COMPLETED
)

func (r *runRecord) continued() *runRecord {
	r.run.ContinuedAsRunId = new(childRun)
	return r
}

func (r *runRecord) cancelAsked() *runRecord {
	long := timestamppb.New(time.Date(2020, 1, 1, 0, 0, 0, 0, time.UTC))
	r.run.CancelRequestedAt, r.run.CancelGraceUntil = long, long
	return r
}

func TestReplayOfWaits(t *testing.T) {
	// approve waits for a signal, ships with a child beside a step, and continues as new.
	approve := func(ctx Context, n int) (int, error) {
		yes, err := WaitSignal[bool](ctx, "approval", time.Hour)
		if errors.Is(err, ErrTimeout) {
			return -1, nil
		}
		if errors.Is(err, ErrCancelled) {
			return Step(Cleanup(ctx), "refund", never(t))
		}
		if err != nil || !yes {
			return 0, err
		}
		c, err := StartChild[int](ctx, "ship", "parcel", n, ChildOptions{})
		if err != nil {
			return 0, err
		}
		if _, err := Step(ctx, "mail", never(t)); err != nil {
			return 0, err
		}
		if _, err := c.Wait(ctx); err != nil {
			return 0, err
		}
		return ContinueAsNew[int](ctx, n+1)
	}
	timedOut := waitingFor("approval")
	timedOut.Status, timedOut.SignalTimedOut = kagziv1.StepStatus_STEP_STATUS_COMPLETED, true
	ended := broken("kagzi:ended", "approval was ended by the cancellation of the run",
		kagziv1.ErrorCode_ERROR_CODE_CANCELLED)
	ended.Error.Metadata = map[string]string{"step": "approval"}
	refused := broken("kagzi:ended", "taken", kagziv1.ErrorCode_ERROR_CODE_CONFLICT)
	refused.Error.Metadata = map[string]string{"step": "ship"}
	lost := childStep("ship", kagziv1.StepStatus_STEP_STATUS_FAILED, "")
	lost.Error = &kagziv1.ErrorDetail{Message: "lost at sea", Type: "lost"}

	for _, c := range []struct {
		name   string
		record *runRecord
		want   string
	}{
		{"a run that waits for a signal", recorded(sleeping, "1", waitingFor("approval")), ""},
		{"a run that has a signal", recorded(pending, "1", signalled("approval", "true")), ""},
		{"a run whose wait has timed out", recorded(completed, "1", timedOut).with("-1"), ""},
		{"a run whose child goes on", recorded(pending, "1", signalled("approval", "true"),
			childStep("ship", childRuns, "")), ""},
		{"a run that waits for its child", recorded(
			sleeping, "1", signalled("approval", "true"), childStep("ship", childRuns, ""), done("mail", "1")), ""},
		{"a run whose child has failed", recorded(failed, "1", signalled("approval", "true"), lost, done("mail", "1")).
			because("lost", "run "+childRun+" failed: lost at sea"), ""},
		{"a run whose child has failed, with its names", recorded(
			failed, "1", signalled("approval", "true"), lost, done("mail", "1")).
			because("lost", "child ship of type parcel (run "+childRun+") failed: lost at sea"), ""},
		{"a run whose child was refused", recorded(failed, "1", signalled("approval", "true"), refused).because(
			"", "step ship: taken"), ""},
		{"a run that continued as new", recorded(
			completed, "1", signalled("approval", "true"), childStep("ship", childEnded, "7"), done("mail", "1")).
			continued(), ""},
		{"a cancelled run that was waiting", recorded(
			cancelled, "1", waitingFor("approval"), ended, done("refund", "1")).cancelAsked(), ""},
		{"a run that was cancelled before it waited", recorded(cancelled, "1", done("refund", "1")).cancelAsked(), ""},
		{"a run that is being cancelled", recorded(sleeping, "1", waitingFor("approval")).cancelAsked(), ""},
		{"a run that has continued where the code returns",
			recorded(completed, "1", signalled("approval", "false")).continued(),
			": expected the run to have continued as new, got the run completed with 0"},
		{"a run that has returned where the code continues",
			recorded(completed, "1", signalled("approval", "true"), childStep("ship", childEnded, "7"),
				done("mail", "1")).with("3"),
			": expected the run to have completed with 3, got the run continued as new"},
		{"a run that has continued where the code waits",
			recorded(completed, "1", signalled("approval", "true"), childStep("ship", childRuns, ""),
				done("mail", "1")).
				continued(),
			"at step ship: expected the run to have continued as new, got nothing beyond child run ship"},
		{"a cancelled run that did something else",
			recorded(cancelled, "1", waitingFor("approval"), ended, done("other", "1")).cancelAsked(),
			"at step other: expected step other, got step refund"},
		{"a child that is a step in the record",
			recorded(pending, "1", signalled("approval", "true"), done("ship", "1")),
			"at step ship: expected step ship, got child run ship of type parcel"},
		{"a child's output that cannot be read",
			recorded(pending, "1", signalled("approval", "true"), childStep("ship", childEnded, `"x"`),
				done("mail", "1")),
			"at step ship: expected a value that the code can read, got recorded result of step ship: cannot be read as int: json: cannot unmarshal string into Go value of type int"},
		{"a signal that the code does not wait for",
			recorded(sleeping, "1", signalled("approval", "true"), waitingFor("veto")),
			"at step veto: expected wait for a signal veto, got child run ship"},
	} {
		t.Run(c.name, func(t *testing.T) { check(t, replayed(t, c.record, approve), c.want) })
	}
}
