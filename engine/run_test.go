package engine

import (
	"fmt"
	"reflect"
	"strings"
	"testing"
	"time"
)

func TestNewRun(t *testing.T) {
	at := time.Date(2026, 11, 20, 12, 0, 0, 1234, time.Local)
	var start StartRun
	fill(reflect.ValueOf(&start.Run).Elem(), at)
	run := start.NewRun()
	if run.Status != RunPending || run.Attempts != 1 || run.CreatedAt != Micros(at) ||
		run.NamedDeadlineAt != Micros(at) {
		t.Errorf("run = %+v, want a PENDING first attempt with times in microseconds", run)
	}
	later := map[string]bool{
		"Failures": true, "LeaseLosses": true, "Suspect": true, "OwedFrom": true, "UnreadSignals": true,
		"Steps": true, "Error": true, "Output": true,
		"StartedAt":  true,
		"FinishedAt": true,
		"HeldAt":     true, "CancelRequestedAt": true, "GraceUntil": true, "WorkerID": true, "WaitingFor": true,
		"Note": true, "CancelReason": true,
		"Pausing": true, "Paused": true, "PausedAt": true, "Gated": true, "Pinned": true, "ContinuedAs": true,
		"Divergences": true, "Unreached": true,
	}
	for i, fields := 0, reflect.TypeFor[Run](); i < fields.NumField(); i++ {
		name := fields.Field(i).Name
		if unset := reflect.ValueOf(run).Field(i).IsZero(); unset != later[name] {
			t.Errorf("%s is unset: %t, want %t", name, unset, later[name])
		}
	}
	empty := StartRun{Run: Run{Tags: map[string]string{}, Requirements: map[string]string{},
		Input: Payload{Data: []byte{}, Metadata: map[string]string{}}}}
	if run := empty.NewRun(); run.Tags != nil || run.Requirements != nil || run.Input.Data != nil ||
		run.Input.Metadata != nil {
		t.Errorf("run = %+v, want nothing that is empty but set", run)
	}
}

// fill sets every field to something.
func fill(v reflect.Value, at time.Time) {
	switch v.Kind() {
	case reflect.String:
		v.SetString("x")
	case reflect.Int, reflect.Int64:
		v.SetInt(7)
	case reflect.Uint8:
		v.SetUint(3)
	case reflect.Bool:
		v.SetBool(true)
	case reflect.Array:
		v.Index(0).SetUint(1)
	case reflect.Slice:
		v.Set(reflect.MakeSlice(v.Type(), 1, 1))
		fill(v.Index(0), at)
	case reflect.Map:
		v.Set(reflect.ValueOf(map[string]string{"k": "v"}))
	case reflect.Pointer:
		v.Set(reflect.New(v.Type().Elem()))
	case reflect.Struct:
		if v.Type() == reflect.TypeFor[time.Time]() {
			v.Set(reflect.ValueOf(at))
			return
		}
		for i := range v.NumField() {
			fill(v.Field(i), at)
		}
	}
}

func TestARunsAttemptCountsOnlyFailuresOfItsFunction(t *testing.T) {
	for _, c := range []struct{ stored, failures, attempt, retries int }{
		{1, 0, 1, 0},
		{5, 0, 1, 4}, // four failures of steps
		{3, 2, 3, 0}, // two of the function
		{6, 2, 3, 3},
		{0, 0, 1, 0}, // before NewRun
	} {
		r := Run{Attempts: c.stored, Failures: c.failures}
		if r.Attempt() != c.attempt || r.StepRetries() != c.retries {
			t.Errorf("%+v is at attempt %d with %d retries of steps", c, r.Attempt(), r.StepRetries())
		}
		r.Error = &Failure{}
		if event := string(HandlerOf(&r, "mourn", "graves", false, noon).Input.Data); !strings.Contains(event,
			fmt.Sprintf(`"attempts":%d`, c.attempt)) {
			t.Errorf("%+v: the failure handler is told %s", c, event)
		}
	}
}
