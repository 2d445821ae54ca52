package kagzi

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"sync"
	"testing"

	kagziv1 "github.com/kagzi/kagzi/proto/kagzi/v1"
	"google.golang.org/grpc/metadata"
)

// noted collects what interceptors and code do.
type noted struct {
	mu   sync.Mutex
	what []string
}

func (n *noted) add(format string, args ...any) {
	n.mu.Lock()
	defer n.mu.Unlock()
	n.what = append(n.what, fmt.Sprintf(format, args...))
}

// interceptor returns an interceptor that notes its name around everything.
func (n *noted) interceptor(name string) WorkerInterceptor {
	return WorkerInterceptor{
		Run: func(ctx Context, a Activation, next func(Context) error) error {
			n.add("%s run %s replays=%t check=%t", name, a.Info.RunID, a.Replays, a.Check)
			err := next(ctx)
			n.add("%s returned %v", name, err)
			return err
		},
		Step: func(ctx context.Context, s StepAttempt, next func(context.Context) error) error {
			n.add("%s step %s/%s %d", name, s.Info.RunID, s.Name, s.Attempt)
			err := next(ctx)
			n.add("%s did %s: %v", name, s.Name, err)
			return err
		},
	}
}

// intercepted runs a workflow within interceptors.
func intercepted[Out any](t *testing.T, code func(Context, struct{}) (Out, error),
	around ...WorkerInterceptor) (r *fakeRun) {
	t.Helper()
	withFake(t, func(t *testing.T, f *fake) {
		w := testWorker(f)
		w.options.Interceptors = around
		Handle(w, "w", code)
		running(t, w)
		f.start("r", "w", "")
		r = f.await(t, "r")
	})
	return r
}

func TestWorkerInterceptors(t *testing.T) {
	t.Run("wrap runs in each activation and steps only when they run", func(t *testing.T) {
		var n noted
		intercepted(t, func(ctx Context, _ struct{}) (int, error) {
			_, err := Step(ctx, "a", func(ctx context.Context) (int, error) {
				n.add("code %d", Attempt(ctx))
				if Attempt(ctx) == 1 {
					return 0, errors.New("busy")
				}
				return 1, nil
			})
			return 2, err
		}, n.interceptor("x"), n.interceptor("y"))
		equal(t, n.what, []string{
			"x run r replays=false check=false", "y run r replays=false check=false",
			"x step r/a 1", "y step r/a 1", "code 1", "y did a: busy", "x did a: busy",
			"x run r replays=true check=false", "y run r replays=true check=false",
			"x step r/a 2", "y step r/a 2", "code 2", "y did a: <nil>", "x did a: <nil>",
			"y returned <nil>", "x returned <nil>"})
	})

	t.Run("give steps values and errors, and make calls", func(t *testing.T) {
		type key struct{}
		r := intercepted(t, func(ctx Context, _ struct{}) (string, error) {
			_, err := Step(ctx, "fails", func(context.Context) (int, error) { return 0, errors.New("no") })
			if failed, ok := errors.AsType[*StepError](err); !ok || failed.Type != "wrapped" || failed.Attempts != 1 {
				t.Errorf("step failed with %+v", err)
			}
			return Step(ctx, "tells", func(ctx context.Context) (string, error) { return ctx.Value(key{}).(string), nil })
		}, WorkerInterceptor{
			Run: func(ctx Context, _ Activation, next func(Context) error) error {
				return errors.Join(Do(ctx, "before", func(context.Context) error { return nil }), next(ctx))
			},
			Step: func(ctx context.Context, _ StepAttempt, next func(context.Context) error) error {
				if err := next(context.WithValue(ctx, key{}, "told")); err != nil {
					return NonRetryable(WithType(err, "wrapped"))
				}
				return nil
			}})
		if string(r.Output.GetData()) != `"told"` || r.steps[0].Name != "before" {
			t.Fatalf("output %s, steps %v", r.Output.GetData(), r.steps)
		}
	})

	t.Run("continue as new through", func(t *testing.T) {
		r := intercepted(t, func(ctx Context, _ struct{}) (int, error) {
			if Info(ctx).RunID != "r" {
				return 1, nil
			}
			return ContinueAsNew[int](ctx, struct{}{})
		},
			WorkerInterceptor{Run: func(ctx Context, _ Activation, next func(Context) error) error {
				if err := next(ctx); err != nil {
					return fmt.Errorf("wrapped: %w", err)
				}
				return nil
			}})
		if r.ContinuedAsRunId == nil || r.Error != nil {
			t.Fatalf("run %v did not continue", &r.Workflow)
		}
	})

	for _, c := range []struct {
		name   string
		around func(next func() error) error
		want   string
	}{
		{"that hide an error leave it", func(next func() error) error { _ = next(); return nil }, "broken"},
		{"that do not call next fail", func(func() error) error { return nil }, "without calling next"},
		{"that call next twice fail", func(next func() error) error { return errors.Join(next(), next()) }, "twice"},
		{"that refuse are obeyed", func(func() error) error { return errors.New("not on Sundays") }, "not on Sundays"},
	} {
		code := func(context.Context) (int, error) { return 0, NonRetryable(errors.New("broken")) }
		t.Run("of runs "+c.name, func(t *testing.T) {
			r := intercepted(t, func(ctx Context, _ struct{}) (int, error) { return code(ctx) },
				WorkerInterceptor{Run: func(ctx Context, _ Activation, next func(Context) error) error {
					return c.around(func() error { return next(ctx) })
				}})
			contains(t, r.Error.GetMessage(), c.want)
		})
		t.Run("of steps "+c.name, func(t *testing.T) {
			r := intercepted(t, func(ctx Context, _ struct{}) (int, error) { return Step(ctx, "s", code, Retry{Attempts: 1}) },
				WorkerInterceptor{
					Step: func(ctx context.Context, _ StepAttempt, next func(context.Context) error) error {
						return c.around(func() error { return next(ctx) })
					},
				})
			contains(t, r.Error.GetMessage(), c.want)
		})
	}

	t.Run("run no step in a check, and are told of it", func(t *testing.T) {
		var n noted
		code := func(ctx Context, _ struct{}) (int, error) { return Step(ctx, "a", constant(1)) }
		r := intercepted(t, code)
		w := NewWorker(WorkerOptions{Interceptors: []WorkerInterceptor{n.interceptor("x")}})
		if err := replayRecord(t.Context(), w, typed(w, "w", code), newRecord(&r.Workflow, r.steps)); err != nil {
			t.Fatal(err)
		}
		equal(t, n.what, []string{"x run r replays=true check=true", "x returned <nil>"})
	})
}

func TestClientInterceptors(t *testing.T) {
	client := func(t *testing.T, around ...ClientInterceptor) (*fakeServer, *Client) {
		d := newFakeServer(t)
		d.on("StartWorkflow", &kagziv1.StartWorkflowResponse{RunId: "r"})
		d.on("StartWorkflows", &kagziv1.StartWorkflowsResponse{Results: []*kagziv1.StartWorkflowsResponse_Result{
			{Started: &kagziv1.StartWorkflowResponse{RunId: "r"}}}})
		d.on("WaitWorkflow", &kagziv1.WaitWorkflowResponse{Finished: true, Workflow: &kagziv1.Workflow{
			RunId: "r", Status: kagziv1.WorkflowStatus_WORKFLOW_STATUS_COMPLETED, Output: jsonPayload("1")}})
		d.on("PauseWorkflowSchedule", &kagziv1.PauseWorkflowScheduleResponse{})
		c, err := NewClient(ClientOptions{Address: "passthrough:///door", DialOptions: d.dial(), Namespace: "shop",
			Interceptors: around})
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { _ = c.Close() })
		return d, c
	}

	t.Run("wrap each call once, the first outermost", func(t *testing.T) {
		var n noted
		notes := func(name string) ClientInterceptor {
			return func(ctx context.Context, call ClientCall, next func(context.Context) error) error {
				n.add("%s %s %s %s", name, call.Method, call.RunID, call.WorkflowType)
				err := next(ctx)
				n.add("%s %T", name, err)
				return err
			}
		}
		_, c := client(t, notes("x"), notes("y"))
		run, err := Start(t.Context(), c, "w", 1, StartOptions{})
		if err != nil {
			t.Fatal(err)
		}
		if _, err := Result[int](t.Context(), run); err != nil {
			t.Fatal(err)
		}
		if _, err := StartMany(t.Context(), c, "w", []int{1}, StartOptions{}); err != nil {
			t.Fatal(err)
		}
		if err := c.Schedule("s").Pause(t.Context(), ""); err != nil {
			t.Fatal(err)
		}
		err = run.Terminate(t.Context(), "") // the server has no answer
		if e, ok := errors.AsType[*Error](err); !ok || e.Code != CodeInternal {
			t.Fatalf("Terminate = %v", err)
		}
		if err := run.Export(t.Context(), &strings.Builder{}, ExportOptions{}); err != nil {
			t.Fatal(err)
		}
		want := []string{}
		for _, call := range []string{"StartWorkflow  w", "WaitWorkflow r ", "StartWorkflows  ", "PauseWorkflowSchedule  ",
			"TerminateWorkflow r ", "ExportWorkflow r "} {
			result := "<nil>"
			if strings.HasPrefix(call, "Terminate") {
				result = "*kagzi.Error"
			}
			want = append(want, "x "+call, "y "+call, "y "+result, "x "+result)
		}
		equal(t, n.what, want)
	})

	t.Run("add metadata, also to starts", func(t *testing.T) {
		d, c := client(t, func(ctx context.Context, _ ClientCall, next func(context.Context) error) error {
			return next(metadata.AppendToOutgoingContext(ctx, "tenant", "acme"))
		})
		var together sync.WaitGroup
		for range 20 {
			together.Go(func() {
				if _, err := Start(t.Context(), c, "w", 1, StartOptions{}); err != nil {
					t.Error(err)
				}
			})
		}
		together.Wait()
		if len(d.asked) != 20 {
			t.Fatalf("%d requests, want each start alone", len(d.asked))
		}
		for _, md := range d.metadata {
			equal(t, md.Get("tenant"), []string{"acme"})
		}
	})

	t.Run("refuse calls with errors of their own", func(t *testing.T) {
		refusal := errors.New("no tenant")
		d, c := client(t, func(context.Context, ClientCall, func(context.Context) error) error { return refusal })
		_, started := Start(t.Context(), c, "w", 1, StartOptions{})
		_, waited := c.Run("r").Wait(t.Context())
		for _, err := range []error{started, waited, c.Schedule("s").Pause(t.Context(), "")} {
			if !errors.Is(err, refusal) {
				t.Fatalf("error %v, want the interceptor's", err)
			}
		}
		if len(d.asked) > 0 {
			t.Fatalf("the server was asked: %v", d.asked)
		}
	})
}
