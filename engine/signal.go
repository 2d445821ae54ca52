package engine

import (
	"time"
)

// Signal is one message to a run. It is kept until a step of the run consumes it, in the order of
// arrival among those of its name.
type Signal struct {
	RunID      ID
	Sequence   int64 // order of arrival in the run, from 1
	Name       string
	SignalID   string // given by the sender, once per run; empty: none
	Payload    Payload
	ReceivedAt time.Time
	StepName   string // the step that consumed it
}

// Validate refuses a signal that breaks a limit, naming the request's field.
func (p *SignalRunParams) Validate() error {
	return firstError([]error{
		CheckName("name", p.Name),
		CheckOptionalName("signal_id", p.SignalID),
		CheckPayload("payload", p.Payload),
	})
}
