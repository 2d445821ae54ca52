package runs

import (
	"fmt"
	"reflect"
	"slices"
	"time"

	"github.com/kagzi/kagzi/backends/storetest/internal/fixture"
	"github.com/kagzi/kagzi/engine"
)

// unkept are the fields of imported rows that a store does not keep as they are: it sets them, counts
// them, or they belong to runs that are open.
var unkept = []string{
	"Run.Status", "Run.AvailableAt", "Run.WaitingFor", "Run.Pausing", "Run.Paused", "Run.PausedAt", "Run.Gated",
	"Run.HeldAt", "Run.Suspect", "Run.Divergences", "Run.OwedFrom", "Run.HasPlace", "Run.RequestID", "Run.Origin",
	"Run.Namespace", "Run.Steps", "Run.CancelReason",
	"Step.RunID", "Step.Kind", "Step.Status", "Step.Token", "Step.TimeoutAt", "Step.Awaited", "Step.Sequence",
	"Step.Attempt", "Step.Latest", "Signal.RunID", "Signal.Sequence", "Signal.StepName",
}

// fill gives each field of a row a value that is not its zero value, and differs from the others of
// its type. Those in unkept stay as they are.
func fill(s *fixture.F, row any) {
	v := reflect.ValueOf(row).Elem()
	for i := range v.NumField() {
		name := v.Type().Name() + "." + v.Type().Field(i).Name
		if slices.Contains(unkept, name) || !v.Field(i).IsZero() {
			continue
		}
		at := s.Now.Add(-time.Duration(i+1) * time.Minute)
		switch f := v.Field(i).Addr().Interface().(type) {
		case *engine.ID:
			*f = s.ID()
		case *string:
			*f = fmt.Sprintf("f%d", i)
		case *time.Time:
			*f = at
		case *time.Duration:
			*f = time.Duration(i+1) * time.Minute
		case *bool:
			*f = true
		case *engine.Payload:
			*f = engine.Payload{Data: fmt.Append(nil, i), Metadata: map[string]string{"m": name}}
		case **engine.Failure:
			*f = &engine.Failure{Type: name, Message: "no"}
		case **engine.RetryPolicy:
			*f = &engine.RetryPolicy{MaximumAttempts: i, InitialIntervalMS: 5}
		case *engine.Timeouts:
			*f = engine.Timeouts{StartToClose: time.Minute, Execution: time.Hour}
		case *map[string]string:
			*f = map[string]string{"k": name}
		case *[]string:
			*f = []string{name, "other"}
		default:
			if k := v.Field(i).Kind(); !v.Field(i).CanInt() && !v.Field(i).CanUint() {
				s.Fatalf("field %s is of a kind that this test does not know (%s): give it a value here", name, k)
			}
			v.Field(i).Set(reflect.ValueOf(1).Convert(v.Field(i).Type()))
		}
	}
}

// sameFields fails the case if a field of a row is not that of the row that was imported.
func sameFields[R any](s *fixture.F, got, want []R) {
	s.Helper()
	fixture.Equal(s, fmt.Sprintf("rows of type %T", want), len(got), len(want))
	for i, field := range reflect.VisibleFields(reflect.TypeFor[R]()) {
		name, set := reflect.TypeFor[R]().Name()+"."+field.Name, false
		if slices.Contains(unkept, name) {
			continue
		}
		for n := range want {
			g, w := reflect.ValueOf(got[n]).Field(i), reflect.ValueOf(want[n]).Field(i)
			set = set || !w.IsZero()
			if !reflect.DeepEqual(g.Interface(), w.Interface()) {
				s.Fatalf("%s = %+v, want %+v as imported", name, g.Interface(), w.Interface())
			}
		}
		if !set {
			s.Fatalf("field %s is not set, so nothing shows that an import keeps it", name)
		}
	}
}

// ImportedFieldsCases import rows in which every field is set, so a new field is tested by itself.
var ImportedFieldsCases = []fixture.Case{
	{Name: "an imported run that has ended keeps every field", Run: func(s *fixture.F) {
		run := engine.Run{ID: s.ID(), Namespace: fixture.Space, Queue: fixture.Queue, Type: fixture.Kind,
			Status: engine.RunFailed, Steps: 3, Bytes: 1000, Origin: engine.OriginImport}
		fill(s, &run)
		var steps []engine.Step
		for _, kind := range []engine.StepKind{engine.StepFunction, engine.StepSignal, engine.StepChild} {
			step := engine.Step{RunID: run.ID, Name: kind.String(), Kind: kind, Status: engine.StepFailed, Attempt: 1,
				Sequence: int64(len(steps) + 1), Latest: true}
			fill(s, &step)
			if kind != engine.StepSignal {
				step.SignalName = ""
			}
			if kind != engine.StepChild {
				step.ChildType = ""
			}
			steps = append(steps, step)
		}
		signal := engine.Signal{RunID: run.ID, Sequence: 1}
		fill(s, &signal)
		_, err := s.Store.ImportRuns(s.Ctx, engine.ImportRunsParams{Namespace: fixture.Space, By: fixture.Somebody,
			AuditID: s.ID(), Now: s.Now,
			Runs: []engine.ImportedRun{{Run: run, Steps: steps, Signals: []engine.Signal{signal}}}})
		s.Must(err, "ImportRuns")
		sameFields(s, []engine.Run{s.Run(run.ID)}, []engine.Run{run})
		sameFields(s, s.Attempts(run.ID, ""), steps)
		signals, _, err := s.Store.ListSignals(s.Ctx, fixture.Space, run.ID, engine.Page{Limit: 10})
		s.Must(err, "ListSignals")
		sameFields(s, signals, []engine.Signal{signal})
	}},
}
