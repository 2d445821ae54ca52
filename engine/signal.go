package engine

import (
	"time"
)

// Signal is one message to a run. It waits until a step of the run consumes it; signals of the same
// name are consumed in order of arrival.
type Signal struct {
	RunID      ID
	Sequence   int64 // order of arrival in the run, from 1
	Name       string
	SignalID   string // set by the sender, unique per run; empty: none
	Payload    Payload
	ReceivedAt time.Time
	StepName   string // the step that consumed it
}

// Validate returns an error that names the request's field if the signal exceeds a limit.
func (p *SignalRunParams) Validate() error {
	return firstError([]error{
		CheckName("name", p.Name),
		CheckOptionalName("signal_id", p.SignalID),
		CheckPayload("payload", p.Payload),
	})
}
