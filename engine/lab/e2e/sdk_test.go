package e2e

import (
	"context"
	"errors"
	"fmt"
	"os"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/kagzi/kagzi/engine/lab/long"
	kagziv1 "github.com/kagzi/kagzi/proto/kagzi/v1"
	kagzi "github.com/kagzi/kagzi/sdk"
)

// client returns an SDK client of the server.
func (s *Server) client(t testing.TB) *kagzi.Client {
	t.Helper()
	c, err := kagzi.NewClient(kagzi.ClientOptions{Address: s.Address, Logger: quiet})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { c.Close() })
	return c
}

// work runs an SDK worker until the end of the test, or until stop.
func (s *Server) work(t testing.TB, options kagzi.WorkerOptions, handle func(*kagzi.Worker)) (w *kagzi.Worker,
	stop func()) {
	t.Helper()
	options.Address, options.Logger, options.HandleSignals = s.Address, quiet, []os.Signal{}
	if options.DrainTimeout == 0 {
		options.DrainTimeout = 2 * time.Second
	}
	w = kagzi.NewWorker(options)
	handle(w)
	ctx, cancel := context.WithCancel(context.Background())
	done := make(chan error, 1)
	go func() { done <- w.Run(ctx) }()
	stop = sync.OnceFunc(func() {
		cancel()
		if err := receive(t, "the end of the worker", done); err != nil {
			t.Logf("the worker ended: %v", err)
		}
	})
	t.Cleanup(stop)
	receiveClosed(t, "the worker's registration", w.Ready())
	return w, stop
}

func receiveClosed(t testing.TB, what string, c <-chan struct{}) {
	t.Helper()
	select {
	case <-c:
	case <-time.After(30 * time.Second):
		t.Fatalf("%s does not come", what)
	}
}

func TestARunLivesByTheSDK(t *testing.T) {
	eachServer(t, jumpy, func(t *testing.T, s *Server) {
		var tries atomic.Int32
		s.work(t, kagzi.WorkerOptions{}, func(w *kagzi.Worker) {
			kagzi.Handle(w, "order", func(ctx kagzi.Context, name string) (string, error) {
				greeting, err := kagzi.Step(ctx, "greet", func(context.Context) (string, error) {
					return "hello, " + name, nil
				})
				if err != nil {
					return "", err
				}
				kagzi.Sleep(ctx, "nap", 30*time.Millisecond)
				loud, err := kagzi.Step(ctx, "shout", func(context.Context) (string, error) {
					if tries.Add(1) < 3 {
						return "", errors.New("not yet")
					}
					return greeting + "!", nil
				}, kagzi.Retry{Initial: 10 * time.Millisecond, Jitter: -1})
				if err != nil {
					return "", err
				}
				parts, err := kagzi.Map(ctx, []int{1, 2, 3}, func(ctx kagzi.Context, n int) (int, error) {
					return kagzi.Step(ctx, fmt.Sprintf("square-%d", n), func(context.Context) (int, error) {
						return n * n, nil
					})
				})
				return fmt.Sprint(loud, parts), err
			})
			kagzi.Handle(w, "doomed", func(ctx kagzi.Context, _ int) (int, error) {
				return kagzi.Step(ctx, "fail", func(context.Context) (int, error) {
					return 0, kagzi.NonRetryable(errors.New("no such card"))
				})
			})
			kagzi.Handle(w, "panics", func(kagzi.Context, int) (int, error) { panic("oh dear") })
		})
		ctx, c := within(t, time.Minute), s.client(t)
		run, err := kagzi.Start(ctx, c, "order", "tester", kagzi.StartOptions{})
		if err != nil {
			t.Fatal(err)
		}
		if got, err := kagzi.Result[string](ctx, run); err != nil || got != "hello, tester![1 4 9]" {
			t.Errorf("result = %q, %v", got, err)
		}
		if tries.Load() != 3 {
			t.Errorf("the step that recovers ran %d times, want 3", tries.Load())
		}
		if w := s.get(t, run.ID()); w.StepCount != 6 || w.Attempts != 1 || w.GetStepRetries() != 2 {
			t.Errorf("the run has %d steps, is at attempt %d and retried %d steps, want 6, 1, 2", w.StepCount,
				w.Attempts, w.GetStepRetries())
		}
		for kind, want := range map[string]string{"doomed": "no such card", "panics": "oh dear"} {
			run, err := kagzi.Start(ctx, c, kind, 1, kagzi.StartOptions{})
			if err != nil {
				t.Fatal(err)
			}
			_, err = kagzi.Result[int](ctx, run)
			var ended *kagzi.RunError
			if !errors.As(err, &ended) {
				t.Errorf("%s: %v, want a RunError", kind, err)
			}
			if w := s.get(t, run.ID()); w.Status != failed || w.Error.GetMessage() == "" || !hasText(w.Error, want) {
				t.Errorf("%s ended as %s: %v, want FAILED with %q", kind, w.Status, w.Error, want)
			}
		}
	})
}

func hasText(e *kagziv1.ErrorDetail, want string) bool {
	return e != nil && (strings.Contains(e.Message, want) || strings.Contains(e.Stack, want))
}

func TestCancelEndsTheContextOfTheRunningStep(t *testing.T) {
	eachServer(t, patient, func(t *testing.T, s *Server) {
		began, ended, cause := make(chan struct{}), make(chan time.Time, 1), make(chan error, 1)
		s.work(t, kagzi.WorkerOptions{}, func(w *kagzi.Worker) {
			kagzi.Handle(w, "long", func(ctx kagzi.Context, _ int) (int, error) {
				return kagzi.Step(ctx, "wait", func(ctx context.Context) (int, error) {
					close(began)
					<-ctx.Done()
					ended <- time.Now()
					cause <- context.Cause(ctx)
					return 0, ctx.Err()
				})
			})
		})
		ctx, c := within(t, time.Minute), s.client(t)
		run, err := kagzi.Start(ctx, c, "long", 0, kagzi.StartOptions{})
		if err != nil {
			t.Fatal(err)
		}
		receiveClosed(t, "the step", began)
		asked := time.Now()
		if err := run.Cancel(ctx, "enough"); err != nil {
			t.Fatal(err)
		}
		if took := receive(t, "the end of the step", ended).Sub(asked); took > promptly {
			t.Errorf("the step was told after %s", took)
		}
		if err := receive(t, "the cause", cause); !errors.Is(err, kagzi.ErrCancelled) {
			t.Errorf("cause = %v, want ErrCancelled", err)
		}
		if w := s.await(t, run.ID()); w.Status != cancelled {
			t.Errorf("the run is %s", w.Status)
		}
	})
}

func TestARunThatAStepStartsNamesItsParentAndIsNoChild(t *testing.T) {
	eachServer(t, patient, func(t *testing.T, s *Server) {
		ctx := within(t, time.Minute)
		c := s.client(t)
		s.work(t, kagzi.WorkerOptions{}, func(w *kagzi.Worker) {
			kagzi.Handle(w, "parent", func(ctx kagzi.Context, _ string) (string, error) {
				id, err := kagzi.Step(ctx, "kick-off", func(ctx context.Context) (string, error) {
					run, err := kagzi.Start(ctx, c, "other", "", kagzi.StartOptions{Queue: "nobody"})
					if err == nil && kagzi.Attempt(ctx) == 1 {
						return "", errors.New("started, and then failed")
					}
					return run.ID(), err
				}, kagzi.Retry{Attempts: 2, Initial: time.Millisecond})
				return id, err
			})
		})
		run, err := kagzi.Start(ctx, c, "parent", "", kagzi.StartOptions{})
		if err != nil {
			t.Fatal(err)
		}
		id, err := kagzi.Result[string](ctx, run)
		if err != nil {
			t.Fatal(err)
		}
		attempts := map[string]bool{}
		for _, step := range s.steps(t, run.ID()) {
			if step.ChildRunId != nil || step.Kind != kagziv1.StepKind_STEP_KIND_FUNCTION {
				t.Errorf("the step is %v, want a plain one", step)
			}
			attempts[step.StepId] = true
		}
		list := s.find(t, &kagziv1.ListWorkflowsRequest{ParentRunId: new(run.ID())})
		if len(list) != 2 || list[0].RunId != id || len(attempts) != 2 {
			t.Fatalf("the children are %v and the attempts %v, want two runs of two attempts", list, attempts)
		}
		for _, r := range list {
			if !attempts[r.GetParentStepId()] || r.ParentClosePolicy != 0 || r.Status != pending {
				t.Errorf("the run is %v, want it open and started by one of %v", r, attempts)
			}
			delete(attempts, r.GetParentStepId())
		}
	})
}

func TestAStepThatRunsForLongIsSeen(t *testing.T) {
	eachServer(t, Options{}, func(t *testing.T, s *Server) {
		release := make(chan struct{})
		s.work(t, kagzi.WorkerOptions{}, func(w *kagzi.Worker) {
			kagzi.Handle(w, "long", func(ctx kagzi.Context, _ int) (int, error) {
				return kagzi.Step(ctx, "wait", func(context.Context) (int, error) { <-release; return 7, nil })
			})
		})
		ctx := within(t, time.Minute)
		run, err := kagzi.Start(ctx, s.client(t), "long", 0, kagzi.StartOptions{})
		if err != nil {
			t.Fatal(err)
		}
		s.until(t, run.ID(), "in its step", func(_ *kagziv1.Workflow, steps map[string]*kagziv1.Step) bool {
			return steps["wait"].GetStatus() == kagziv1.StepStatus_STEP_STATUS_RUNNING
		})
		close(release)
		if got, err := kagzi.Result[int](ctx, run); err != nil || got != 7 {
			t.Errorf("result = %d, %v", got, err)
		}
	})
}

func TestADrainedWorkerFinishesWhatItHoldsAndLeaves(t *testing.T) {
	eachServer(t, patient, func(t *testing.T, s *Server) {
		began, release := make(chan struct{}), make(chan struct{})
		options := kagzi.WorkerOptions{Address: s.Address, Logger: quiet, HandleSignals: []os.Signal{},
			DrainTimeout: 20 * time.Second}
		w := kagzi.NewWorker(options)
		kagzi.Handle(w, "long", func(ctx kagzi.Context, _ int) (int, error) {
			return kagzi.Step(ctx, "wait", func(context.Context) (int, error) {
				close(began)
				<-release
				return 7, nil
			})
		})
		done := make(chan error, 1)
		go func() { done <- w.Run(context.Background()) }()
		ctx, c := within(t, time.Minute), s.client(t)
		run, err := kagzi.Start(ctx, c, "long", 0, kagzi.StartOptions{})
		if err != nil {
			t.Fatal(err)
		}
		receiveClosed(t, "the step", began)
		if err := drain(t, s, w.ID()); err != nil {
			t.Fatal(err)
		}
		late, err := kagzi.Start(ctx, c, "long", 0, kagzi.StartOptions{})
		if err != nil {
			t.Fatal(err)
		}
		close(release)
		if err := receive(t, "the end of the worker", done); err != nil {
			t.Errorf("the drained worker ended with %v", err)
		}
		if got, err := kagzi.Result[int](ctx, run); err != nil || got != 7 {
			t.Errorf("result = %d, %v", got, err)
		}
		if got := s.get(t, late.ID()); got.Status != pending {
			t.Errorf("a run that came while draining is %s", got.Status)
		}
		worker, err := s.admin().GetWorker(ctx, &kagziv1.GetWorkerRequest{WorkerId: w.ID()})
		if err != nil || worker.Worker.Status != kagziv1.WorkerStatus_WORKER_STATUS_OFFLINE {
			t.Errorf("the drained worker is %v, %v", worker, err)
		}
	})
}

// The best of several tries counts: other work on the machine can slow any one of them.
func TestManyStepsOfTheSDKReplaySoonerThanTheyRan(t *testing.T) {
	if slowness > 1 {
		t.Skip("a measurement means nothing under the race detector")
	}
	eachServer(t, jumpy, func(t *testing.T, s *Server) {
		const tries = 5
		steps := long.Count(2_499, 9_999) // and a sleep
		var ran atomic.Int32
		var slept, woke atomic.Int64
		s.work(t, kagzi.WorkerOptions{}, func(w *kagzi.Worker) {
			kagzi.Handle(w, "many", func(ctx kagzi.Context, _ int) (int, error) {
				sum := 0
				for start := 0; start < steps; start += 101 {
					batch := make([]int, 0, 101)
					for i := start; i < min(start+101, steps); i++ {
						batch = append(batch, i)
					}
					squares, err := kagzi.Map(ctx, batch, func(ctx kagzi.Context, i int) (int, error) {
						return kagzi.Step(ctx, fmt.Sprintf("step-%d", i), func(context.Context) (int, error) {
							ran.Add(1)
							return i, nil
						})
					})
					if err != nil {
						return 0, err
					}
					for _, n := range squares {
						sum += n
					}
				}
				slept.CompareAndSwap(0, time.Now().UnixNano())
				kagzi.Sleep(ctx, "nap", time.Millisecond)
				woke.Store(time.Now().UnixNano())
				return sum, nil
			})
		})
		ctx, client := within(t, 3*time.Minute), s.client(t)
		for try := 1; ; try++ {
			ran.Store(0)
			slept.Store(0)
			begun := time.Now()
			run, err := kagzi.Start(ctx, client, "many", 0, kagzi.StartOptions{})
			if err != nil {
				t.Fatal(err)
			}
			if got, err := kagzi.Result[int](ctx, run); err != nil || got != steps*(steps-1)/2 {
				t.Fatalf("result = %d, %v", got, err)
			}
			if ran.Load() != int32(steps) {
				t.Fatalf("%d steps ran, want %d: each once", ran.Load(), steps)
			}
			list, err := s.admin().ListSteps(ctx, &kagziv1.ListStepsRequest{RunId: run.ID(), StepName: ptr("nap")})
			if err != nil || len(list.Steps) != 1 {
				t.Fatalf("steps: %v, %v", list, err)
			}
			first, again := time.Unix(0, slept.Load()).Sub(begun),
				time.Unix(0, woke.Load()).Sub(list.Steps[0].WakeUpAt.AsTime())
			t.Logf("%d steps ran in %s, and their replay took %s", steps, first, again)
			if again < first {
				return
			}
			if try == tries {
				t.Fatal("the replay took longer than the steps themselves, each time")
			}
		}
	})
}

func ptr[T any](v T) *T { return &v }

func TestRunsFinishOverARestartOfTheServer(t *testing.T) {
	eachBackend(t, func(t *testing.T, url string) {
		s := New(t, openStore(t, url), Options{})
		var mu sync.Mutex
		ran := map[string]int{}
		atWork, goOn := make(chan struct{}, 100), make(chan struct{})
		flow := func(ctx kagzi.Context, n int) (int, error) {
			for i := range 3 {
				key := fmt.Sprintf("%d/%d", n, i)
				if _, err := kagzi.Step(ctx, fmt.Sprintf("s%d", i), func(context.Context) (int, error) {
					mu.Lock()
					ran[key]++
					mu.Unlock()
					if i == 1 {
						atWork <- struct{}{}
						<-goOn
					}
					return i, nil
				}); err != nil {
					return 0, err
				}
			}
			return n, nil
		}
		for range 2 {
			s.work(t, kagzi.WorkerOptions{MaxConcurrent: 10}, func(w *kagzi.Worker) { kagzi.Handle(w, "flow", flow) })
		}
		c := s.client(t)
		ctx := within(t, time.Minute)
		const runs = 10
		handles, err := kagzi.StartMany(ctx, c, "flow", []int{0, 1, 2, 3, 4, 5, 6, 7, 8, 9}, kagzi.StartOptions{})
		if err != nil {
			t.Fatal(err)
		}
		for range runs {
			receive(t, "a run in its second step", atWork)
		}
		s.Stop()
		close(goOn) // the steps end while there is no server
		s = New(t, openStore(t, url), Options{Address: s.Address})
		for i, run := range handles {
			if got, err := kagzi.Result[int](ctx, run); err != nil || got != i {
				t.Errorf("run %d: %d, %v", i, got, err)
			}
		}
		for i := range runs {
			if n := ran[fmt.Sprintf("%d/0", i)]; n != 1 {
				t.Errorf("the first step of run %d, recorded before the restart, ran %d times", i, n)
			}
			if got := s.get(t, handles[i].ID()); got.LeaseLosses != 0 || got.Attempts != 1 {
				t.Errorf("run %d is %v, want nothing counted for the restart", i, got)
			}
		}
	})
}
