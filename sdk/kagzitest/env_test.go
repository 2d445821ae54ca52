package kagzitest_test

import (
	"context"
	"errors"
	"os"
	"os/exec"
	"strings"
	"testing"
	"time"

	kagzi "github.com/kagzi/kagzi/sdk"
	"github.com/kagzi/kagzi/sdk/kagzitest"
)

type order struct{ Total int }

type receipt struct {
	Charge   string
	Approved bool
	Took     time.Duration
}

// trial is a workflow that charges, sleeps for a month and waits for an approval.
func trial(ctx kagzi.Context, in order) (receipt, error) {
	begun := kagzi.Now(ctx)
	charge, err := kagzi.Step(ctx, "charge", func(context.Context) (string, error) {
		return "", kagzi.NonRetryable(errors.New("no card in a test"))
	})
	if err != nil {
		return receipt{}, err
	}
	kagzi.Sleep(ctx, "trial", 30*24*time.Hour)
	approved, err := kagzi.WaitSignal[bool](ctx, "approval", 48*time.Hour)
	if err != nil {
		return receipt{}, err
	}
	return receipt{Charge: charge, Approved: approved, Took: kagzi.Now(ctx).Sub(begun)}, nil
}

func TestAMonthPassesInNoTime(t *testing.T) {
	real := time.Now()
	kagzitest.Run(t, func(t *testing.T, env *kagzitest.Env) {
		kagzi.Handle(env.Worker, "trial", trial)
		kagzitest.ReplaceStep(env, "charge", func(context.Context) (string, error) { return "paid", nil })
		env.Start()
		begun := time.Now()
		run, err := kagzi.Start(t.Context(), env.Client, "trial", order{Total: 5}, kagzi.StartOptions{})
		if err != nil {
			t.Fatal(err)
		}
		env.Pass(30*24*time.Hour + time.Hour)
		if err := kagzi.Signal(t.Context(), run, "approval", true, kagzi.SignalOptions{}); err != nil {
			t.Fatal(err)
		}
		got, err := kagzi.Result[receipt](t.Context(), run)
		if err != nil {
			t.Fatal(err)
		}
		if want := (receipt{"paid", true, 30*24*time.Hour + time.Hour}); got.Charge != want.Charge || !got.Approved ||
			got.Took.Round(time.Second) != want.Took {
			t.Errorf("the receipt is %+v, want %+v", got, want)
		}
		if took := time.Since(begun); took.Round(time.Second) != 30*24*time.Hour+time.Hour {
			t.Errorf("%v went by, want 30 days and an hour", took)
		}
	})
	t.Logf("took %v", time.Since(real))
}

func TestSettleFinishesDueWorkWithoutAdvancingTheClock(t *testing.T) {
	kagzitest.Run(t, func(t *testing.T, env *kagzitest.Env) {
		kagzi.Handle(env.Worker, "trial", trial)
		kagzitest.ReplaceStep(env, "charge", func(context.Context) (string, error) { return "paid", nil })
		env.Start()
		run, err := kagzi.Start(t.Context(), env.Client, "trial", order{Total: 5}, kagzi.StartOptions{})
		if err != nil {
			t.Fatal(err)
		}
		begun := time.Now()
		env.Settle()
		if passed := time.Since(begun); passed != 0 {
			t.Errorf("%v went by, want no time", passed)
		}
		details, err := env.Client.Get(t.Context(), run.ID())
		if err != nil || details.Status != kagzi.StatusSleeping {
			t.Errorf("the run is %v, %v, want it asleep after its first step", details, err)
		}
	})
}

func TestTheClockJumpsWhileAResultIsAwaited(t *testing.T) {
	kagzitest.Run(t, func(t *testing.T, env *kagzitest.Env) {
		kagzi.Handle(env.Worker, "trial", trial)
		kagzitest.ReplaceStep(env, "charge", func(context.Context) (string, error) { return "paid", nil })
		env.Start()
		begun := time.Now()
		run, err := kagzi.Start(t.Context(), env.Client, "trial", order{}, kagzi.StartOptions{})
		if err != nil {
			t.Fatal(err)
		}
		_, err = kagzi.Result[receipt](t.Context(), run)
		failed, ok := errors.AsType[*kagzi.RunError](err)
		if !ok {
			t.Fatalf("the result is %v, want a RunError: nobody approved", err)
		}
		t.Logf("as it must be: %v", failed)
		if took := time.Since(begun); took.Round(time.Second) != 32*24*time.Hour {
			t.Errorf("%v went by, want 32 days", took)
		}
	})
}

func TestRemovingAReplacementRestoresTheStep(t *testing.T) {
	kagzitest.Run(t, func(t *testing.T, env *kagzitest.Env) {
		kagzi.Handle(env.Worker, "trial", trial)
		kagzitest.ReplaceStep(env, "charge", func(context.Context) (string, error) { return "paid", nil })
		kagzitest.ReplaceStep[string](env, "charge", nil)
		env.Start()
		run, err := kagzi.Start(t.Context(), env.Client, "trial", order{}, kagzi.StartOptions{})
		if err != nil {
			t.Fatal(err)
		}
		if _, err = kagzi.Result[receipt](t.Context(), run); err == nil {
			t.Fatal("the run completed, want it to fail for want of a card")
		}
	})
}

func TestAReplacementOfAnotherTypeFailsTheStep(t *testing.T) {
	kagzitest.Run(t, func(t *testing.T, env *kagzitest.Env) {
		kagzi.Handle(env.Worker, "trial", trial)
		kagzitest.ReplaceStep(env, "charge", func(context.Context) (int, error) { return 1, nil })
		env.Start()
		run, err := kagzi.Start(t.Context(), env.Client, "trial", order{}, kagzi.StartOptions{})
		if err != nil {
			t.Fatal(err)
		}
		_, err = kagzi.Result[receipt](t.Context(), run)
		failed, ok := errors.AsType[*kagzi.RunError](err)
		if !ok || !strings.Contains(failed.Error(), "its replacement returns int") {
			t.Fatalf("the result is %v, want a RunError that names the types", err)
		}
	})
}

func TestAStepThatIgnoresItsContextMayEndAfterTheTest(t *testing.T) {
	kagzitest.Run(t, func(t *testing.T, env *kagzitest.Env) {
		kagzi.Handle(env.Worker, "deaf", func(ctx kagzi.Context, _ order) (string, error) {
			return kagzi.Step(ctx, "ask", func(context.Context) (string, error) {
				time.Sleep(10 * time.Minute)
				return "too late", nil
			}, kagzi.Timeout(time.Minute), kagzi.Retry{Attempts: 1})
		})
		env.Start()
		run, err := kagzi.Start(t.Context(), env.Client, "deaf", order{}, kagzi.StartOptions{})
		if err != nil {
			t.Fatal(err)
		}
		if _, err = kagzi.Result[string](t.Context(), run); !errors.Is(err, kagzi.ErrTimeout) {
			t.Fatalf("the result is %v, want ErrTimeout", err)
		}
	})
}

// failingCase names the environment variable with which the test binary runs one failing test and
// another one after it.
const failingCase = "KAGZITEST_CASE"

// Each case is a failing test, in its own process.
func TestAFailingTestSaysWhy(t *testing.T) {
	begin := func(t *testing.T, env *kagzitest.Env, fn func(ctx kagzi.Context, _ order) (string, error)) *kagzi.Run {
		kagzi.Handle(env.Worker, "deaf", fn)
		env.Start()
		run, err := kagzi.Start(t.Context(), env.Client, "deaf", order{}, kagzi.StartOptions{})
		if err != nil {
			t.Fatal(err)
		}
		return run
	}
	waits := func(ctx kagzi.Context, _ order) (string, error) {
		return kagzi.WaitSignal[string](ctx, "answer", 0)
	}
	cases := map[string]struct {
		test func(t *testing.T, env *kagzitest.Env)
		want []string
	}{
		"a_result_that_never_comes": {func(t *testing.T, env *kagzitest.Env) {
			_, err := kagzi.Result[string](t.Context(), begin(t, env, waits))
			t.Log("the wait ended:", err)
		}, []string{"of type deaf: waits for signal answer", "the wait ended: kagzi: CANCELLED"}},
		"time_passes_in_a_loop": {func(t *testing.T, env *kagzitest.Env) {
			run := begin(t, env, waits)
			for {
				if d, err := run.Describe(t.Context()); err == nil && d.Status.Ended() {
					return
				}
				env.Pass(365 * 24 * time.Hour)
			}
		}, []string{"of type deaf: waits for signal answer"}},
		"a_channel_of_the_test": {func(t *testing.T, env *kagzitest.Env) {
			begin(t, env, waits)
			<-make(chan int)
		}, []string{"of type deaf: waits for signal answer", "the test does not return",
			"code is still blocked after the test", "kagzitest_test.TestAFailingTestSaysWhy"}},
		"a_channel_of_the_workflow": {func(t *testing.T, env *kagzitest.Env) {
			begin(t, env, func(kagzi.Context, order) (string, error) { return <-make(chan string), nil })
			env.Settle()
		}, []string{"code is still blocked after the test", "kagzitest_test.TestAFailingTestSaysWhy"}},
		"a_worker_that_cannot_start": {func(t *testing.T, env *kagzitest.Env) {
			env.Start()
		}, []string{"call Handle before Run"}},
		"a_replacement_with_a_misspelt_name": {func(t *testing.T, env *kagzitest.Env) {
			kagzitest.ReplaceStep(env, "chrage", func(context.Context) (string, error) { return "", nil })
			kagzitest.ReplaceDo(env, "notify", func(context.Context) error { return nil })
			run := begin(t, env, func(ctx kagzi.Context, _ order) (string, error) {
				if err := kagzi.Do(ctx, "notify", func(context.Context) error {
					return errors.New("not replaced")
				}); err != nil {
					return "", err
				}
				return kagzi.Step(ctx, "charge", func(context.Context) (string, error) { return "paid", nil })
			})
			if got, err := kagzi.Result[string](t.Context(), run); got != "paid" || err != nil {
				t.Error(got, err)
			}
			t.Fail()
		}, []string{`step "chrage" is replaced but never ran; did you mean "charge"?`}},
	}
	if c, ok := cases[os.Getenv(failingCase)]; ok {
		kagzitest.Run(t, c.test)
		return
	}
	for name, c := range cases {
		t.Run(name, func(t *testing.T) {
			self, err := os.Executable()
			if err != nil {
				t.Fatal(err)
			}
			cmd := exec.CommandContext(t.Context(), self,
				"-test.run=^(TestAFailingTestSaysWhy|TestRunsAfterAFailingTest)$",
				"-test.timeout=8m")
			own := t.TempDir()
			cmd.Env = append(os.Environ(), failingCase+"="+name, "TMPDIR="+own, "TMP="+own)
			output, err := cmd.CombinedOutput()
			out := string(output)
			if err == nil || !strings.Contains(out, "the next test ran") || strings.Contains(out, "panic: ") {
				t.Errorf("it ended with %v and said %.3000s\nwant one failed test, and the next to run", err, out)
			}
			for _, want := range c.want {
				if !strings.Contains(out, want) {
					t.Errorf("it said %.3000s\nwant %q", out, want)
				}
			}
			if strings.Contains(out, `"notify" is replaced`) {
				t.Error("a replacement that ran is reported")
			}
		})
	}
}

func TestRunsAfterAFailingTest(t *testing.T) {
	if os.Getenv(failingCase) == "" {
		t.Skip("runs only after the cases of TestAFailingTestSaysWhy")
	}
	kagzitest.Run(t, func(t *testing.T, env *kagzitest.Env) {
		kagzi.Handle(env.Worker, "echo", func(_ kagzi.Context, in string) (string, error) { return in, nil })
		env.Start()
		run, err := kagzi.Start(t.Context(), env.Client, "echo", "the next test ran", kagzi.StartOptions{})
		if err != nil {
			t.Fatal(err)
		}
		said, err := kagzi.Result[string](t.Context(), run)
		if err != nil {
			t.Fatal(err)
		}
		println(said)
	})
}
