package model

import (
	"context"
	"time"

	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/types/known/durationpb"

	kagziv1 "github.com/kagzi/kagzi/proto/kagzi/v1"
	"github.com/kagzi/kagzi/tui"
	"github.com/kagzi/kagzi/tui/render"
)

// reasonFlag is the flag of a reason, when there is one.
func reasonFlag(reason string) []flag { return textFlag("reason", reason) }

// textFlag is a flag with a text, when it is not empty.
func textFlag(name, value string) []flag {
	if value == "" {
		return nil
	}
	return []flag{{name: name, value: value}}
}

// jsonPayload is data as a payload; nil for none.
func jsonPayload(data []byte) *kagziv1.Payload {
	if data == nil {
		return nil
	}
	return &kagziv1.Payload{Data: data, Metadata: map[string]string{"content-type": "application/json"}}
}

// payloadFlag is a flag with JSON, when there is any.
func payloadFlag(name string, p *kagziv1.Payload) []flag {
	if p == nil {
		return nil
	}
	return []flag{{name: name, value: string(p.GetData())}}
}

// Start starts a run. The request's namespace and request id are those of the action.
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
				text = "runs already as "
			}
			return Outcome{Text: text + answer.GetRunId(), ID: answer.GetRunId()}, err
		},
	})
}

// Cancel cancels runs: at once, or after their code had a grace to clean up.
func (s Scope) Cancel(runs []string, grace time.Duration, reason string) Action {
	var flags []flag
	if grace > 0 {
		flags = append(flags, flag{name: "grace", value: grace.String()})
	}
	return s.newAction(Action{
		Name: "cancel", Targets: runs, command: []string{"workflow", "cancel"},
		flags: append(flags, reasonFlag(reason)...),
		do: func(ctx context.Context, api tui.API, run, _ string) (Outcome, error) {
			request := &kagziv1.CancelWorkflowRequest{Namespace: s.namespace(), RunId: run, Reason: reason}
			if grace > 0 {
				request.Grace = durationpb.New(grace)
			}
			answer, err := api.CancelWorkflow(ctx, request)
			text := render.RunStatus(answer.GetStatus())
			if answer.GetRequested() {
				text += ", cancel requested"
			}
			return Outcome{Text: text}, err
		},
	})
}

// Terminate ends runs now, whatever their workers do.
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

// RetryOptions say how ended runs start again. The zero value keeps every completed step.
type RetryOptions struct {
	FromStep string // this step and all begun after it run again
	Restart  bool   // keep no step
	Input    []byte // JSON that replaces the input, only with Restart; nil keeps it
	Reason   string
}

// Retry starts ended runs again, as new runs.
func (s Scope) Retry(runs []string, o RetryOptions) Action {
	flags := textFlag("from-step", o.FromStep)
	if o.Restart {
		flags = append(flags, flag{name: "restart", bare: true})
	}
	input := jsonPayload(o.Input)
	flags = append(append(flags, payloadFlag("input", input)...), reasonFlag(o.Reason)...)
	return s.newAction(Action{
		Name: "retry", Targets: runs, command: []string{"workflow", "retry"}, flags: flags,
		do: func(ctx context.Context, api tui.API, run, id string) (Outcome, error) {
			answer, err := api.RetryWorkflow(ctx, &kagziv1.RetryWorkflowRequest{
				Namespace: s.namespace(), RunId: run, FromStep: o.FromStep, Restart: o.Restart, Input: input,
				RequestId: id, Reason: o.Reason,
			})
			text := "retried as "
			if answer.GetAlreadyRunning() {
				text = "runs again already, as "
			}
			return Outcome{Text: text + answer.GetNewRunId(), ID: answer.GetNewRunId()}, err
		},
	})
}

// Signal delivers a signal to runs; data is JSON or nil.
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
				text = "was delivered before"
			}
			if to != run {
				text += " to " + to + ", as which it continued"
			}
			return Outcome{Text: text}, err
		},
	})
}

// Pause takes runs out of the workers' hands until they are resumed.
func (s Scope) Pause(runs []string, reason string) Action {
	return s.newAction(Action{
		Name: "pause", Targets: runs, command: []string{"workflow", "pause"}, flags: reasonFlag(reason),
		do: func(ctx context.Context, api tui.API, run, _ string) (Outcome, error) {
			answer, err := api.PauseWorkflow(ctx, &kagziv1.PauseWorkflowRequest{
				Namespace: s.namespace(), RunId: run, Reason: reason})
			return ofRun(answer.GetWorkflow()), err
		},
	})
}

// Resume lets paused runs go on.
func (s Scope) Resume(runs []string, reason string) Action {
	return s.newAction(Action{
		Name: "resume", Targets: runs, command: []string{"workflow", "resume"}, flags: reasonFlag(reason),
		do: func(ctx context.Context, api tui.API, run, _ string) (Outcome, error) {
			answer, err := api.ResumeWorkflow(ctx,
				&kagziv1.ResumeWorkflowRequest{Namespace: s.namespace(), RunId: run, Reason: reason})
			return ofRun(answer.GetWorkflow()), err
		},
	})
}

// Pin keeps runs from being deleted by retention, or lets them go again.
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

// ofRun is how a run stands after something was done to it.
func ofRun(r *kagziv1.Workflow) Outcome { return Outcome{Text: render.RunStatusCell(r).Text} }

// Override is what a step is said to have come to: an output, or an error when Message is set.
type Override struct {
	Step    string
	Output  []byte // JSON
	Message string // the step has failed for good with this
	Type    string // of the error
	Reason  string // needed
}

// Override sets the recorded result of a step of a run.
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
