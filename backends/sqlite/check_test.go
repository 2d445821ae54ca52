package sqlite

import (
	"strings"
	"testing"

	"github.com/kagzi/kagzi/engine"
)

// busy is a store with runs in every state.
func busy(t *testing.T) *Store {
	t.Helper()
	s := fresh(t)
	leases := holding(t, s, 6)
	now := s.Now()
	for i, l := range leases {
		step := engine.CompleteStepParams{Lease: l, Step: engine.StepRef{Name: "pay"}, ID: engine.NewID(now), Now: now}
		if _, err := s.CompleteStep(t.Context(), step); err != nil {
			t.Fatal(err)
		}
		var err error
		switch i {
		case 0:
			err = s.CompleteRun(t.Context(), engine.CompleteRunParams{Lease: l, Now: now})
		case 1:
			_, err = s.FailRun(t.Context(), engine.FailRunParams{Lease: l, Failure: engine.Failure{Message: "no"}, Now: now})
		case 2:
			err = s.Sleep(t.Context(), engine.SleepParams{Lease: l, Step: engine.StepRef{Name: "nap"}, ID: engine.NewID(now), Duration: 1e12, Now: now})
		case 3:
			_, err = s.FailStep(t.Context(), engine.FailStepParams{Lease: l, Step: engine.StepRef{Name: "ship"}, ID: engine.NewID(now), Now: now})
		case 4:
			_, err = s.BeginStep(t.Context(), engine.BeginStepParams{Lease: l, Name: "ship", Kind: engine.StepFunction, ID: engine.NewID(now), Now: now})
		}
		if err != nil {
			t.Fatal(err)
		}
	}
	return s
}

// behindItsBack changes the file over another connection.
func behindItsBack(t *testing.T, path, script string) {
	t.Helper()
	c, err := connect(dsn(path, "full"))
	if err != nil {
		t.Fatal(err)
	}
	defer c.close()
	if err := c.script(t.Context(), script); err != nil {
		t.Fatal(err)
	}
}

func TestCheckFindsNothingInASoundDatabaseAtWork(t *testing.T) {
	s := busy(t)
	if findings, err := Check(t.Context(), s.path); err != nil || len(findings) != 0 {
		t.Fatalf("findings = %v (%v), want none", findings, err)
	}
}

func TestCheckFindsWhatContradictsItself(t *testing.T) {
	for _, broken := range []struct{ name, script, want string }{
		{"a run without its lease", "delete from leases", "is RUNNING without a lease"},
		{"a lease without its run", "update runs set status = 1, available_at = 1 where status = 2", "is for a run that is not RUNNING"},
		{"a waiting run that is never due", "update runs set available_at = null where status = 3", "no time at which it is due"},
		{"an ended run that is due", "update runs set available_at = 1 where status = 4", "has a time at which it is due"},
		{"an ended run without an end", "update runs set finished_at = null where status = 4", "at no time"},
		{"a run in another's lane", "update lanes set workflow_type = 'other'", "stands in no lane"},
		{"a step without a run", "delete from runs where status = 4", "is left over"},
		{"a run without payloads", "delete from payloads", "has no payload row"},
		{"a step without a latest attempt", "update steps set latest = 0", "latest attempts"},
		{"a wrong count of steps", "update runs set steps = 7 where status = 4", "counts 7 steps and has 1"},
		{"an open step of an ended run", "update steps set status = 1 where run_id in (select run_id from runs where status = 4)", "is open in a run that has ended"},
		{"a step that runs without a holder", "update steps set status = 2 where run_id in (select run_id from runs where status = 3) and kind = 1", "nobody holds"},
		{"a reference to nothing", "pragma foreign_keys = 0; insert into run_tags values ('default', 'k', 'v', x'00'); pragma foreign_keys = 1", "refers to a runs row that is not there"},
		{"a worker that is gone", "delete from workers", "held by a worker that is not there"},
	} {
		t.Run(broken.name, func(t *testing.T) {
			s := busy(t)
			behindItsBack(t, s.path, broken.script)
			findings, err := Check(t.Context(), s.path)
			if err != nil {
				t.Fatal(err)
			}
			var all strings.Builder
			for _, f := range findings {
				all.WriteString(f.Subject + " " + f.Text + "\n")
			}
			if !strings.Contains(all.String(), broken.want) {
				t.Fatalf("findings:\n%swant one that says %q", all.String(), broken.want)
			}
		})
	}
}
