package session

import (
	"testing"

	"github.com/kagzi/kagzi/engine"
	"github.com/kagzi/kagzi/engine/server/internal/servertest"
	kagziv1 "github.com/kagzi/kagzi/proto/kagzi/v1"
)

// toldToPause returns the messages about pauses that the session would have sent since the last call.
func toldToPause(w *session) []*kagziv1.PauseTask {
	var words []*kagziv1.PauseTask
	for _, o := range w.out.unasked {
		if p := o.message.GetPauseTask(); p != nil {
			words = append(words, p)
		}
	}
	w.out.unasked = nil
	return words
}

func TestASessionTellsItsWorkerOnceToPauseARun(t *testing.T) {
	lease := engine.Lease{RunID: servertest.SomeID(1), Token: engine.NewToken()}
	b := &servertest.Books{Held: []engine.Held{{Lease: lease}}}
	for _, knows := range []bool{true, false} {
		w := newSession(b)
		w.worker.PausesRuns = knows
		w.deliver(engine.Task{Run: engine.Run{ID: lease.RunID}, Lease: lease})
		for _, pausing := range []bool{false, true, true, false, false, true} {
			before := b.Held[0].Pausing
			b.Held[0].Pausing = pausing
			w.mustLook(t)
			words := toldToPause(w)
			if !knows || before == pausing {
				if len(words) != 0 {
					t.Errorf("knows %t: told %v, want nothing", knows, words)
				}
				continue
			}
			if len(words) != 1 || words[0].RunId != lease.RunID.String() ||
				words[0].LeaseToken != lease.Token.Wire() || words[0].TakenBack == pausing {
				t.Errorf("told %v, want once that the run is to be paused: %t", words, pausing)
			}
		}
		b.Held[0].Pausing = false
	}
}

func TestAHeartbeatOfASessionFindsPausesThatNobodyTold(t *testing.T) {
	lease := engine.Lease{RunID: servertest.SomeID(1), Token: engine.NewToken()}
	named := []*kagziv1.Lease{{RunId: lease.RunID.String(), LeaseToken: lease.Token.Wire()}}
	for _, c := range []struct {
		name                 string
		knows, told, pausing bool
		differ               bool
	}{
		{"nothing to tell", true, false, false, false},
		{"to pause", true, false, true, true},
		{"told before", true, true, true, false},
		{"taken back", true, true, false, true},
		{"a worker that cannot pause", false, false, true, false},
	} {
		w := newSession(&servertest.Books{})
		w.worker.PausesRuns = c.knows
		w.held[lease.RunID] = holding{token: lease.Token, pausing: c.told}
		var pausing []*kagziv1.Lease
		if c.pausing {
			pausing = named
		}
		if got := w.pausesDiffer(named, pausing); got != c.differ {
			t.Errorf("%s: differs %t, want %t", c.name, got, c.differ)
		}
	}
}
