package tui

import (
	"time"

	"google.golang.org/protobuf/types/known/durationpb"

	kagzi "github.com/kagzi/kagzi/sdk"
)

// DefaultGrace is how long the code of a cancelled run may clean up unless a person says otherwise.
const DefaultGrace = kagzi.DefaultGrace

// Grace returns the field of a request to cancel a run; nil for 0, which cancels at once.
func Grace(grace time.Duration) *durationpb.Duration {
	if grace == 0 {
		return nil
	}
	return durationpb.New(grace)
}
