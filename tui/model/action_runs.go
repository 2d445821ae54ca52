package model

import (
	"context"
	"strings"
	"time"

	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
	"google.golang.org/protobuf/proto"

	kagziv1 "github.com/kagzi/kagzi/proto/kagzi/v1"
	"github.com/kagzi/kagzi/tui"
	"github.com/kagzi/kagzi/tui/render"
)

// reasonFlag returns the flag of a reason; none if it is empty.
func reasonFlag(reason string) []flag { return textFlag("reason", reason) }

// textFlag returns a flag with a text; none if it is empty.
func textFlag(name, value string) []flag {
	if value == "" {
		return nil
	}
	return []flag{{name: name, value: value}}
}

// jsonPayload returns data as a payload; nil for nil.
func jsonPayload(data []byte) *kagziv1.Payload {
	if data == nil {
		return nil
	}
	return &kagziv1.Payload{Data: data, Metadata: map[string]string{"content-type": "application/json"}}
}

// payloadFlag returns a flag with JSON; none for nil.
func payloadFlag(name string, p *kagziv1.Payload) []flag {
	if p == nil {
		return nil
	}
	return []flag{{name: name, value: string(p.GetData())}}
}

// Start starts a run. The action sets the request's namespace and request id.
func (s Scope) Start(request *kagziv1.StartWorkflowRequest) Action {
	request = proto.CloneOf(request)
	request.Namespace = s.namespace()
	return s.newAction(Action{
		Name: "start", Targets: []string{request.GetWorkflowType()}, command: []string{"workflow", "start"},
		flags: startFlags(request), alone: true,
		do: func(ctx context.Context, api tui.API, _, id string) (Outcome, error) {
			request := proto.CloneOf(request)
			request.RequestId = id
			answer, err := api.StartWorkflow(ctx, request)
			text := "started as "
			if answer.GetAlreadyExists() {
				text = "already started as "
			}
			return Outcome{Text: text + answer.GetRunId(), ID: answer.GetRunId()}, err
		},
	})
}

// Cancel cancels runs: their code has the grace to clean up; without one they end at once.
func (s Scope) Cancel(runs []string, grace time.Duration, reason string) Action {
	var flags []flag
	if grace != tui.DefaultGrace {
		flags = append(flags, flag{name: "grace", value: grace.String()})
	}
	return s.newAction(Action{
		Name: "cancel", Targets: runs, command: []string{"workflow", "cancel"},
		flags: append(flags, reasonFlag(reason)...),
		do: func(ctx context.Context, api tui.API, run, _ string) (Outcome, error) {
			answer, err := api.CancelWorkflow(ctx, &kagziv1.CancelWorkflowRequest{
				Namespace: s.namespace(), RunId: run, Grace: tui.Grace(grace), Reason: reason})
			text := render.RunStatus(answer.GetStatus())
			if answer.GetRequested() {
				text += ", cancel requested"
			}
			return Outcome{Text: text}, err
		},
	})
}

// Terminate ends runs now, without cleanup.
func (s Scope) Terminate(runs []string, reason string) Action {
	return s.newAction(Action{
		Name: "terminate", Danger: true, Targets: runs, command: []string{"workflow", "terminate"},
		flags: reasonFlag(reason),
		do: func(ctx context.Context, api tui.API, run, _ string) (Outcome, error) {
			answer, err := api.TerminateWorkflow(ctx,
				&kagziv1.TerminateWorkflowRequest{Namespace: s.namespace(), RunId: run, Reason: reason})
			return Outcome{Text: render.RunStatus(answer.GetStatus())}, err
		},
	})
}

// RetryOptions configures Retry. The zero value keeps every completed step.
type RetryOptions struct {
	FromStep string // run this step and later ones again
	Restart  bool   // keep no step
	KeepAll  bool   // keep steps that began after the first failure too
	Input    []byte // JSON that replaces the input, only with Restart; nil keeps the input
	Reason   string
}

// Retry retries ended runs as new runs.
func (s Scope) Retry(runs []string, o RetryOptions) Action {
	flags := textFlag("from-step", o.FromStep)
	if o.Restart {
		flags = append(flags, flag{name: "restart", bare: true})
	}
	if o.KeepAll {
		flags = append(flags, flag{name: "keep-all", bare: true})
	}
	input := jsonPayload(o.Input)
	flags = append(append(flags, payloadFlag("input", input)...), reasonFlag(o.Reason)...)
	return s.newAction(Action{
		Name: "retry", Targets: runs, command: []string{"workflow", "retry"}, flags: flags,
		do: func(ctx context.Context, api tui.API, run, id string) (Outcome, error) {
			answer, err := api.RetryWorkflow(ctx, &kagziv1.RetryWorkflowRequest{
				Namespace: s.namespace(), RunId: run, FromStep: o.FromStep, Restart: o.Restart, Input: input,
				RequestId: id, Reason: o.Reason, KeepAll: o.KeepAll,
			})
			if s := status.Convert(err); s.Code() == codes.FailedPrecondition &&
				strings.Contains(s.Message(), "keep_all") {
				// The advice comes first: the end of a long line does not show.
				err = status.Error(s.Code(), "give :retry a step, --restart or --keep-all; "+s.Message())
			}
			text := "retried as "
			if answer.GetAlreadyRunning() {
				text = "already retried as "
			}
			return Outcome{Text: text + answer.GetNewRunId(), ID: answer.GetNewRunId()}, err
		},
	})
}

// Signal sends a signal to runs; data is JSON or nil.
func (s Scope) Signal(runs []string, name string, data []byte) Action {
	payload := jsonPayload(data)
	return s.newAction(Action{
		Name: "signal", Targets: runs, command: []string{"workflow", "signal"}, operand: []string{name},
		flags: payloadFlag("input", payload), alone: true,
		do: func(ctx context.Context, api tui.API, run, id string) (Outcome, error) {
			request := &kagziv1.SignalWorkflowRequest{
				Namespace: s.namespace(), RunId: run, Name: name, Payload: payload, SignalId: id}
			to, answer, err := tui.Signal(ctx, api, request)
			text := "delivered"
			if answer.GetAlreadyDelivered() {
				text = "already delivered"
			}
			if to != run {
				text += " to " + to + ", which it continued as"
			}
			return Outcome{Text: text}, err
		},
	})
}

// Pause keeps workers from claiming runs until they are resumed. With now, it interrupts the steps
// that run.
func (s Scope) Pause(runs []string, now bool, reason string) Action {
	var flags []flag
	if now {
		flags = append(flags, flag{name: "now", bare: true})
	}
	return s.newAction(Action{
		Name: "pause", Targets: runs, command: []string{"workflow", "pause"},
		flags: append(flags, reasonFlag(reason)...),
		do: func(ctx context.Context, api tui.API, run, _ string) (Outcome, error) {
			answer, err := api.PauseWorkflow(ctx, &kagziv1.PauseWorkflowRequest{
				Namespace: s.namespace(), RunId: run, Reason: reason, Now: now})
			return ofRun(answer.GetWorkflow()), err
		},
	})
}

// Resume resumes paused runs. With accept, the code of a diverged run skips what is recorded.
func (s Scope) Resume(runs []string, accept bool, reason string) Action {
	var flags []flag
	if accept {
		flags = append(flags, flag{name: "accept-divergence", bare: true})
	}
	return s.newAction(Action{
		Name: "resume", Targets: runs, command: []string{"workflow", "resume"},
		flags: append(flags, reasonFlag(reason)...),
		do: func(ctx context.Context, api tui.API, run, _ string) (Outcome, error) {
			answer, err := api.ResumeWorkflow(ctx, &kagziv1.ResumeWorkflowRequest{
				Namespace: s.namespace(), RunId: run, Reason: reason, AcceptDivergence: accept})
			return ofRun(answer.GetWorkflow()), err
		},
	})
}

// Pin exempts runs from deletion by retention, or ends the exemption.
func (s Scope) Pin(runs []string, pinned bool, reason string) Action {
	name := "unpin"
	if pinned {
		name = "pin"
	}
	return s.newAction(Action{
		Name: name, Targets: runs, command: []string{"workflow", name}, flags: reasonFlag(reason),
		do: func(ctx context.Context, api tui.API, run, _ string) (Outcome, error) {
			answer, err := api.PinWorkflow(ctx, &kagziv1.PinWorkflowRequest{
				Namespace: s.namespace(), RunId: run, Pinned: pinned, Reason: reason})
			if answer.GetWorkflow().GetPinned() {
				return Outcome{Text: "pinned"}, err
			}
			return Outcome{Text: "not pinned"}, err
		},
	})
}

// ofRun returns the status of a run as the outcome of an action.
func ofRun(r *kagziv1.Workflow) Outcome { return Outcome{Text: render.RunStatusCell(r).Text} }

// Override is the new result of a step: an output, or an error if Message is set.
type Override struct {
	Step    string
	Output  []byte // JSON
	Message string // error of the step, which counts as failed for good
	Type    string // of the error
	Reason  string // required
}

// Override replaces the recorded result of a step.
func (s Scope) Override(run string, o Override) Action {
	request := &kagziv1.OverrideStepRequest{Namespace: s.namespace(), RunId: run, StepName: o.Step, Reason: o.Reason}
	var flags []flag
	if o.Message != "" {
		request.Result = &kagziv1.OverrideStepRequest_Error{
			Error: &kagziv1.ErrorDetail{Message: o.Message, Type: o.Type, NonRetryable: true}}
		flags = append([]flag{{name: "error", value: o.Message}}, textFlag("error-type", o.Type)...)
	} else {
		output := jsonPayload(append([]byte{}, o.Output...))
		request.Result = &kagziv1.OverrideStepRequest_Output{Output: output}
		flags = payloadFlag("result", output)
	}
	return s.newAction(Action{
		Name: "override", Danger: true, Targets: []string{run}, command: []string{"workflow", "override"},
		operand: []string{o.Step}, flags: append(flags, reasonFlag(o.Reason)...), alone: true,
		do: func(ctx context.Context, api tui.API, _, _ string) (Outcome, error) {
			answer, err := api.OverrideStep(ctx, request)
			return Outcome{Text: "step " + o.Step + " is " + render.StepStatus(answer.GetStep().GetStatus())}, err
		},
	})
}
