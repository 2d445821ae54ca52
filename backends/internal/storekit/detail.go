package storekit

import "github.com/kagzi/kagzi/engine"

// DetailOf returns what the column signal_name of an attempt holds: the name of the signal, or the type
// of the run that a CHILD started. The kind has to be known.
func DetailOf(s *engine.Step) *string {
	if s.Kind == engine.StepChild {
		return &s.ChildType
	}
	return &s.SignalName
}
