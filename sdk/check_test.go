package kagzi

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"slices"
	"testing"
	"testing/synctest"
	"time"

	kagziv1 "github.com/kagzi/kagzi/proto/kagzi/v1"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
	"google.golang.org/protobuf/proto"
)

// open makes the fake server hold open runs.
func (d *fakeServer) open(records ...*runRecord) {
	d.answers["ListWorkflows"] = func(m proto.Message) (proto.Message, error) {
		resp := &kagziv1.ListWorkflowsResponse{Page: &kagziv1.PageInfo{}}
		i := len(m.(*kagziv1.ListWorkflowsRequest).GetPage().GetPageToken()) // one run per page
		if i < len(records) {
			w := proto.Clone(records[i].run).(*kagziv1.Workflow)
			w.Input = nil
			resp.Workflows = append(resp.Workflows, w)
		}
		if i+1 < len(records) {
			resp.Page.NextPageToken = "ppppppppppp"[:i+1]
		}
		return resp, nil
	}
	find := func(id string) *runRecord {
		for _, r := range records {
			if r.run.GetRunId() == id {
				return r
			}
		}
		return nil
	}
	d.answers["GetWorkflow"] = func(m proto.Message) (proto.Message, error) {
		return &kagziv1.GetWorkflowResponse{Workflow: find(m.(*kagziv1.GetWorkflowRequest).GetRunId()).run}, nil
	}
	d.answers["ListSteps"] = func(m proto.Message) (proto.Message, error) {
		steps := find(m.(*kagziv1.ListStepsRequest).GetRunId()).steps
		resp := &kagziv1.ListStepsResponse{Page: &kagziv1.PageInfo{}}
		i := len(m.(*kagziv1.ListStepsRequest).GetPage().GetPageToken()) // one step per page
		if i < len(steps) {
			resp.Steps = steps[i : i+1]
		}
		if i+1 < len(steps) {
			resp.Page.NextPageToken = "ppppppppppp"[:i+1]
		}
		return resp, nil
	}
}

func (d *fakeServer) worker() *Worker {
	return NewWorker(WorkerOptions{Address: "passthrough:///door", DialOptions: d.dial(), Namespace: "shop",
		Queue: "q2", Queues: []string{"q1", "q2"},
		Logger: slog.New(slog.DiscardHandler)})
}

func (d *fakeServer) asks(method string) (n int) {
	d.mu.Lock()
	defer d.mu.Unlock()
	for _, m := range d.asked {
		if string(m.ProtoReflect().Descriptor().Name()) == method+"Request" {
			n++
		}
	}
	return n
}

func called(r *runRecord, id, workflowType string) *runRecord {
	r.run.RunId, r.run.WorkflowType = id, workflowType
	return r
}

func TestCheck(t *testing.T) {
	order := func(ctx Context, in int) (int, error) {
		a, err := Step(ctx, "a", never(t))
		if err != nil {
			return 0, err
		}
		Sleep(ctx, "night", time.Hour)
		b, err := Step(ctx, "b", never(t))
		return a + b + in, err
	}
	checked := func(t *testing.T, d *fakeServer, w *Worker) (string, error) {
		t.Helper()
		var out bytes.Buffer
		err := w.check(t.Context(), &out)
		return out.String(), err
	}

	t.Run("names each open run that diverges, and returns an error", func(t *testing.T) {
		d := newFakeServer(t)
		d.open(called(recorded(sleeping, "1", done("a", "2"), sleepingIn("night")), "r1", "order"),
			called(recorded(pending, "1", done("charge\x1b", "2")), "r2", "order"),
			called(recorded(pending, "1"), "r3", "order"),
			called(recorded(pending, `"one"`), "r4", "order"),
			called(recorded(pending, "1", done("a", "2"), done("night", "3")), "r5", "order"))
		w := d.worker()
		Handle(w, "order", order)
		Handle(w, "another", order)
		out, err := checked(t, d, w)
		equal(t, out, `run r2 of type order diverges at step charge\x1b: expected step charge\x1b, got step a
  recorded, but not made: step charge\x1b
  made, but not recorded: step a
run r4 of type order diverges: expected a value that the code can read, got input of workflow type order: cannot be read as int: json: cannot unmarshal string into Go value of type int
run r5 of type order diverges at step night: expected step night, got sleep night
  recorded, but not made: step night
  made, but not recorded: sleep night
checked 5 open runs of 2 workflow types in namespace shop: 3 diverge, 0 came to no end
`)
		var e *CheckError
		if !errors.As(err, &e) {
			t.Fatalf("err = %v", err)
		}
		equal(t, *e, CheckError{Checked: 5, Diverged: 3})
		equal(t, e.Error(), "kagzi: check: 3 of 5 open runs diverge")
	})

	t.Run("names all calls that only the history or only the code has", func(t *testing.T) {
		d := newFakeServer(t)
		r := recorded(sleeping, "1", done("a", "2"), done("b", "2"), done("charge", "3"), sleepingIn("night"))
		d.open(called(r.settledAs(1, 2, 3, 0), "r1", "order"))
		w := d.worker()
		Handle(w, "order", func(ctx Context, _ int) (int, error) {
			if _, err := Step(ctx, "a", never(t)); err != nil {
				return 0, err
			}
			_, err := Map(ctx, []string{"x", "ship"}, func(ctx Context, name string) (int, error) {
				if name == "ship" {
					return RunChild[int](ctx, name, "parcel", 1, ChildOptions{})
				}
				return Step(ctx, name, never(t))
			})
			return 0, err
		})
		out, err := checked(t, d, w)
		if err == nil {
			t.Error("the divergence is no error")
		}
		equal(t, out, `run r1 of type order diverges at step b: expected step b, got step x
  recorded, but not made: step b, step charge, sleep night
  made, but not recorded: step x in branch 1, child run ship of type parcel in branch 2
checked 1 open runs of 1 workflow types in namespace shop: 1 diverge, 0 came to no end
`)
	})

	t.Run("asks only for open runs of its types and queues", func(t *testing.T) {
		d := newFakeServer(t)
		d.open()
		w := d.worker()
		Handle(w, "order", order)
		Handle(w, "another", order)
		out, err := checked(t, d, w)
		if err != nil {
			t.Fatal(err)
		}
		equal(t, out, "checked 0 open runs of 2 workflow types in namespace shop: 0 diverge, 0 came to no end\n")
		equal(t, len(d.asked), 2)
		d.wants(t, &kagziv1.GetNamespaceRequest{Namespace: "shop"})
		d.asked = d.asked[:1]
		d.wants(t, &kagziv1.ListWorkflowsRequest{
			Namespace: "shop", WorkflowTypes: []string{"another", "order"}, TaskQueues: []string{"q1", "q2"},
			Statuses: []kagziv1.WorkflowStatus{1, 2, 3}, Page: &kagziv1.PageRequest{PageSize: checkPage}})
	})

	t.Run("a missing namespace is an error, not a result", func(t *testing.T) {
		d := newFakeServer(t)
		d.open()
		d.answers["GetNamespace"] = func(m proto.Message) (proto.Message, error) {
			return nil, status.Error(codes.NotFound, "no namespace "+m.(*kagziv1.GetNamespaceRequest).GetNamespace())
		}
		w := d.worker()
		Handle(w, "order", order)
		out, err := checked(t, d, w)
		equal(t, fmt.Sprint(out, err), "kagzi: check: there is no namespace shop, so nothing was checked; "+
			"if that is its name and nothing has run there yet, make it with: kagzi namespace create shop")
	})

	t.Run("the default namespace need not be there yet", func(t *testing.T) {
		d := newFakeServer(t)
		d.open()
		w := d.worker()
		w.options.Namespace = "default"
		Handle(w, "order", order)
		out, err := checked(t, d, w)
		equal(t, fmt.Sprint(out, err),
			"checked 0 open runs of 1 workflow types in namespace default: 0 diverge, 0 came to no end\n<nil>")
		equal(t, len(d.asked), 1)
	})

	t.Run("a missing permission for the namespace does not matter", func(t *testing.T) {
		d := newFakeServer(t)
		d.open()
		d.answers["GetNamespace"] = func(proto.Message) (proto.Message, error) {
			return nil, status.Error(codes.PermissionDenied, "no")
		}
		w := d.worker()
		Handle(w, "order", order)
		out, err := checked(t, d, w)
		equal(t, fmt.Sprint(out, err),
			"checked 0 open runs of 1 workflow types in namespace shop: 0 diverge, 0 came to no end\n<nil>")
	})

	t.Run("a run that moves while it is read is looked at again", func(t *testing.T) {
		d := newFakeServer(t)
		r := recorded(pending, "1", done("a", "2"), slept("night"), done("b", "3"))
		d.open(r)
		whole := d.answers["ListSteps"]
		d.answers["ListSteps"] = func(m proto.Message) (proto.Message, error) {
			if n := len(d.asked); n < 4 { // the first step is missing, the last one is there: no snapshot
				if n == 3 {
					return &kagziv1.ListStepsResponse{Steps: r.steps[2:]}, nil
				}
			}
			return whole(m)
		}
		w := d.worker()
		Handle(w, "order", order)
		if out, err := checked(t, d, w); err != nil {
			t.Fatalf("%v\n%s", err, out)
		}
		equal(t, d.asks("GetWorkflow"), 2)
	})

	t.Run("a divergence needs two equal reads, five at most", func(t *testing.T) {
		d := newFakeServer(t)
		r := recorded(pending, "1", done("x", "2"))
		d.open(r)
		w := d.worker()
		Handle(w, "order", order)
		if _, err := checked(t, d, w); err == nil {
			t.Fatal("not found")
		}
		equal(t, d.asks("GetWorkflow"), 2)
		d.answers["GetWorkflow"] = func(proto.Message) (proto.Message, error) {
			r.steps[0].AttemptNumber++ // changes for ever
			return &kagziv1.GetWorkflowResponse{Workflow: r.run}, nil
		}
		if _, err := checked(t, d, w); err == nil {
			t.Fatal("not found")
		}
		equal(t, d.asks("GetWorkflow"), 2+checkLooks)
	})

	t.Run("runs that end or go meanwhile do not count", func(t *testing.T) {
		d := newFakeServer(t)
		r := recorded(pending, "1", done("x", "2"))
		d.open(r, r, r)
		ended := proto.Clone(r.run).(*kagziv1.Workflow)
		ended.Status = completed
		gets := 0
		d.answers["GetWorkflow"] = func(proto.Message) (proto.Message, error) {
			gets++
			switch gets {
			case 1:
				return nil, status.Error(codes.NotFound, "gone")
			case 2:
				return &kagziv1.GetWorkflowResponse{Workflow: ended}, nil
			}
			return &kagziv1.GetWorkflowResponse{Workflow: r.run}, nil
		}
		d.answers["ListSteps"] = func(proto.Message) (proto.Message, error) {
			if gets == 3 {
				return nil, status.Error(codes.NotFound, "gone")
			}
			return &kagziv1.ListStepsResponse{}, nil
		}
		w := d.worker()
		Handle(w, "order", order)
		out, err := checked(t, d, w)
		if err != nil {
			t.Fatal(err)
		}
		equal(t, out, "checked 0 open runs of 1 workflow types in namespace shop: 0 diverge, 0 came to no end\n")
	})

	t.Run("a server that refuses is an error, and no verdict", func(t *testing.T) {
		for _, method := range []string{"ListWorkflows", "GetWorkflow", "ListSteps"} {
			d := newFakeServer(t)
			d.open(recorded(pending, "1"))
			d.answers[method] = func(proto.Message) (proto.Message, error) {
				return nil, status.Error(codes.PermissionDenied, "no")
			}
			w := d.worker()
			Handle(w, "order", order)
			out, err := checked(t, d, w)
			equal(t, fmt.Sprint(out, err), "kagzi: UNAUTHORIZED: no")
		}
	})

	t.Run("code that does not finish is reported and skipped", func(t *testing.T) {
		synctest.Test(t, func(t *testing.T) {
			d := newFakeServer(t)
			d.open(called(recorded(pending, "1"), "r1", "stuck"), called(recorded(pending, "1"), "r2", "order"))
			w := d.worker()
			Handle(w, "order", order)
			Handle(w, "stuck", func(ctx Context, _ int) (int, error) { <-ctx.Done(); return 0, nil })
			out, err := checked(t, d, w)
			equal(t, out, "run r1: kagzi: run r1 of type stuck: the code came to no end: context deadline exceeded\n"+
				"checked 2 open runs of 2 workflow types in namespace shop: 0 diverge, 1 came to no end\n")
			equal(t, fmt.Sprint(err), "kagzi: check: 0 of 2 open runs diverge, 1 came to no end")
		})
	})

	t.Run("ends with its context", func(t *testing.T) {
		synctest.Test(t, func(t *testing.T) {
			d := newFakeServer(t)
			d.open(called(recorded(pending, "1"), "r1", "stuck"))
			w := d.worker()
			Handle(w, "stuck", func(ctx Context, _ int) (int, error) { <-ctx.Done(); return 0, nil })
			ctx, cancel := context.WithTimeout(t.Context(), time.Second)
			defer cancel()
			if err := w.check(ctx, new(bytes.Buffer)); !errors.Is(err, context.DeadlineExceeded) {
				t.Fatalf("err = %v", err)
			}
		})
	})

	t.Run("what cannot be printed is an error", func(t *testing.T) {
		d := newFakeServer(t)
		d.open()
		w := d.worker()
		Handle(w, "order", order)
		full := errors.New("disk full")
		if err := w.check(t.Context(), failingWriter{full}); !errors.Is(err, full) {
			t.Fatalf("err = %v", err)
		}
	})

	t.Run("one exact argument asks for it, and main does not see it", func(t *testing.T) {
		for _, c := range []struct {
			arguments, rest []string
			asked           bool
		}{
			{[]string{"worker"}, []string{"worker"}, false},
			{[]string{"worker", "-kagzi-check"}, []string{"worker"}, true},
			{[]string{"worker", "-kagzi-check", "-v", "--", "x", "-kagzi-check"},
				[]string{"worker", "-v", "--", "x"}, true},
			{[]string{"-kagzi-check"}, []string{"-kagzi-check"}, false},
			{[]string{"worker", "-kagzi-check=1"}, []string{"worker", "-kagzi-check=1"}, false},
			{nil, nil, false},
		} {
			given := slices.Clone(c.arguments)
			rest, asked := withoutCheck(given)
			equal(t, fmt.Sprint(rest, asked, given), fmt.Sprint(c.rest, c.asked, c.arguments))
		}
	})

	t.Run("Run checks when the environment asks for it", func(t *testing.T) {
		t.Setenv(checkVariable, "1")
		d := newFakeServer(t)
		d.open(recorded(pending, "1", done("x", "2")))
		w := d.worker()
		Handle(w, "order", order)
		var e *CheckError
		if err := w.Run(t.Context()); !errors.As(err, &e) {
			t.Fatalf("err = %v", err)
		}
		equal(t, w.ID(), "")
	})
}

func TestRecordsOfAWorkerReplay(t *testing.T) {
	code := func(name string) func(Context, []int) (int, error) {
		return func(ctx Context, in []int) (int, error) {
			began := Now(ctx)
			got, err := Map(ctx, in, func(ctx Context, n int) (int, error) {
				Sleep(ctx, fmt.Sprint("pause-", n), time.Duration(n)*time.Minute)
				return Step(ctx, fmt.Sprint(name, n), func(ctx context.Context) (int, error) {
					if n == 2 && Attempt(ctx) < 3 {
						return 0, errors.New("busy")
					}
					return n, nil
				}, Retry{Attempts: 5, Initial: time.Hour, Jitter: -1})
			})
			if err != nil {
				return 0, err
			}
			_, _ = Step(ctx, "breaks", func(context.Context) (int, error) { return 0, NonRetryable(errors.New("no")) })
			SleepUntil(ctx, "day", began.Add(24*time.Hour))
			return len(got) + Random(ctx).IntN(10), nil
		}
	}
	withFake(t, func(t *testing.T, f *fake) {
		w := testWorker(f)
		Handle(w, "w", code("work-"))
		running(t, w)
		f.start("r", "w", "[1,2,3]")
		places := 0
		for ended := false; !ended; places++ {
			f.mu.Lock()
			r := proto.Clone(&f.runs["r"].Workflow).(*kagziv1.Workflow)
			var steps []*kagziv1.Step
			for _, s := range f.runs["r"].steps {
				steps = append(steps, proto.Clone(s).(*kagziv1.Step))
			}
			f.mu.Unlock()
			ended = statusOf(r).Ended()
			shadow := NewWorker(WorkerOptions{Logger: slog.New(slog.DiscardHandler)})
			if err := replayRecord(t.Context(), shadow, typed(shadow, "w", code("work-")),
				newRecord(r, steps)); err != nil {
				t.Fatalf("after %d steps, %s: %v", len(steps), r.Status, err)
			}
			err := replayRecord(t.Context(), shadow, typed(shadow, "w", code("task-")), newRecord(r, steps))
			var d *Divergence
			if found, should := errors.As(err, &d), len(steps) > 4; found != should {
				t.Fatalf("after %d steps: changed code: %v", len(steps), err)
			}
			<-time.After(10 * time.Minute) // of bubble time
			synctest.Wait()
		}
		if places < 20 {
			t.Fatalf("replayed at %d places only", places)
		}
	})
}
