package bundle

import (
	"fmt"
	"slices"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/kagzi/kagzi/engine"
	"github.com/kagzi/kagzi/engine/server/internal/servertest"
)

// arrival is the moment at which the tests import.
var arrival = servertest.Began.Add(time.Hour)

// bare is a run of a capsule with no more than it has to have.
func bare(id engine.ID, status engine.RunStatus, steps ...engine.Step) capsuleOf {
	r := capsuleOf{directory: "runs/x/", ImportedRun: engine.ImportedRun{
		Run: engine.Run{ID: id, Status: status, Output: servertest.TextPayload("out of " + id.String())}, Steps: steps}}
	if status.Ended() {
		r.Run.FinishedAt = servertest.Began.Add(time.Minute)
	}
	return r
}

func arrived(t *testing.T, runs ...capsuleOf) []engine.ImportedRun {
	t.Helper()
	all, err := resettle(runs, "other", arrival)
	if err != nil {
		t.Fatal(err)
	}
	return all
}

func TestAttemptsAreImportedInOrderAndRenumbered(t *testing.T) {
	lost, failure := engine.InterruptedFailure(), engine.Failure{Message: "no"}
	n := 10
	step := func(name string, sequence int64, attempt int, status engine.StepStatus, f *engine.Failure) engine.Step {
		n++
		s := engine.Step{
			ID: servertest.SomeID(n), Name: name, Kind: engine.StepFunction, Sequence: sequence, Attempt: attempt,
			Status: status, Error: f, StartedAt: servertest.Began, Latest: true,
			Failures: 9,
		}
		if f != nil {
			s.FinishedAt = servertest.Began.Add(time.Second)
		}
		return s
	}
	run := bare(servertest.SomeID(1), engine.RunSleeping,
		step("c", 9, 2, engine.StepPending, &failure), // the file has them in no order
		step("c", 9, 1, engine.StepRunning, nil),
		step("b", 5, 2, engine.StepRunning, nil),
		step("b", 5, 1, engine.StepPending, &failure),
		step("a", 2, 3, engine.StepPending, &failure),
		step("a", 2, 1, engine.StepFailed, &failure),
		step("a", 2, 2, engine.StepFailed, &lost),
	)
	var got []string
	for _, s := range arrived(t, run)[0].Steps {
		line := fmt.Sprintf("%d %s#%d %s, %d failed", s.Sequence, s.Name, s.Attempt, s.Status, s.Failures)
		if s.Latest {
			line += ", the latest"
		}
		switch {
		case s.Error != nil && s.Interrupted():
			line += ", interrupted"
		case s.Error != nil:
			line += ", " + s.Error.Message
		}
		if !s.FinishedAt.IsZero() {
			line += " after " + s.FinishedAt.Sub(servertest.Began).String()
		}
		got = append(got, line)
	}
	want := []string{
		"1 a#1 FAILED, 1 failed, no after 1s",
		"1 a#2 FAILED, 1 failed, interrupted after 1s",
		"1 a#3 PENDING, 2 failed, the latest, no after 1s",
		"2 b#1 FAILED, 1 failed, no after 1s", // the next attempt began while the capsule was made
		"2 b#2 FAILED, 1 failed, the latest, interrupted after 1h0m0s",
		"3 c#1 FAILED, 0 failed, interrupted after 0s", // likewise
		"3 c#2 PENDING, 1 failed, the latest, no after 1s",
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("the attempts differ:\n%s", diff)
	}
}

func TestAChildStepIsImportedAsItsCodeMayGoOn(t *testing.T) {
	root, child, next, gone := servertest.SomeID(1), servertest.SomeID(2), servertest.SomeID(3), servertest.SomeID(99)
	const running, done, failed = engine.RunRunning, engine.RunCompleted, engine.RunFailed
	for _, c := range []struct {
		what        string
		step        engine.StepStatus
		child, next engine.RunStatus // 0: the capsule does not hold it
		continued   engine.ID        // what the child went on as
		want        string
	}{
		{"the child has ended", engine.StepRunning, done, 0, engine.ID{}, "COMPLETED with the output of the child"},
		{"the child goes on", engine.StepRunning, running, 0, engine.ID{}, "RUNNING for the child"},
		{"what the child went on as has ended", engine.StepRunning, done, done, next,
			"COMPLETED with the output of the next"},
		{"what the child went on as has failed", engine.StepRunning, done, failed, next, "FAILED for the next"},
		{"what the child went on as goes on", engine.StepRunning, done, running, next, "RUNNING for the child"},
		{"the child went on while the capsule was made", engine.StepRunning, done, 0, gone, "interrupted"},
		{"the child was started while the capsule was made", engine.StepRunning, 0, 0, engine.ID{}, "interrupted"},
		{"the run is about to start another child", engine.StepPending, failed, 0, engine.ID{},
			"PENDING for the child"},
		{"the run will start another child, the first is gone", engine.StepPending, 0, 0, engine.ID{},
			"PENDING for nothing"},
	} {
		failure := engine.Failure{Message: "the child failed"}
		step := engine.Step{ID: servertest.SomeID(10), Name: "s", Kind: engine.StepChild, Status: c.step, Attempt: 1,
			Sequence: 1, ChildRunID: child}
		if c.step == engine.StepPending {
			step.Error, step.RetryAt = &failure, arrival.Add(time.Minute)
		}
		earlier := step
		earlier.ID, earlier.Status, earlier.Error, earlier.ChildRunID = servertest.SomeID(11), engine.StepFailed,
			&failure, gone
		step.Attempt = 2
		runs := []capsuleOf{bare(root, engine.RunSleeping, earlier, step)}
		if c.child != 0 {
			one := bare(child, c.child)
			one.Run.ParentRunID, one.Run.ContinuedAs = root, c.continued
			runs = append(runs, one)
		}
		if c.next != 0 {
			one := bare(next, c.next)
			one.Run.ParentRunID, one.Run.ContinuedFrom = root, child
			runs = append(runs, one)
		}
		all := arrived(t, runs...)
		names := map[string]string{engine.ID{}.String(): "nothing"}
		for i := range all[1:] { // by the new id, and by what the run returned
			r, name := &all[i+1].Run, []string{"the child", "the next"}[i]
			names[r.ID.String()], names[string(r.Output.Data)] = name, name
		}
		if len(all[0].Steps) != 2 {
			t.Errorf("%s: steps %+v, want both attempts", c.what, all[0].Steps)
			continue
		}
		s := all[0].Steps[1]
		got := s.Status.String() + " for " + names[s.ChildRunID.String()]
		switch {
		case s.Interrupted() && s.ChildRunID.IsZero() && s.FinishedAt.Equal(arrival):
			got = "interrupted"
		case s.Status == engine.StepCompleted:
			got = "COMPLETED with the output of " + names[string(s.Output.Data)]
			if of := s.Output.Metadata[engine.MetaChildRunID]; (of == all[len(all)-1].Run.ID.String()) ==
				(c.next == 0) {
				t.Errorf("%s: the output is said to be of run %q, want it to be named unless it is the first",
					c.what, of)
			}
		case s.Status == engine.StepFailed:
			got = "FAILED for " + names[s.Error.Metadata["child_run_id"]]
		}
		if got != c.want || !s.Latest || all[0].Steps[0].Latest {
			t.Errorf("%s: its step is %s, want %s: %+v", c.what, got, c.want, s)
		}
	}
}

// With an id of before, a capsule could give a parent the output of a run that it has nothing to do
// with, for a codec binds the one to the other.
func TestTheOutputOfAChildIsImportedUnderItsRunsNewNameOrUnderNone(t *testing.T) {
	root, child, next, gone := servertest.SomeID(1), servertest.SomeID(2), servertest.SomeID(3), servertest.SomeID(99)
	for _, c := range []struct {
		what, named  string
		child, wants engine.ID
	}{
		{"the last run", next.String(), child, next},
		{"the last run, while the first is not in the capsule", next.String(), gone, next},
		{"no run", "", child, engine.ID{}},
		{"a run that is not in the capsule", gone.String(), child, engine.ID{}},
		{"what is no id", "x", child, engine.ID{}},
	} {
		step := engine.Step{
			ID: servertest.SomeID(10), Name: "s", Kind: engine.StepChild, Status: engine.StepCompleted, Attempt: 1,
			Sequence: 1, ChildRunID: c.child,
			Output: engine.Payload{Data: []byte("out"),
				Metadata: map[string]string{"encoding": "x", engine.MetaChildRunID: c.named}},
		}
		first, last := bare(child, engine.RunCompleted), bare(next, engine.RunCompleted)
		first.Run.ParentRunID, first.Run.ContinuedAs = root, next
		last.Run.ParentRunID, last.Run.ContinuedFrom = root, child
		all := arrived(t, bare(root, engine.RunSleeping, step), first, last)
		want := engine.Payload{Data: []byte("out"), Metadata: map[string]string{"encoding": "x"}}
		if !c.wants.IsZero() {
			want.Metadata[engine.MetaChildRunID] = all[2].Run.ID.String()
		}
		if got := all[0].Steps[0].Output; !got.Equal(want) {
			t.Errorf("an output of %s is imported as %v, want %v", c.what, got.Metadata, want.Metadata)
		}
	}
}

func TestSignalsAreImportedInTheirOrderAndWaitUnlessAStepHasThem(t *testing.T) {
	for status, want := range map[engine.RunStatus][]string{
		engine.RunSleeping: {"1 first for got", "2 second for ", "3 third for ", "4 fourth for "},
		engine.RunFailed:   {"1 first for got", "2 second for waits", "3 third for code", "4 fourth for "},
	} {
		run := bare(servertest.SomeID(1), status,
			engine.Step{ID: servertest.SomeID(2), Name: "got", Kind: engine.StepSignal, Status: engine.StepCompleted,
				Attempt: 1, Sequence: 1},
			engine.Step{ID: servertest.SomeID(3), Name: "waits", Kind: engine.StepSignal, Status: engine.StepRunning,
				Attempt: 1, Sequence: 2},
			engine.Step{ID: servertest.SomeID(4), Name: "code", Kind: engine.StepFunction, Status: engine.StepCompleted,
				Attempt: 1, Sequence: 3},
		)
		run.Signals = []engine.Signal{
			{Name: "fourth", Sequence: 9}, {Name: "second", Sequence: 5, StepName: "waits"},
			{Name: "first", Sequence: 3, StepName: "got"},
			{Name: "third", Sequence: 7, StepName: "code"},
		}
		var got []string
		for _, s := range arrived(t, run)[0].Signals {
			got = append(got, fmt.Sprintf("%d %s for %s", s.Sequence, s.Name, s.StepName))
		}
		if !slices.Equal(got, want) {
			t.Errorf("of a run that is %s the signals are %q, want %q", status, got, want)
		}
	}
}
