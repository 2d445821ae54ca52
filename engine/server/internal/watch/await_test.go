package watch

import (
	"context"
	"errors"
	"fmt"
	"io"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/protobuf/proto"

	"github.com/kagzi/kagzi/engine"
	"github.com/kagzi/kagzi/engine/server/internal/servertest"
	kagziv1 "github.com/kagzi/kagzi/proto/kagzi/v1"
)

// waitStream is the server's end of a stream of waits.
type waitStream struct {
	grpc.ServerStream
	ctx  context.Context
	in   chan *kagziv1.AwaitWorkflowsRequest
	out  chan *kagziv1.AwaitWorkflowsResponse
	over chan error
	stop func() // the server
	seq  uint64
}

func (w *waitStream) Context() context.Context { return w.ctx }
func (w *waitStream) Send(m *kagziv1.AwaitWorkflowsResponse) error {
	w.out <- m
	return nil
}
func (w *waitStream) Recv() (*kagziv1.AwaitWorkflowsRequest, error) {
	select {
	case m, open := <-w.in:
		if !open {
			return nil, io.EOF
		}
		return m, nil
	case <-w.ctx.Done():
		return nil, w.ctx.Err()
	}
}

// withWaiter runs a test on a service over a store of runs with one stream, in a bubble.
func withWaiter(t *testing.T, test func(t *testing.T, s *Service, a *servertest.RunStore, w *waitStream)) {
	t.Helper()
	synctest.Test(t, func(t *testing.T) {
		a := &servertest.RunStore{Runs: map[engine.ID]engine.Run{}}
		s, stop := newTestWatch(a)
		ctx, hangUp := context.WithCancel(t.Context())
		w := &waitStream{
			ctx: ctx, in: make(chan *kagziv1.AwaitWorkflowsRequest),
			out: make(chan *kagziv1.AwaitWorkflowsResponse, 100), over: make(chan error, 1), stop: stop,
		}
		go func() { w.over <- s.AwaitWorkflows(w) }()
		test(t, s, a, w)
		hangUp()
		synctest.Wait()
		if n := s.waiters.count(); n != 0 {
			t.Errorf("%d waits are left behind", n)
		}
	})
}

func (w *waitStream) wait(ids ...engine.ID) {
	request := &kagziv1.AwaitWorkflowsRequest{}
	for _, id := range ids {
		w.seq++
		request.Waits = append(request.Waits, &kagziv1.AwaitWorkflowsRequest_Wait{Seq: w.seq, RunId: id.String()})
	}
	w.in <- request
	synctest.Wait()
}

// told returns the answers, one message per line.
func (w *waitStream) told() string {
	synctest.Wait()
	var lines []string
	for {
		select {
		case m := <-w.out:
			var words []string
			for _, e := range m.Ended {
				words = append(words, tellEnded(e))
			}
			lines = append(lines, strings.Join(words, ", "))
		default:
			return strings.Join(lines, "\n")
		}
	}
}

func tellEnded(e *kagziv1.AwaitWorkflowsResponse_Ended) string {
	text := fmt.Sprint(e.Seq)
	if e.Refusal != nil {
		return text + " " + codes.Code(e.StatusCode).String()
	}
	if e.Workflow != nil {
		text += " whole " + e.Workflow.Status.String()[len("WORKFLOW_STATUS_"):] + " " +
			string(e.Workflow.Output.GetData())
	}
	if e.Status != 0 {
		text += " " + e.Status.String()[len("WORKFLOW_STATUS_"):] + " " + string(e.Output.GetData()) +
			e.Error.GetMessage() + e.ContinuedAsRunId
	}
	return strings.TrimSpace(text)
}

func runWith(n byte, status engine.RunStatus, output string) engine.Run {
	return engine.Run{ID: engine.ID{n, 9}, Status: status, Output: engine.Payload{Data: []byte(output)}}
}

func endOf(run engine.Run) (engine.ID, *engine.Ending) {
	return run.ID, &engine.Ending{
		Namespace: "default", Status: run.Status, Output: run.Output, Error: run.Error, ContinuedAs: run.ContinuedAs,
	}
}

func TestAwaitWorkflows(t *testing.T) {
	const open = engine.RunRunning
	t.Run("a run started here is answered without a read", func(t *testing.T) {
		withWaiter(t, func(t *testing.T, s *Service, a *servertest.RunStore, w *waitStream) {
			starts := []engine.StartRun{
				{Run: engine.Run{ID: engine.ID{11}, Namespace: "default"}},
				{Run: engine.Run{ID: engine.ID{12}, Namespace: "default"}},
				{Run: engine.Run{ID: engine.ID{13}, Namespace: "default"}},
			}
			s.Starting(starts)
			var runs []engine.Run
			for i, start := range starts {
				w.wait(start.ID)
				runs = append(runs, engine.Run{ID: start.ID, Status: engine.RunCompleted,
					Output: engine.Payload{Data: fmt.Append(nil, "out", i)}})
			}
			runs[1].Status, runs[1].Output, runs[1].Error = engine.RunFailed, engine.Payload{},
				&engine.Failure{Message: "no"}
			runs[2].ContinuedAs, runs[2].Output = engine.ID{7}, engine.Payload{}
			for _, run := range runs {
				s.RunEnded(endOf(run))
				s.RunEnded(endOf(run)) // once more
			}
			servertest.Want(t, "answers", strings.ReplaceAll(w.told(), "\n", ", "),
				"1 COMPLETED out0, 2 FAILED no, 3 COMPLETED "+engine.ID{7}.String())
			servertest.Want(t, "reads", a.Asked(), "")
		})
	})
	t.Run("a run that ended before, or without details, is read", func(t *testing.T) {
		withWaiter(t, func(t *testing.T, s *Service, a *servertest.RunStore, w *waitStream) {
			old := a.Add(runWith(1, engine.RunCompleted, "old"))
			w.wait(old)
			servertest.Want(t, "the old one", w.told(), "1 COMPLETED old")
			late := a.Add(runWith(2, open, ""))
			w.wait(late)
			servertest.Want(t, "while it runs", w.told(), "")
			a.Add(runWith(2, engine.RunCompleted, "late"))
			s.Notify(engine.Notification{Kind: engine.NotifyEnd, ID: late})
			servertest.Want(t, "the late one", w.told(), "2 COMPLETED late")
			s.Notify(engine.Notification{Kind: engine.NotifyEnd, ID: late})
			servertest.Want(t, "afterwards", w.told(), "")
		})
	})
	t.Run("an end between the read and the wait is not missed", func(t *testing.T) {
		withWaiter(t, func(t *testing.T, s *Service, a *servertest.RunStore, w *waitStream) {
			for i := range byte(50) {
				id := a.Add(runWith(i, open, ""))
				w.seq++
				w.in <- &kagziv1.AwaitWorkflowsRequest{
					Waits: []*kagziv1.AwaitWorkflowsRequest_Wait{{Seq: w.seq, RunId: id.String()}}}
				a.Add(runWith(i, engine.RunCompleted, "x")) // while the wait is taken
				s.Notify(engine.Notification{Kind: engine.NotifyEnd, ID: id})
				servertest.Want(t, "answer", w.told(), fmt.Sprint(w.seq, " COMPLETED x"))
			}
		})
	})
	t.Run("a caller that asks for the whole run gets it", func(t *testing.T) {
		withWaiter(t, func(t *testing.T, s *Service, a *servertest.RunStore, w *waitStream) {
			run := runWith(1, open, "")
			w.in <- &kagziv1.AwaitWorkflowsRequest{
				Waits: []*kagziv1.AwaitWorkflowsRequest_Wait{{Seq: 1, RunId: a.Add(run).String(), Whole: true}}}
			servertest.Want(t, "while it runs", w.told(), "")
			a.Add(runWith(1, engine.RunCompleted, "all"))
			s.RunEnded(endOf(runWith(1, engine.RunCompleted, "other")))
			servertest.Want(t, "answer", w.told(), "1 whole COMPLETED all")
		})
	})
	t.Run("an end in another namespace is not sent", func(t *testing.T) {
		withWaiter(t, func(t *testing.T, s *Service, a *servertest.RunStore, w *waitStream) {
			w.wait(a.Add(runWith(1, open, "")))
			a.Asked()
			run, ending := endOf(runWith(1, engine.RunCompleted, "secret"))
			ending.Namespace = "elsewhere"
			s.RunEnded(run, ending)
			servertest.Want(t, "answer", w.told(), "")
		})
	})
	t.Run("a bad wait does not affect other waits", func(t *testing.T) {
		withWaiter(t, func(t *testing.T, s *Service, a *servertest.RunStore, w *waitStream) {
			done := a.Add(runWith(1, engine.RunCompleted, "fine"))
			w.in <- &kagziv1.AwaitWorkflowsRequest{Waits: []*kagziv1.AwaitWorkflowsRequest_Wait{
				{Seq: 1, RunId: "no id"}, {Seq: 2, RunId: engine.ID{5}.String()}, {Seq: 3, RunId: done.String()},
			}}
			servertest.Want(t, "answers", strings.ReplaceAll(w.told(), "\n", ", "),
				"1 InvalidArgument, 2 NotFound, 3 COMPLETED fine")
			a.Broken = engine.ErrUnavailable
			w.seq = 3
			w.wait(done)
			w.wait(done, done)
			servertest.Want(t, "answers of a database that is away", strings.ReplaceAll(w.told(), "\n", ", "),
				"4 Unavailable, 5 Unavailable, 6 Unavailable")
			a.Broken = nil
			w.wait(done)
			servertest.Want(t, "afterwards", w.told(), "7 COMPLETED fine")
		})
	})
	t.Run("a stream's waits are limited; a forgotten one frees a slot", func(t *testing.T) {
		withWaiter(t, func(t *testing.T, s *Service, a *servertest.RunStore, w *waitStream) {
			id := a.Add(runWith(1, open, ""))
			many := make([]engine.ID, maxAwaiting+1)
			for i := range many {
				many[i] = id
			}
			w.wait(many...)
			servertest.Want(t, "one too many", w.told(), fmt.Sprint(maxAwaiting+1, " ResourceExhausted"))
			if n := s.waiters.count(); n != maxAwaiting {
				t.Errorf("%d waits", n)
			}
			w.in <- &kagziv1.AwaitWorkflowsRequest{
				Forget: []uint64{3, 4, 99_999}, Waits: []*kagziv1.AwaitWorkflowsRequest_Wait{
					{Seq: w.seq + 1, RunId: id.String()}}}
			servertest.Want(t, "after it forgot two", w.told(), "")
			if n := s.waiters.count(); n != maxAwaiting-1 {
				t.Errorf("%d waits, want %d", n, maxAwaiting-1)
			}
			s.RunEnded(endOf(runWith(1, engine.RunCompleted, "")))
			if n := strings.Count(w.told(), "COMPLETED"); n != maxAwaiting-1 {
				t.Errorf("%d answers, want %d", n, maxAwaiting-1)
			}
		})
	})
	t.Run("an unannounced end is found within a minute",
		func(t *testing.T) {
			withWaiter(t, func(t *testing.T, s *Service, a *servertest.RunStore, w *waitStream) {
				w.wait(a.Add(runWith(1, open, "")), a.Add(runWith(2, open, "")))
				a.Add(runWith(1, engine.RunCompleted, "lost"))
				a.Asked()
				time.Sleep(2 * recheckEvery)
				servertest.Want(t, "answer", w.told(), "1 COMPLETED lost")
				servertest.Want(t, "reads", a.Asked(), "2 one")
				a.Add(runWith(2, engine.RunCompleted, "gap"))
				s.Notify(engine.Notification{Kind: engine.NotifyAll})
				servertest.Want(t, "after a gap in listening", w.told(), "2 COMPLETED gap")
				a.Asked()
				time.Sleep(time.Hour)
				servertest.Want(t, "reads in an hour of no wait", a.Asked(), "")
			})
		})
	t.Run("an unannounced end is found while other waits come and go", func(t *testing.T) {
		withWaiter(t, func(t *testing.T, s *Service, a *servertest.RunStore, w *waitStream) {
			w.wait(a.Add(runWith(1, open, "")))
			a.Add(runWith(1, engine.RunCompleted, "lost"))
			for range 4 {
				time.Sleep(recheckEvery / 2)
				w.seq++
				w.in <- &kagziv1.AwaitWorkflowsRequest{
					Namespace: "default", Forget: []uint64{w.seq - 1}[:min(1, w.seq-2)],
					Waits: []*kagziv1.AwaitWorkflowsRequest_Wait{
						{Seq: w.seq, RunId: a.Add(runWith(2, open, "")).String()}},
				}
			}
			servertest.Want(t, "answer", w.told(), "1 COMPLETED lost")
		})
	})
	t.Run("results that the caller does not read are not kept", func(t *testing.T) {
		withWaiter(t, func(t *testing.T, s *Service, a *servertest.RunStore, w *waitStream) {
			w.out = nil // takes nothing
			one := &awaitStream{service: s, namespace: "default", wake: make(chan struct{}, 1),
				waits: map[uint64]*waiter{}}
			for _, big := range []*engine.Ending{
				{Namespace: "default", Output: engine.Payload{Data: make([]byte, engine.MaxPayload)}},
				{Namespace: "default", Error: &engine.Failure{
					Message: strings.Repeat("m", engine.MaxError), Stack: strings.Repeat("s", engine.MaxError)}},
			} {
				room := heldBytes / sizeOf(big)
				kept, all := 0, 2*room
				for i := range uint64(all) {
					wait := &waiter{wait: wait{seq: i}}
					one.waits[i] = wait
					if one.ended(wait, big); wait.ending != nil {
						kept++
					}
				}
				if ready, unsure := one.take(); kept != room || len(ready) != kept || len(unsure) != all-kept {
					t.Errorf("%d of %d kept, %d ready, %d to be read; want %d kept", kept, all, len(ready),
						len(unsure), room)
				}
			}
		})
	})
	t.Run("the waits kept for a caller that does not read are limited",
		func(t *testing.T) {
			withWaiter(t, func(t *testing.T, s *Service, a *servertest.RunStore, w *waitStream) {
				one := &awaitStream{service: s, namespace: "default", wake: make(chan struct{}, 1),
					waits: map[uint64]*waiter{}, closed: true}
				id := a.Add(runWith(1, open, "")).String()
				for seq := uint64(1); seq <= 10*maxAwaiting; seq++ {
					if err := one.add([]*kagziv1.AwaitWorkflowsRequest_Wait{{Seq: seq, RunId: id}}); err != nil {
						t.Fatal(err)
					}
					one.forget([]uint64{seq})
				}
				if n := len(one.due); n > 4*maxAwaiting {
					t.Errorf("%d waits that were given up are kept", n)
				}
				refused := make([]*kagziv1.AwaitWorkflowsRequest_Wait, maxAwaiting+1)
				for i := range refused {
					refused[i] = &kagziv1.AwaitWorkflowsRequest_Wait{Seq: one.last + uint64(i) + 1, RunId: "no id"}
				}
				if err := one.add(refused); engine.KindOf(err) != engine.KindTooLarge {
					t.Errorf("the stream goes on after %d refusals that nobody takes: %v", len(refused), err)
				}
			})
		})
	t.Run("large results are split into several messages", func(t *testing.T) {
		withWaiter(t, func(t *testing.T, s *Service, a *servertest.RunStore, w *waitStream) {
			var ids []engine.ID
			for i := range byte(5) {
				ids = append(ids, a.Add(runWith(i+1, engine.RunCompleted, strings.Repeat("x", endedBytes/2))))
			}
			w.wait(ids...)
			told := 0
			for _, line := range strings.Split(w.told(), "\n") {
				// how many there are hangs on how many results are there when the first goes out
				results := strings.Count(line, "COMPLETED")
				if told += results; results > 2 {
					t.Errorf("a message has %d results, want 2 at most", results)
				}
			}
			if told != len(ids) {
				t.Errorf("%d results were told, want %d", told, len(ids))
			}
		})
	})
	for name, large := range map[string]engine.Run{
		"failures": {Status: engine.RunFailed, Error: &engine.Failure{
			Message: strings.Repeat("m", engine.MaxError), Stack: strings.Repeat("s", engine.MaxError),
		}},
		"metadata of results": {Status: engine.RunCompleted, Output: engine.Payload{
			Metadata: map[string]string{"note": strings.Repeat("n", engine.MaxMetadata-4)},
		}},
	} {
		t.Run("large "+name+" go in as many messages as they need", func(t *testing.T) {
			withWaiter(t, func(t *testing.T, s *Service, a *servertest.RunStore, w *waitStream) {
				var ids []engine.ID
				for i := range engine.MaxBatch {
					run := large
					run.ID = engine.ID{byte(i >> 8), byte(i), 9}
					ids = append(ids, a.Add(run))
				}
				w.wait(ids...)
				close(w.in)
				answered := 0
				for over := false; !over || len(w.out) > 0; { // they may be more than the stream has room for
					select {
					case m := <-w.out:
						answered += len(m.Ended)
						if n := proto.Size(m); n > engine.MaxMessage {
							t.Errorf("a message has %d bytes, at most %d can be sent", n, engine.MaxMessage)
						}
					case err := <-w.over:
						if over = true; err != nil {
							t.Errorf("the stream ended with %v", err)
						}
					}
				}
				if answered != len(ids) {
					t.Errorf("%d runs are answered, want %d", answered, len(ids))
				}
			})
		})
	}
	t.Run("a caller that half-closes gets the remaining answers", func(t *testing.T) {
		withWaiter(t, func(t *testing.T, s *Service, a *servertest.RunStore, w *waitStream) {
			w.wait(a.Add(runWith(1, open, "")))
			close(w.in)
			synctest.Wait()
			s.RunEnded(endOf(runWith(1, engine.RunCompleted, "last")))
			servertest.Want(t, "answer", w.told(), "1 COMPLETED last")
			if err := <-w.over; err != nil {
				t.Errorf("it ended with %v", err)
			}
		})
	})
	t.Run("a stream ends with the server", func(t *testing.T) {
		withWaiter(t, func(t *testing.T, s *Service, a *servertest.RunStore, w *waitStream) {
			w.wait(a.Add(runWith(1, open, "")))
			w.stop()
			if err := <-w.over; engine.KindOf(err) != engine.KindUnavailable {
				t.Errorf("it ended with %v", err)
			}
		})
	})
	for name, bad := range map[string]*kagziv1.AwaitWorkflowsRequest{
		"another namespace":     {Namespace: "other"},
		"a seq that was before": {Waits: []*kagziv1.AwaitWorkflowsRequest_Wait{{Seq: 1, RunId: engine.ID{1}.String()}}},
		"no seq":                {Waits: []*kagziv1.AwaitWorkflowsRequest_Wait{{RunId: engine.ID{1}.String()}}},
	} {
		t.Run(name+" is refused", func(t *testing.T) {
			withWaiter(t, func(t *testing.T, s *Service, a *servertest.RunStore, w *waitStream) {
				w.wait(a.Add(runWith(1, open, "")))
				w.in <- bad
				if err := <-w.over; engine.KindOf(err) != engine.KindInvalid {
					t.Errorf("it ended with %v", err)
				}
			})
		})
	}
	t.Run("a caller that hangs up leaves nothing behind", func(t *testing.T) {
		withWaiter(t, func(t *testing.T, s *Service, a *servertest.RunStore, w *waitStream) {
			for i := range byte(9) {
				w.wait(a.Add(runWith(i%3, open, "")))
			}
			if n := s.waiters.count(); n != 9 {
				t.Errorf("%d waits", n)
			}
		})
	})
	t.Run("a stream that ends during an answer leaves no waits", func(t *testing.T) {
		withWaiter(t, func(t *testing.T, s *Service, a *servertest.RunStore, w *waitStream) {
			one := &awaitStream{service: s, namespace: "default", wake: make(chan struct{}, 1),
				waits: map[uint64]*waiter{}}
			one.timer = time.AfterFunc(time.Hour, one.recheck)
			one.close()
			if err := one.add([]*kagziv1.AwaitWorkflowsRequest_Wait{
				{Seq: 1, RunId: engine.ID{1}.String()}}); err != nil && !errors.Is(err, io.EOF) {
				t.Fatal(err)
			}
		})
	})
}
