package storelogic

import (
	"errors"
	"strings"
	"testing"

	"github.com/kagzi/kagzi/engine"
)

// requests is a memory in which one request was answered with run 2, a retry of run 1.
type requests struct {
	*memory
	left *engine.StartRun
}

func (r *requests) Requested(_, requestID string) (engine.ID, error) { return id(2), nil }

func (r *requests) LeftRequest(_, requestID string) (*engine.StartRun, error) { return r.left, nil }

func TestRetryRecordedByOldVersion(t *testing.T) {
	of := func(run byte) engine.RetryRunParams {
		return engine.RetryRunParams{SteerParams: engine.SteerParams{Namespace: "default", RunID: id(run), Now: noon},
			ID: id(9), FromStep: "pay", RequestID: "r"}
	}
	first := of(1)
	for name, left := range map[string]*engine.StartRun{
		"nothing was left":     nil,
		"its start was left":   {Run: engine.Run{Queue: "q", Type: "t", RequestID: "r"}},
		"what it is, was left": retryRequest(&first),
	} {
		retried, next := aRun(1), aRun(2)
		retried.Status, next.RetriedFrom, next.RequestID = engine.RunFailed, retried.ID, "r"
		tx := &requests{newMemory(t, retried, next, aRun(3)), left}
		answer, err := RetryRun(tx, of(1))
		if want := (engine.Started{RunID: id(2), Repeated: true}); err != nil || answer != want {
			t.Errorf("%s: answer = %+v (%v), want %+v", name, answer, err, want)
		}
		if _, err := RetryRun(tx, of(3)); !errors.Is(err, engine.ErrConflict) {
			t.Errorf("%s: for another run: %v, want a conflict", name, err)
		}
	}
}

// A caller that has the id of a chain's first run means the run it continued as, which it cannot
// know.
func TestRefusalOfContinuedRunNamesNext(t *testing.T) {
	run := aRun(1)
	run.Status, run.ContinuedAs = engine.RunCompleted, id(2)
	m := newMemory(t, run)
	steer := engine.SteerParams{Namespace: "default", RunID: id(1), Now: noon}
	_, retried := RetryRun(m, engine.RetryRunParams{SteerParams: steer, ID: id(9)})
	m.steps = []engine.Step{{ID: id(101), RunID: id(1), Name: "pay", Status: engine.StepCompleted, Latest: true}}
	_, overridden := OverrideStep(m, engine.OverrideStepParams{
		SteerParams: steer, ID: id(102), Step: "pay", Output: &engine.Payload{Data: []byte("1")}})
	for what, err := range map[string]error{"retry": retried, "override": overridden} {
		var refusal *engine.Error
		if !errors.As(err, &refusal) || refusal.Kind != engine.KindPrecondition || refusal.ContinuedAs != id(2) ||
			!strings.HasSuffix(refusal.Message, "it is COMPLETED and continued as run "+id(2).String()) {
			t.Errorf("a %s is answered with %v, want it refused with run %s", what, err, id(2))
		}
	}
}
