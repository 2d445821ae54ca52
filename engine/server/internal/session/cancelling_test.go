package session

import (
	"testing"
	"time"

	"github.com/kagzi/kagzi/engine"
	"github.com/kagzi/kagzi/engine/server/internal/servertest"
	"github.com/kagzi/kagzi/engine/server/internal/wire"
	kagziv1 "github.com/kagzi/kagzi/proto/kagzi/v1"
)

// newSession is a session without its stream: what it would send stays in its outbox.
func newSession(b *servertest.Books) *session {
	w := &session{service: newTestService(b), worker: engine.Worker{ID: "w", Namespace: "default"},
		wake: make(chan struct{}, 1),
		held: map[engine.ID]holding{}, queues: map[string]runQueue{}}
	return w
}

// told returns the messages to stop a run that the session would have sent since the last call.
func told(w *session) []*kagziv1.CancelTask {
	var words []*kagziv1.CancelTask
	for _, o := range w.out.unasked {
		if c := o.message.GetCancelTask(); c != nil {
			words = append(words, c)
		}
	}
	w.out.unasked = nil
	return words
}

func (w *session) mustLook(t *testing.T) {
	t.Helper()
	if err := w.look(t.Context()); err != nil {
		t.Fatal(err)
	}
}

func TestASessionTellsItsWorkerOnceToStopARun(t *testing.T) {
	lease := engine.Lease{RunID: servertest.SomeID(1), Token: engine.NewToken()}
	b := &servertest.Books{Held: []engine.Held{{Lease: lease}}}
	w := newSession(b)
	w.deliver(engine.Task{Run: engine.Run{ID: lease.RunID}, Lease: lease})
	w.mustLook(t)
	if words := told(w); len(words) != 0 {
		t.Fatalf("told %v, but nobody has asked for an end", words)
	}
	until := servertest.Began.Add(time.Minute)
	b.Held[0].GraceUntil, b.Held[0].CancelReason = until, "enough"
	w.mustLook(t)
	words := told(w)
	if len(words) != 1 || words[0].RunId != lease.RunID.String() || words[0].LeaseToken != lease.Token.Wire() ||
		!words[0].GraceUntil.AsTime().Equal(until) || words[0].Reason.Message != "enough" {
		t.Fatalf("told %v, want one word with its reason and until when", words)
	}
	w.mustLook(t)
	if words := told(w); len(words) != 0 {
		t.Errorf("told again: %v", words)
	}
	b.Held[0].GraceUntil = servertest.Began
	w.mustLook(t)
	if words := told(w); len(words) != 1 || !words[0].GraceUntil.AsTime().Equal(servertest.Began) {
		t.Errorf("told %v, want the earlier end", words)
	}
	b.Held = nil
	w.mustLook(t)
	if words := told(w); len(words) != 1 || words[0].GraceUntil != nil {
		t.Errorf("told %v, want that the lease is over", words)
	}
}

func TestAWorkerThatKnowsAlreadyIsNotTold(t *testing.T) {
	lease := engine.Lease{RunID: servertest.SomeID(1), Token: engine.NewToken()}
	until := servertest.Began.Add(time.Minute)
	b := &servertest.Books{Held: []engine.Held{{Lease: lease, GraceUntil: until}}}
	w := newSession(b)
	w.deliver(engine.Task{Run: engine.Run{ID: lease.RunID, CancelRequestedAt: servertest.Began, GraceUntil: until},
		Lease: lease})
	w.mustLook(t)
	if words := told(w); len(words) != 0 {
		t.Errorf("told %v what its task has said", words)
	}
	w = newSession(b)
	w.deliver(engine.Task{Run: engine.Run{ID: lease.RunID}, Lease: lease})
	w.told([]*kagziv1.CancelTask{wire.CancellingTo(b.Held[0])}) // by the answer to a heartbeat
	w.mustLook(t)
	if words := told(w); len(words) != 0 {
		t.Errorf("told %v what its heartbeat has said", words)
	}
	b.Held[0].Lease.Token = engine.NewToken() // claimed again, under a lease that this session did not hand out
	w.mustLook(t)
	if words := told(w); len(words) != 1 || words[0].GraceUntil != nil {
		t.Errorf("told %v, want only that the old lease is over", words)
	}
}
