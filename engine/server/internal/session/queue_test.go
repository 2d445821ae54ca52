package session

import (
	"context"
	"fmt"
	"slices"
	"sync"
	"testing"
	"testing/synctest"

	"github.com/kagzi/kagzi/engine"
	"github.com/kagzi/kagzi/engine/matching"
	"github.com/kagzi/kagzi/engine/server/internal/servertest"
	kagziv1 "github.com/kagzi/kagzi/proto/kagzi/v1"
)

// grouping is a store that executes its pending writes when commit is called: in one commit, in
// order.
type grouping struct {
	servertest.StubStore
	unordered bool // it keeps no order, and gives nobody a place
	refuse    map[string]error
	panics    string // the step at which it breaks

	mu      sync.Mutex
	waiting []*handed
	done    []string // what has been carried out: names of steps, and "end"
}

type handed struct {
	name   string
	ticket *engine.Ticket
	answer chan error
}

func (l *grouping) write(ticket *engine.Ticket, name string) error {
	if name == l.panics {
		panic("broken")
	}
	e := &handed{name, ticket, make(chan error, 1)}
	l.mu.Lock()
	l.waiting = append(l.waiting, e)
	l.mu.Unlock()
	if !l.unordered {
		e.ticket.Admit()
	}
	return <-e.answer
}

func (l *grouping) CompleteStep(_ context.Context, p engine.CompleteStepParams) (engine.Step, error) {
	return engine.Step{Name: p.Step.Name}, l.write(p.Ticket, p.Step.Name)
}

func (l *grouping) CompleteRun(_ context.Context, p engine.CompleteRunParams) (engine.Completed, error) {
	return engine.Completed{Status: engine.RunCompleted}, l.write(p.Ticket, "end")
}

// commit executes the pending writes and returns their number. It answers the last one first, as
// may happen between goroutines.
func (l *grouping) commit() int {
	synctest.Wait()
	l.mu.Lock()
	group := l.waiting
	l.waiting = nil
	errs := make([]error, len(group))
	for i, e := range group {
		if errs[i] = e.ticket.Err(); errs[i] == nil {
			errs[i] = l.refuse[e.name]
		}
		e.ticket.Resolve(errs[i])
		if errs[i] == nil {
			l.done = append(l.done, e.name)
		}
	}
	l.mu.Unlock()
	for i := range group {
		e := group[len(group)-1-i]
		e.answer <- errs[len(group)-1-i]
		synctest.Wait()
	}
	return len(group)
}

// give has the session carry operations out, as if they had just come in.
func (w *session) give(t *testing.T, requests ...*kagziv1.SessionRequest) {
	t.Helper()
	for _, r := range requests {
		f := w.enter(r, nil)
		if f == nil {
			t.Fatal("the session is closed")
		}
		go w.carryOut(t.Context(), f)
	}
}

// replies is the answers that the session would send, since the last call: "3" for operation 3
// done, "3!UNAVAILABLE" for one refused.
func replies(w *session) []string {
	w.out.mu.Lock()
	defer w.out.mu.Unlock()
	var words []string
	for _, o := range w.out.messages {
		word := fmt.Sprint(o.message.Seq)
		if d := o.message.GetError(); d != nil {
			word += "!" + d.Code.String()[len("ERROR_CODE_"):]
		}
		words = append(words, word)
	}
	w.out.messages = nil
	return words
}

func runID(n byte) engine.ID { return engine.ID{6: 0x70, 8: 0x80, 15: n} }

func stepOf(run byte, seq, after int64, name string) *kagziv1.SessionRequest {
	return &kagziv1.SessionRequest{Seq: seq, After: after, Operation: &kagziv1.SessionRequest_CompleteStep{
		CompleteStep: &kagziv1.CompleteStepRequest{
			RunId: runID(run).String(), LeaseToken: servertest.AToken, StepId: name},
	}}
}

func runDone(run byte, seq, after int64) *kagziv1.SessionRequest {
	return &kagziv1.SessionRequest{Seq: seq, After: after, Operation: &kagziv1.SessionRequest_CompleteWorkflow{
		CompleteWorkflow: &kagziv1.CompleteWorkflowRequest{RunId: runID(run).String(), LeaseToken: servertest.AToken},
	}}
}

func wantReplies(t *testing.T, w *session, want ...string) {
	t.Helper()
	synctest.Wait()
	if got := replies(w); !slices.Equal(got, want) {
		t.Fatalf("answered %q, want %q", got, want)
	}
}

func (l *grouping) wantDone(t *testing.T, want ...string) {
	t.Helper()
	if !slices.Equal(l.done, want) {
		t.Fatalf("carried out %q, want %q", l.done, want)
	}
}

func TestOperationsOfARun(t *testing.T) {
	refused := engine.StepConflict("a", engine.StepCompleted)
	stories := []struct {
		name  string
		store *grouping
		tell  func(t *testing.T, w *session, l *grouping)
	}{
		{"share a commit with the end last, answered in order", &grouping{},
			func(t *testing.T, w *session, l *grouping) {
				var requests []*kagziv1.SessionRequest
				var names, answers []string
				for i := range 100 {
					names, answers = append(names, fmt.Sprint("s", i)), append(answers, fmt.Sprint(i+2))
					requests = append(requests, stepOf(1, int64(i+2), int64(i+1), names[i]))
				}
				w.give(t, append(requests, runDone(1, 102, 101))...)
				if n := l.commit(); n != 101 {
					t.Fatalf("%d of 101 operations in the first commit", n)
				}
				l.wantDone(t, append(names, "end")...)
				wantReplies(t, w, append(answers, "102")...)
			}},
		{"fail in the commit of the operation before them", &grouping{refuse: map[string]error{"a": refused}},
			func(t *testing.T, w *session, l *grouping) {
				w.give(t, stepOf(1, 2, 0, "a"), stepOf(1, 3, 2, "b"), stepOf(1, 4, 0, "free"), runDone(1, 5, 3))
				if n := l.commit(); n != 4 {
					t.Fatalf("%d of 4 operations in one commit", n)
				}
				l.wantDone(t, "free")
				wantReplies(t, w, "2!CONFLICT", "3!UNAVAILABLE", "4", "5!UNAVAILABLE")
			}},
		{"fail in the next commit", &grouping{refuse: map[string]error{"a": refused}},
			func(t *testing.T, w *session, l *grouping) {
				w.give(t, stepOf(1, 2, 0, "a"))
				l.commit()
				w.give(t, stepOf(1, 3, 2, "b"), runDone(1, 4, 3))
				if n := l.commit(); n != 0 {
					t.Fatalf("%d operations behind a refused one came to the store", n)
				}
				wantReplies(t, w, "2!CONFLICT", "3!UNAVAILABLE", "4!UNAVAILABLE")
			}},
		{"fail after one that never reached the store", &grouping{}, func(t *testing.T, w *session, l *grouping) {
			w.give(t, stepOf(1, 2, 0, "not a name"), stepOf(1, 3, 2, "b"), runDone(1, 4, 3), stepOf(1, 5, 0, "free"))
			l.commit()
			l.wantDone(t, "free")
			wantReplies(t, w, "2!INVALID_ARGUMENT", "3!UNAVAILABLE", "4!UNAVAILABLE", "5")
		}},
		{"continue after one that made the store panic", &grouping{panics: "a"},
			func(t *testing.T, w *session, l *grouping) {
				w.give(t, stepOf(1, 2, 0, "a"), stepOf(1, 3, 2, "b"), stepOf(1, 4, 0, "free"))
				l.commit()
				l.wantDone(t, "free")
				wantReplies(t, w, "2!INTERNAL", "3!UNAVAILABLE", "4")
			}},
		{"go to an unordered store one at a time per run", &grouping{unordered: true},
			func(t *testing.T, w *session, l *grouping) {
				w.give(t, stepOf(1, 2, 0, "a"), stepOf(1, 3, 2, "b"), runDone(1, 4, 3), stepOf(2, 5, 0, "other"))
				for i, want := range []int{2, 1, 1, 0} {
					if n := l.commit(); n != want {
						t.Fatalf("%d operations in commit %d, want %d", n, i+1, want)
					}
				}
				if others := slices.DeleteFunc(slices.Clone(l.done), func(s string) bool {
					return s == "other"
				}); !slices.Equal(others, []string{"a", "b", "end"}) {
					t.Fatalf("carried out %q", l.done)
				}
			}},
		{"are under way until all are answered", &grouping{}, func(t *testing.T, w *session, l *grouping) {
			w.held[runID(1)] = holding{token: engine.NewToken()}
			w.give(t, stepOf(1, 2, 0, "a"), stepOf(1, 3, 2, "b"))
			synctest.Wait()
			w.cancelTask(t.Context(), runID(1), w.held[runID(1)].token)
			if len(w.out.unasked) != 0 || !w.recheck {
				t.Fatal("told to stop in the middle of an operation")
			}
			l.commit()
			if len(w.queues) != 0 || w.recheck || len(w.wake) != 1 {
				t.Fatalf("%d queues are left, and the session was woken %d times", len(w.queues), len(w.wake))
			}
		}},
	}
	for _, test := range stories {
		t.Run(test.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				l := test.store
				w := &session{service: newTestService(l),
					worker: engine.Worker{ID: "w", Namespace: "default"}, wake: make(chan struct{}, 1),
					held: map[engine.ID]holding{}, queues: map[string]runQueue{}}
				w.poller = matching.New(l, nil).Join(matching.Request{Worker: &w.worker})
				test.tell(t, w, l)
				w.close()
				w.calls.Wait()
				if f := w.enter(stepOf(1, 9, 0, "late"), nil); f != nil {
					t.Error("a closed session takes an operation")
				}
			})
		})
	}
}
