package kagzitest

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	kagzi "github.com/kagzi/kagzi/sdk"
	"github.com/kagzi/kagzi/sdk/internal/seam"
)

// encrypting runs test on the real engine, with a client and a worker that encrypt. start starts
// the worker.
func encrypting(t *testing.T, test func(t *testing.T, c *kagzi.Client, w *kagzi.Worker, start func())) {
	t.Helper()
	codec := aesCodec(t)
	Run(t, func(t *testing.T, env *Env) {
		c, err := kagzi.NewClient(kagzi.ClientOptions{
			Profile: kagzi.NoProfile, Address: "passthrough:///kagzitest", Codec: codec, DialOptions: env.dialOptions(),
		})
		if err != nil {
			t.Fatal(err)
		}
		defer c.Close()
		seam.AwaitEnds(c, env.ends.await)
		w := kagzi.NewWorker(kagzi.WorkerOptions{
			Profile: kagzi.NoProfile, Address: "passthrough:///kagzitest", Codec: codec, DialOptions: env.dialOptions(),
			HandleSignals: []os.Signal{}, Logger: slog.New(slog.DiscardHandler),
		})
		test(t, c, w, func() {
			env.part(w.Run)
			<-w.Ready()
		})
	})
}

func aesCodec(t *testing.T) kagzi.Codec {
	t.Helper()
	codec, err := kagzi.NewAESCodec(kagzi.AESOptions{
		Keys: map[string][]byte{"k": bytes.Repeat([]byte{7}, 32)}, Current: "k"})
	if err != nil {
		t.Fatal(err)
	}
	return codec
}

func result[T comparable](t *testing.T, run *kagzi.Run, want T) {
	t.Helper()
	got, err := kagzi.Result[T](t.Context(), run)
	if err != nil || got != want {
		t.Fatalf("Result = %v, %v, want %v", got, err, want)
	}
}

func TestEncryptedPayloads(t *testing.T) {
	t.Run("survive a retry with signals, children and random numbers", func(t *testing.T) {
		encrypting(t, func(t *testing.T, c *kagzi.Client, w *kagzi.Worker, start func()) {
			broken := true
			var drawn []string
			kagzi.Handle(w, "ship", func(_ kagzi.Context, in string) (string, error) { return in + " shipped", nil })
			kagzi.Handle(w, "order", func(ctx kagzi.Context, in string) (string, error) {
				drawn = append(drawn, kagzi.NewUUID(ctx).String())
				charge, err := kagzi.Step(ctx, "charge", func(context.Context) (string, error) {
					return in + " charged", nil
				})
				if err != nil {
					return "", err
				}
				shipped, err := kagzi.RunChild[string](
					ctx, "ship", "ship", in, kagzi.ChildOptions{ExternalID: "parcel"})
				if err != nil {
					return "", err
				}
				first, err := kagzi.WaitSignal[string](ctx, "go", 0)
				if err != nil {
					return "", err
				}
				_, err = kagzi.Step(ctx, "fragile", func(context.Context) (int, error) {
					if broken {
						return 0, kagzi.NonRetryable(errors.New("broken"))
					}
					return 1, nil
				})
				if err != nil {
					return "", err
				}
				second, err := kagzi.WaitSignal[string](ctx, "go", 0)
				return fmt.Sprint(charge, ", ", shipped, ", ", first, ", ", second), err
			})
			start()
			run, err := kagzi.Start(t.Context(), c, "order", "lamp", kagzi.StartOptions{ExternalID: "order-1"})
			if err != nil {
				t.Fatal(err)
			}
			for _, r := range []*kagzi.Run{run, c.Run(run.ID())} {
				if err := kagzi.Signal(t.Context(), r, "go", "go", kagzi.SignalOptions{}); err != nil {
					t.Fatal(err)
				}
			}
			var failed *kagzi.RunError
			if _, err := kagzi.Result[string](t.Context(), run); !errors.As(err, &failed) ||
				failed.Message != "step fragile: broken" {
				t.Fatalf("Result = %v", err)
			}
			broken = false
			again, err := c.Run(run.ID()).Retry(t.Context(), kagzi.RetryOptions{})
			if err != nil {
				t.Fatal(err)
			}
			result(t, again, "lamp charged, lamp shipped, go, go")
			for _, id := range drawn {
				if id != drawn[0] {
					t.Errorf("drew %s, and %s before", id, drawn[0])
				}
			}
			d, err := again.Describe(t.Context())
			if err != nil {
				t.Fatal(err)
			}
			if in, err := kagzi.Input[string](d); in != "lamp" || err != nil {
				t.Errorf("Input = %q, %v", in, err)
			}
		})
	})

	t.Run(
		"signals can be read by continuations and restarts", func(t *testing.T) {
			encrypting(t, func(t *testing.T, c *kagzi.Client, w *kagzi.Worker, start func()) {
				type state struct{ Sum, Left int }
				broken := true
				kagzi.Handle(w, "adder", func(ctx kagzi.Context, in state) (int, error) {
					if in.Left == 0 {
						return in.Sum, nil
					}
					n, err := kagzi.WaitSignal[int](ctx, "add", 0)
					if err != nil {
						return 0, err
					}
					if n == 13 && broken {
						return 0, kagzi.NonRetryable(errors.New("unlucky"))
					}
					return kagzi.ContinueAsNew[int](ctx, state{in.Sum + n, in.Left - 1})
				})
				run, err := kagzi.Start(t.Context(), c, "adder", state{Left: 20}, kagzi.StartOptions{ExternalID: "sum"})
				if err != nil {
					t.Fatal(err)
				}
				for n := range 15 {
					if err := kagzi.Signal(t.Context(), run, "add", n, kagzi.SignalOptions{}); err != nil {
						t.Fatal(err)
					}
				}
				start()
				var failed *kagzi.RunError
				if _, err := kagzi.Result[int](t.Context(), run); !errors.As(err, &failed) ||
					failed.Message != "unlucky" {
					t.Fatalf("Result = %v", err)
				}
				broken = false
				again, err := c.Run(failed.RunID).Retry(
					t.Context(), kagzi.RetryOptions{Restart: true, Input: kagzi.InputOf(state{78, 7})})
				if err != nil {
					t.Fatal(err)
				}
				for n := 14; n < 20; n++ { // to the current continuation
					if err := kagzi.Signal(t.Context(), c.Run(again.ID()), "add", n+1,
						kagzi.SignalOptions{}); err != nil {
						t.Fatal(err)
					}
				}
				result(t, again, 78+14+15+16+17+18+19+20)
			})
		})

	t.Run("results, signals and inputs can be set by hand", func(t *testing.T) {
		encrypting(t, func(t *testing.T, c *kagzi.Client, w *kagzi.Worker, start func()) {
			kagzi.Handle(w, "ship", func(kagzi.Context, string) (string, error) { return "", errors.New("no ship") })
			kagzi.Handle(w, "order", func(ctx kagzi.Context, in string) (string, error) {
				charge, err := kagzi.Step(ctx, "charge", func(context.Context) (string, error) {
					return "", kagzi.NonRetryable(errors.New("no card"))
				})
				if in == "free" {
					charge, err = "nothing", nil
				}
				if err != nil {
					return "", err
				}
				approval, err := kagzi.WaitSignal[string](ctx, "approval", time.Hour)
				if err != nil {
					return "", err
				}
				shipped, err := kagzi.RunChild[string](ctx, "ship", "ship", in, kagzi.ChildOptions{})
				return charge + ", " + approval + ", " + shipped, err
			})
			start()
			run, err := kagzi.Start(t.Context(), c, "order", "lamp", kagzi.StartOptions{})
			if err != nil {
				t.Fatal(err)
			}
			for _, step := range []string{"charge", "approval", "ship"} {
				if _, err := run.Wait(t.Context()); err != nil {
					t.Fatal(err)
				}
				if err := kagzi.OverrideStep(t.Context(), run, step, step+" by hand", "a test"); err != nil {
					t.Fatal(err)
				}
				if run, err = run.Retry(t.Context(), kagzi.RetryOptions{}); err != nil {
					t.Fatal(err)
				}
			}
			result(t, run, "charge by hand, approval by hand, ship by hand")

			if run, err = kagzi.Start(t.Context(), c, "order", "lamp",
				kagzi.StartOptions{ExternalID: "order-2"}); err != nil {
				t.Fatal(err)
			}
			if _, err := run.Wait(t.Context()); err != nil {
				t.Fatal(err)
			}
			if run, err = run.Retry(t.Context(), kagzi.RetryOptions{
				Restart: true, Input: kagzi.InputOf("free")}); err != nil {
				t.Fatal(err)
			}
			if err := kagzi.Signal(t.Context(), run, "approval", "yes", kagzi.SignalOptions{}); err != nil {
				t.Fatal(err)
			}
			var failed *kagzi.RunError
			if _, err := kagzi.Result[string](t.Context(), run); !errors.As(err, &failed) ||
				!strings.HasSuffix(failed.Message, "no ship") {
				t.Fatalf("Result = %v", err)
			}
		})
	})

	t.Run("work with schedules, continuations and failure handlers", func(t *testing.T) {
		encrypting(t, func(t *testing.T, c *kagzi.Client, w *kagzi.Worker, start func()) {
			handled := make(chan string, 1)
			count := func(ctx kagzi.Context, in int) (int, error) {
				if in < 3 {
					return kagzi.ContinueAsNew[int](ctx, in+1)
				}
				return 0, fmt.Errorf("%s at %d", kagzi.Info(ctx).WorkflowType, in)
			}
			kagzi.Handle(w, "count", count)
			kagzi.Handle(w, "tally", count)
			kagzi.Handle(w, kagzi.GlobalFailureHandler,
				func(ctx kagzi.Context, event kagzi.WorkflowFailedEvent) (int, error) {
					in, err := kagzi.OriginalInput[int](ctx, event)
					handled <- fmt.Sprint(event.Error.Message, " ", in, err)
					return 0, nil
				})
			start()
			s, err := kagzi.CreateSchedule(t.Context(), c, "count", "0 0 1 1 *", 1, kagzi.ScheduleOptions{})
			if err != nil {
				t.Fatal(err)
			}
			trigger := func(want string) {
				t.Helper()
				if _, err := s.Trigger(t.Context(), kagzi.TriggerOptions{}); err != nil {
					t.Fatal(err)
				}
				if got := <-handled; got != want {
					t.Errorf("handled %q, want %q", got, want)
				}
			}
			trigger("count at 3 3 <nil>")
			for _, u := range []kagzi.ScheduleUpdate{
				{WorkflowType: new("tally")}, {Input: kagzi.InputOf(2)},
				{WorkflowType: new("tally"), Cron: new("0 0 2 1 *")}} {
				d, err := s.Update(t.Context(), u)
				if err != nil {
					t.Fatal(err)
				}
				if _, err := kagzi.ScheduleInput[int](d); err != nil {
					t.Fatal(err)
				}
				trigger("tally at 3 3 <nil>")
			}
		})
	})

	t.Run("results of children are those of their last runs",
		func(t *testing.T) {
			encrypting(t, func(t *testing.T, c *kagzi.Client, w *kagzi.Worker, start func()) {
				broken := true
				kagzi.Handle(w, "count", func(ctx kagzi.Context, in int) (string, error) {
					if in < 3 {
						return kagzi.ContinueAsNew[string](ctx, in+1)
					}
					return fmt.Sprint("counted to ", in), nil
				})
				code := func(ctx kagzi.Context, in int) (string, error) {
					alone, err := kagzi.RunChild[string](ctx, "alone", "count", in, kagzi.ChildOptions{})
					if err != nil {
						return "", err
					}
					var children []*kagzi.Child[string]
					for _, from := range []int{in, 2, 3, 4} {
						child, err := kagzi.StartChild[string](
							ctx, fmt.Sprint("from-", from), "count", from, kagzi.ChildOptions{})
						if err != nil {
							return "", err
						}
						children = append(children, child)
					}
					beside := kagzi.Go(ctx, func(ctx kagzi.Context) (string, error) { return children[0].Wait(ctx) })
					all, err := kagzi.WaitAll(ctx, children[1:]...)
					if err != nil {
						return "", err
					}
					one, err := beside.Wait(ctx)
					if err != nil {
						return "", err
					}
					_, err = kagzi.Step(ctx, "fragile", func(context.Context) (int, error) {
						if broken {
							return 0, kagzi.NonRetryable(errors.New("broken"))
						}
						return 1, nil
					})
					return fmt.Sprint(alone, ", ", one, ", ", all), err
				}
				kagzi.Handle(w, "parent", code)
				start()
				run, err := kagzi.Start(t.Context(), c, "parent", 0, kagzi.StartOptions{})
				if err != nil {
					t.Fatal(err)
				}
				var failed *kagzi.RunError
				if _, err := kagzi.Result[string](t.Context(), run); !errors.As(err, &failed) ||
					failed.Message != "step fragile: broken" {
					t.Fatalf("Result = %v", err)
				}
				broken = false
				again, err := run.Retry(t.Context(), kagzi.RetryOptions{})
				if err != nil {
					t.Fatal(err)
				}
				result(t, again, "counted to 3, counted to 3, [counted to 3 counted to 3 counted to 4]")

				name := filepath.Join(t.TempDir(), "run.kagzi")
				file, err := os.Create(name)
				if err != nil {
					t.Fatal(err)
				}
				if err := errors.Join(again.Export(t.Context(), file, kagzi.ExportOptions{}),
					file.Close()); err != nil {
					t.Fatal(err)
				}
				kagzi.ReplayCapsule(t, name, code, kagzi.ReplayOptions{Codec: aesCodec(t)})
			})
		})
}

func TestARepeatedEncryptedCallHasTheSameAnswer(t *testing.T) {
	conflict := func(t *testing.T, what string, err error) {
		t.Helper()
		var e *kagzi.Error
		if !errors.As(err, &e) || e.Code != kagzi.CodeConflict {
			t.Errorf("%s: %v, want CONFLICT", what, err)
		}
	}
	type options = kagzi.StartOptions
	waits := func(ctx kagzi.Context, _ int) (int, error) { return kagzi.WaitSignal[int](ctx, "go", 0) }

	t.Run("a start", func(t *testing.T) {
		encrypting(t, func(t *testing.T, c *kagzi.Client, w *kagzi.Worker, start func()) {
			kagzi.Handle(w, "w", waits)
			start()
			try := func(workflowType string, in int, o options) (*kagzi.Run, error) {
				return kagzi.Start(t.Context(), c, workflowType, in, o)
			}
			once := options{RequestID: "once", ExternalID: "order"}
			first, err := try("w", 1, once)
			if err != nil {
				t.Fatal(err)
			}
			again, err := try("w", 1, once)
			if err != nil || again.ID() != first.ID() || again.AlreadyExisted() {
				t.Fatalf("repeated: %+v, %v, want run %s", again, err, first.ID())
			}
			for what, call := range map[string]func() (*kagzi.Run, error){
				"another input": func() (*kagzi.Run, error) { return try("w", 2, once) },
				"another type":  func() (*kagzi.Run, error) { return try("x", 1, once) },
				"another queue": func() (*kagzi.Run, error) {
					return try("w", 1, options{RequestID: "once", ExternalID: "order", Queue: "q"})
				},
				"another external id": func() (*kagzi.Run, error) { return try("w", 1, options{RequestID: "once"}) },
				"another request whose external id is in use": func() (*kagzi.Run, error) {
					return try("w", 1, options{RequestID: "twice", ExternalID: "order",
						ExternalIDReuse: kagzi.ReuseReject})
				},
			} {
				_, err := call()
				conflict(t, what, err)
			}
			if err := kagzi.Signal(t.Context(), again, "go", 5, kagzi.SignalOptions{}); err != nil {
				t.Fatal(err)
			}
			result(t, first, 5)
			if ended, err := try("w", 1, once); err != nil || ended.ID() != first.ID() {
				t.Errorf("repeated after the end: %+v, %v, want run %s", ended, err, first.ID())
			}
		})
	})

	t.Run("many starts", func(t *testing.T) {
		encrypting(t, func(t *testing.T, c *kagzi.Client, w *kagzi.Worker, start func()) {
			first, err := kagzi.StartMany(t.Context(), c, "w", []int{1, 2}, options{RequestID: "once"})
			if err != nil {
				t.Fatal(err)
			}
			again, err := kagzi.StartMany(t.Context(), c, "w", []int{1, 3}, options{RequestID: "once"})
			conflict(t, "another second", err)
			if again[0] == nil || again[0].ID() != first[0].ID() || again[1] != nil {
				t.Errorf("repeated: %v, want run %s alone", again, first[0].ID())
			}
		})
	})

	t.Run("a schedule", func(t *testing.T) {
		encrypting(t, func(t *testing.T, c *kagzi.Client, w *kagzi.Worker, start func()) {
			try := func(workflowType, cron string, in int, o kagzi.ScheduleOptions) (*kagzi.Schedule, error) {
				o.RequestID = "once"
				return kagzi.CreateSchedule(t.Context(), c, workflowType, cron, in, o)
			}
			plain := kagzi.ScheduleOptions{Name: "yearly"}
			first, err := try("w", "0 0 1 1 *", 1, plain)
			if err != nil {
				t.Fatal(err)
			}
			if again, err := try("w", "0 0 1 1 *", 1, plain); err != nil || again.ID() != first.ID() {
				t.Fatalf("repeated: %v, %v, want schedule %s", again, err, first.ID())
			}
			for what, call := range map[string]func() (*kagzi.Schedule, error){
				"another input":      func() (*kagzi.Schedule, error) { return try("w", "0 0 1 1 *", 2, plain) },
				"another type":       func() (*kagzi.Schedule, error) { return try("x", "0 0 1 1 *", 1, plain) },
				"another expression": func() (*kagzi.Schedule, error) { return try("w", "0 0 2 1 *", 1, plain) },
				"another name": func() (*kagzi.Schedule, error) {
					return try("w", "0 0 1 1 *", 1, kagzi.ScheduleOptions{})
				},
				"another queue": func() (*kagzi.Schedule, error) {
					return try("w", "0 0 1 1 *", 1, kagzi.ScheduleOptions{Name: "yearly", Queue: "q"})
				},
				"another zone": func() (*kagzi.Schedule, error) {
					return try("w", "0 0 1 1 *", 1, kagzi.ScheduleOptions{Name: "yearly", TimeZone: "Europe/Berlin"})
				},
			} {
				_, err := call()
				conflict(t, what, err)
			}
		})
	})

	t.Run("a retry with another input", func(t *testing.T) {
		encrypting(t, func(t *testing.T, c *kagzi.Client, w *kagzi.Worker, start func()) {
			run, err := kagzi.Start(t.Context(), c, "w", 1, options{ExternalID: "order"})
			if err != nil {
				t.Fatal(err)
			}
			if err := run.Cancel(t.Context(), ""); err != nil {
				t.Fatal(err)
			}
			try := func(id string, in kagzi.InputValue) (*kagzi.Run, error) {
				return run.Retry(t.Context(), kagzi.RetryOptions{Restart: true, Input: in, RequestID: id})
			}
			first, err := try("once", kagzi.InputOf(2))
			if err != nil {
				t.Fatal(err)
			}
			if again, err := try("once", kagzi.InputOf(2)); err != nil || again.ID() != first.ID() {
				t.Fatalf("repeated: %v, %v, want run %s", again, err, first.ID())
			}
			_, err = try("once", kagzi.InputOf(3))
			conflict(t, "another input", err)
			_, err = kagzi.Start(t.Context(), c, "w", 2, options{ExternalID: "order", RequestID: "once"})
			conflict(t, "a start by the retry's id", err)
			if err := first.Cancel(t.Context(), ""); err != nil {
				t.Fatal(err)
			}
			if _, err := try("own", kagzi.InputValue{}); err != nil {
				t.Fatal(err)
			}
			_, err = try("own", kagzi.InputOf(1))
			conflict(t, "the run's own input, where none was given before", err)
		})
	})
}
