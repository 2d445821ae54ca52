package kagzi

import (
	"cmp"
	"fmt"
	"testing"
	"testing/synctest"
	"time"

	kagziv1 "github.com/kagzi/kagzi/proto/kagzi/v1"
	"github.com/kagzi/kagzi/sdk/internal/session"
)

// boxed returns an execution without a stream, and a function that lists what is queued.
func boxed() (e *execution, queued func() []string) {
	w := NewWorker(WorkerOptions{})
	e = newExecution(w, &kagziv1.Task{RunId: "r"})
	e.busy, e.coding = 1, 1 // its code runs
	return e, func() (names []string) {
		for _, op := range w.session.Take() {
			names = append(names, op.Msg.GetCompleteStep().GetStepName())
		}
		return names
	}
}

// taken lists what is sent next: heartbeats, and steps by their names.
func taken(e *execution) (names []string) {
	for _, op := range e.w.session.Take() {
		names = append(names, cmp.Or(op.Msg.GetCompleteStep().GetStepName(), "beat"))
	}
	return names
}

func post(e *execution, names ...string) {
	for _, name := range names {
		sendOp(e, completeStep(e, name, "", nil, e.since()))
	}
}

func refuse(e *execution, i int, code kagziv1.ErrorCode) {
	e.Answered(e.ops[i], &kagziv1.SessionResponse{
		Event: &kagziv1.SessionResponse_Error{Error: &kagziv1.ErrorDetail{Code: code}}})
}

// bubble runs a test in virtual time: on a slow machine repeats would be sent too early.
func bubble(test func(t *testing.T)) func(t *testing.T) {
	return func(t *testing.T) { synctest.Test(t, test) }
}

// answer answers a sent operation with a refusal.
func answer(e *execution, op *session.Operation, code kagziv1.ErrorCode) {
	r := &kagziv1.SessionResponse{Seq: op.Msg.Seq, Event: &kagziv1.SessionResponse_Error{Error: &kagziv1.ErrorDetail{
		Code: code, NonRetryable: code == kagziv1.ErrorCode_ERROR_CODE_RESOURCE_EXHAUSTED,
	}}}
	e.Answered(e.w.session.Answered(r), r)
}

func TestOutbox(t *testing.T) {
	const open = kagziv1.ErrorCode_ERROR_CODE_UNAVAILABLE
	t.Run("operations without a stream are sent once, on the next", func(t *testing.T) {
		e, queued := boxed()
		post(e, "a", "b")
		e.w.session.Open()
		post(e, "c")
		equal(t, queued(), nil) // c has to wait for the earlier ones
		e.resend()
		e.resend()
		post(e, "d")
		equal(t, queued(), []string{"a", "b", "c", "d"})
	})

	t.Run("unanswered operations are sent again in order", func(t *testing.T) {
		e, queued := boxed()
		e.w.session.Open()
		post(e, "a", "b")
		equal(t, queued(), []string{"a", "b"})
		e.w.session.Close()
		post(e, "c")
		e.w.session.Open()
		e.resend()
		equal(t, queued(), []string{"a", "b", "c"})
	})

	t.Run("a repeated operation keeps its place", bubble(func(t *testing.T) {
		e, queued := boxed()
		e.w.session.Open()
		post(e, "a", "b")
		queued()
		refuse(e, 0, open)
		refuse(e, 1, open)
		post(e, "c")
		equal(t, queued(), nil)
		e.repeat()
		equal(t, queued(), []string{"a", "b", "c"})
	}))

	t.Run("an operation sent on a new stream is not repeated", bubble(func(t *testing.T) {
		e, queued := boxed()
		e.w.session.Open()
		post(e, "a")
		queued()
		refuse(e, 0, open)
		e.w.session.Close()
		e.w.session.Open()
		e.resend()
		time.Sleep(time.Minute) // the repeat is due within it
		synctest.Wait()
		equal(t, queued(), []string{"a"})
		equal(t, e.repeating, false)
	}))

	t.Run("an operation refused during a repeat is repeated", bubble(func(t *testing.T) {
		e, queued := boxed()
		e.w.session.Open()
		post(e, "a", "b")
		queued()
		refuse(e, 0, open)
		e.repeat()
		refuse(e, 1, open)
		equal(t, e.repeating, true)
		e.repeat()
		equal(t, queued(), []string{"a", "b"})
	}))

	t.Run("a queued operation does not count before a refused one",
		bubble(func(t *testing.T) {
			for name, refusal := range map[string]kagziv1.ErrorCode{
				"open": open, "for good": kagziv1.ErrorCode_ERROR_CODE_RESOURCE_EXHAUSTED} {
				e, _ := boxed()
				e.w.session.Open()
				post(e, "a")
				first := e.w.session.Take()[0]
				post(e, "b")
				answer(e, first, refusal)
				if second := e.w.session.Take()[0]; second.Msg.After != first.Msg.Seq {
					t.Errorf("refused %s: b is sent after %d, want after %d", name, second.Msg.After, first.Msg.Seq)
				}
			}
		}))

	t.Run("answered operations are not kept by later ones", func(t *testing.T) {
		e, queued := boxed()
		e.w.session.Open()
		for i := range 4 { // each is sent while the one before is unanswered
			post(e, fmt.Sprint("s", i))
			queued()
			if i > 0 {
				r := &kagziv1.SessionResponse{Seq: e.ops[0].Msg.Seq}
				e.Answered(e.w.session.Answered(r), r)
			}
		}
		kept := 0
		for op := e.ops[0].Prev; op != nil; op = op.Prev {
			kept++
		}
		if kept > 1 {
			t.Errorf("the last operation keeps %d that are answered, want at most one", kept)
		}
	})

	t.Run("operations after a refused announcement continue", func(t *testing.T) {
		e, _ := boxed()
		e.w.session.Open()
		sendOp(e, beginStep(&call{b: &branch{e: e}, name: "a"}, &stepCall{}, time.Second, e.since()))
		announced := e.w.session.Take()[0]
		post(e, "a")
		answer(e, announced, kagziv1.ErrorCode_ERROR_CODE_CONFLICT)
		equal(t, e.w.session.Take()[0].Msg.After, 0)
	})

	t.Run("heartbeats come first; a large queue is sent in parts",
		func(t *testing.T) {
			e, _ := boxed()
			e.w.session.Open()
			large := &kagziv1.Payload{Data: make([]byte, session.MaxBatch)}
			for _, name := range []string{"a", "b"} {
				sendOp(e, completeStep(e, name, "", large, e.since()))
			}
			e.w.beat()
			due := func() bool {
				select {
				case <-e.w.session.Due():
					return true
				default:
					return false
				}
			}
			equal(t, due(), true)
			equal(t, taken(e), []string{"beat", "a"})
			equal(t, due(), true) // or b would wait for the next message
			equal(t, taken(e), []string{"b"})
			equal(t, due(), false)
		})

	t.Run("a heartbeat ends with its stream; the next reports again",
		func(t *testing.T) {
			for name, broken := range map[string]func(e *execution){
				"none":           func(e *execution) { e.w.beat() },
				"before it went": func(e *execution) { e.w.session.Open(); e.w.beat(); e.w.session.Close() },
				"before it came": func(e *execution) {
					e.w.session.Open()
					e.w.beat()
					equal(t, taken(e), []string{"beat"})
					e.w.session.Close()
				},
			} {
				e, _ := boxed()
				e.w.counters.Finished(kagziv1.WorkflowStatus_WORKFLOW_STATUS_COMPLETED, time.Second)
				broken(e)
				select {
				case <-e.w.lastBeat:
				default:
					t.Errorf("%s: who waits for the heartbeat goes on waiting", name)
				}
				equal(t, e.w.counters.Pending(), true)
			}
		})

	t.Run("unsent credit is not granted twice on the next stream", func(t *testing.T) {
		e, _ := boxed()
		e.w.session.Open()
		e.w.session.AddCredit(1)
		e.w.session.Close()
		e.w.session.AddCredit(1) // there is no stream
		e.w.executions["r"] = e
		e.w.session.Open()
		e.w.resume() // grants all free slots
		ops := e.w.session.Take()
		equal(t, ops[len(ops)-1].Msg.GetCredit().GetTasks(), 99)
	})

	t.Run("results are durable when all up to them are answered", func(t *testing.T) {
		e, _ := boxed()
		e.w.session.Open()
		post(e, "a", "b", "c")
		for i := range 3 {
			equal(t, e.durable(int64(i+1)), false)
			e.Answered(e.ops[0], &kagziv1.SessionResponse{})
			equal(t, fmt.Sprint(i, e.durable(int64(i+1)), e.durable(3)), fmt.Sprint(i, true, i == 2))
		}
	})
}

func TestRefusalsOfOperations(t *testing.T) {
	const again, gone, never = "it is sent again", "the run is dropped", "it is never taken"
	for _, c := range []struct {
		code  kagziv1.ErrorCode
		final bool
		want  string
	}{
		{kagziv1.ErrorCode_ERROR_CODE_UNAVAILABLE, false, again},
		{kagziv1.ErrorCode_ERROR_CODE_INTERNAL, false, again},
		{kagziv1.ErrorCode_ERROR_CODE_TIMEOUT, false, again},
		{kagziv1.ErrorCode_ERROR_CODE_RESOURCE_EXHAUSTED, false, again}, // a full disk
		{kagziv1.ErrorCode_ERROR_CODE_RESOURCE_EXHAUSTED, true, never},  // a limit
		{kagziv1.ErrorCode_ERROR_CODE_LEASE_LOST, false, gone},
		{kagziv1.ErrorCode_ERROR_CODE_NOT_FOUND, false, gone},
		{kagziv1.ErrorCode_ERROR_CODE_CANCELLED, false, gone},
		{kagziv1.ErrorCode_ERROR_CODE_UNAUTHORIZED, false, gone}, // the key was revoked
		{kagziv1.ErrorCode_ERROR_CODE_INVALID_ARGUMENT, false, never},
		{kagziv1.ErrorCode_ERROR_CODE_PRECONDITION_FAILED, false, never},
		{kagziv1.ErrorCode_ERROR_CODE_CONFLICT, false, never},
	} {
		d, got := &kagziv1.ErrorDetail{Code: c.code, NonRetryable: c.final}, never
		switch {
		case session.Repeatable(d):
			got = again
		case session.LeaseGone(d):
			got = gone
		}
		if got != c.want {
			t.Errorf("%v, for good %v: %s, want %s", c.code, c.final, got, c.want)
		}
	}
}

// sendOp sends a write whose answer the code does not wait for.
func sendOp(e *execution, msg *kagziv1.SessionRequest) {
	e.lock()
	e.send(msg, nil)
	e.mu.Unlock()
}
