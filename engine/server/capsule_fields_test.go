package server

import (
	"reflect"
	"testing"

	"github.com/kagzi/kagzi/engine"
	"github.com/kagzi/kagzi/engine/server/internal/servertest"
)

// notCarried says of each field that the ended run of servertest.Family, its steps and its signals do
// not have, why an import of them is not compared with it (TestAnImportMakesTheRunsUnderNewIDs).
var notCarried = map[string]string{
	"Run.RequestID":     "belongs to the server that answered it",
	"Run.Steps":         "is counted again (TestAnImportMakesTheRunsUnderNewIDs)",
	"Run.Bytes":         "is counted again (TestAnImportMakesTheRunsUnderNewIDs)",
	"Run.Error":         "not of a COMPLETED run (TestWhatAnEndedRunLeftOpenIsImportedAsEnded)",
	"Run.AvailableAt":   "not of a run that has ended",
	"Run.WaitingFor":    "not of a run that has ended",
	"Run.Pausing":       "not of a run that has ended; an open one is imported paused",
	"Run.Paused":        "not of a run that has ended; an open one is imported paused",
	"Run.PausedAt":      "not of a run that has ended; an open one is imported paused",
	"Run.Gated":         "not of a run that has ended; an open one takes its turn",
	"Run.HeldAt":        "not of a run that has ended; an open one is imported paused",
	"Run.CancelReason":  "is in the audit log, which a capsule has for people",
	"Run.HasPlace":      "the place is the exported run's",
	"Run.ParentRunID":   "a reference, which gets the new id (TestAnImportMakesTheRunsUnderNewIDs)",
	"Run.ParentStepID":  "a reference, which gets the new id (TestAnImportMakesTheRunsUnderNewIDs)",
	"Run.ParentClose":   "of a child (TestAChildIsImportedToEndWithItsParentAsItWould)",
	"Run.Traceparent":   "the API does not show it",
	"Run.Origin":        "becomes OriginImport",
	"Run.FailedRunID":   "a reference to a run outside of the capsule",
	"Run.RetriedFrom":   "a reference to a run outside of the capsule",
	"Run.ContinuedFrom": "a reference, which gets the new id (TestAnImportMakesTheRunsUnderNewIDs)",
	"Run.ContinuedAs":   "a reference, which gets the new id (TestAnImportMakesTheRunsUnderNewIDs)",
	"Run.FirstRunID":    "a reference, which gets the new id (TestAnImportMakesTheRunsUnderNewIDs)",
	"Run.Suspect":       "belongs to the exporting server's workers",
	"Run.Divergences":   "belongs to the exporting server's builds",
	"Run.OwedFrom":      "is above every BegunIn of the imported steps",
	"Step.Failures":     "is counted again (TestAttemptsAreImportedInOrderAndRenumbered)",
	"Step.Token":        "of a lease of the exporting server",
	"Step.TimeoutAt":    "of a lease of the exporting server",
	"Step.Duration":     "of a timer that runs (TestAnOpenRunIsImportedReadyToContinue)",
	"Step.RetryPolicy":  "the API does not show it; the code names it when it begins the step again",
	"Step.Awaited":      "the next wait sets it",
}

// A new field of a run, step or signal is set in servertest.Family, where an import that forgets it
// fails TestAnImportMakesTheRunsUnderNewIDs, or it has a reason here.
func TestEachFieldIsCarriedByACapsuleOrHasAReasonNotToBe(t *testing.T) {
	source := servertest.Family()
	root := source.Runs[3]
	if !root.Status.Ended() {
		t.Fatalf("run %+v has not ended", root)
	}
	reasons := map[string]bool{}
	unset := func(kind reflect.Type, values reflect.Value) {
		for _, field := range reflect.VisibleFields(kind) {
			name, set := kind.Name()+"."+field.Name, false
			for i := range values.Len() {
				set = set || !values.Index(i).FieldByIndex(field.Index).IsZero()
			}
			switch reason := notCarried[name]; {
			case !set && reason == "":
				t.Errorf("%s is not set: set it in servertest.Family, or say here why a capsule does not carry it", name)
			case set && reason != "":
				t.Errorf("%s is set, but says %q", name, reason)
			}
			reasons[name] = true
		}
	}
	unset(reflect.TypeFor[engine.Run](), reflect.ValueOf([]engine.Run{root}))
	unset(reflect.TypeFor[engine.Step](), reflect.ValueOf(source.Steps[root.ID]))
	unset(reflect.TypeFor[engine.Signal](), reflect.ValueOf(source.Signals[root.ID]))
	for name := range notCarried {
		if !reasons[name] {
			t.Errorf("there is no field %s", name)
		}
	}
}
