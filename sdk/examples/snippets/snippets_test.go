package snippets

import (
	"context"
	"errors"
	"strings"
	"testing"
	"time"

	kagzi "github.com/kagzi/kagzi/sdk"
	"github.com/kagzi/kagzi/sdk/kagzitest"
)

// in runs a test in an environment whose worker handles the types that add gives it.
func in(t *testing.T, add func(w *kagzi.Worker), test func(t *testing.T, env *kagzitest.Env)) {
	t.Helper()
	kagzitest.Run(t, func(t *testing.T, env *kagzitest.Env) {
		add(env.Worker)
		env.Start()
		test(t, env)
	})
}

func start[In any](t *testing.T, env *kagzitest.Env, workflowType string, v In, opts kagzi.StartOptions) *kagzi.Run {
	t.Helper()
	run, err := kagzi.Start(t.Context(), env.Client, workflowType, v, opts)
	if err != nil {
		t.Fatal(err)
	}
	return run
}

func want[Out comparable](t *testing.T, run *kagzi.Run, want Out) {
	t.Helper()
	if got, err := kagzi.Result[Out](t.Context(), run); err != nil || got != want {
		t.Errorf("got %v, %v, want %v", got, err, want)
	}
}

func TestCharge(t *testing.T) {
	defer func(was func(context.Context, string, string) (string, error)) { bank = was }(bank)
	for name, c := range map[string]struct {
		errs []error // of the bank, call by call
		want string
		took time.Duration
	}{
		"a busy bank is asked again after five minutes": {[]error{errBusy}, "charge-c", 5 * time.Minute},
		"a declined card is not tried again":            {[]error{errDeclined}, "another card is needed", 0},
	} {
		calls := 0
		bank = func(_ context.Context, card, _ string) (string, error) {
			if calls++; calls <= len(c.errs) {
				return "", c.errs[calls-1]
			}
			return "charge-" + card, nil
		}
		in(t, func(w *kagzi.Worker) { kagzi.Handle(w, "charge", Charge) }, func(t *testing.T, env *kagzitest.Env) {
			began := time.Now()
			want(t, start(t, env, "charge", "c", kagzi.StartOptions{}), c.want)
			if took := time.Since(began).Round(time.Second); took != c.took {
				t.Errorf("%s: took %v, want %v", name, took, c.took)
			}
		})
	}
}

func TestTicketIsTheSameInEveryReplay(t *testing.T) {
	var seen []string
	in(t, func(w *kagzi.Worker) {
		kagzi.Handle(w, "ticket", func(ctx kagzi.Context, event string) (string, error) {
			text, err := Ticket(ctx, event)
			seen = append(seen, text)
			kagzi.Sleep(ctx, "pause", time.Hour)
			return text, err
		})
	}, func(t *testing.T, env *kagzitest.Env) {
		if _, err := kagzi.Result[string](t.Context(),
			start(t, env, "ticket", "opera", kagzi.StartOptions{})); err != nil {
			t.Fatal(err)
		}
		if len(seen) != 2 || seen[0] != seen[1] || !strings.HasSuffix(seen[0], "of 2000-01-01") {
			t.Errorf("got %q, want the same twice", seen)
		}
	})
}

func TestPrepare(t *testing.T) {
	in(t, func(w *kagzi.Worker) { kagzi.Handle(w, "order", Prepare) }, func(t *testing.T, env *kagzitest.Env) {
		want(t, start(t, env, "order", "o-1", kagzi.StartOptions{}), "invoice for o-1")
	})
}

func TestRemind(t *testing.T) {
	in(t, func(w *kagzi.Worker) { kagzi.Handle(w, "remind", Remind) }, func(t *testing.T, env *kagzitest.Env) {
		asked := 0
		kagzitest.ReplaceDo(env, "ask", func(context.Context) error { asked++; return nil })
		run := start(t, env, "remind", "tea?", kagzi.StartOptions{})
		env.Pass(60 * time.Hour)
		if err := kagzi.Signal(t.Context(), run, "answer", "yes", kagzi.SignalOptions{}); err != nil {
			t.Fatal(err)
		}
		want(t, run, "yes")
		if asked != 3 {
			t.Errorf("asked %d times, want 3", asked)
		}
		want(t, start(t, env, "remind", "tea?", kagzi.StartOptions{}), "no answer")
	})
}

func TestShipWaitsADayForItsChild(t *testing.T) {
	in(t, func(w *kagzi.Worker) {
		kagzi.Handle(w, "ship", Ship)
		kagzi.Handle(w, "shipping", func(ctx kagzi.Context, order string) (string, error) {
			if order == "slow" {
				kagzi.Sleep(ctx, "lost", 48*time.Hour)
			}
			return "parcel", nil
		})
	}, func(t *testing.T, env *kagzitest.Env) {
		want(t, start(t, env, "ship", "fast", kagzi.StartOptions{}), "parcel")
		want(t, start(t, env, "ship", "slow", kagzi.StartOptions{}), "picked up in the shop")
	})
}

func TestLedgerContinuesEachWeek(t *testing.T) {
	in(t, func(w *kagzi.Worker) { kagzi.Handle(w, "ledger", Ledger) }, func(t *testing.T, env *kagzitest.Env) {
		run := start(t, env, "ledger", Total{}, kagzi.StartOptions{})
		env.Pass(8 * 24 * time.Hour)
		d, err := run.Describe(t.Context())
		if err != nil || d.Status != kagzi.StatusCompleted || d.ContinuedAsRunID == "" {
			t.Fatalf("got %+v, %v, want a run that continued as new", d, err)
		}
		next, err := env.Client.Get(t.Context(), d.ContinuedAsRunID)
		if err != nil {
			t.Fatal(err)
		}
		total, err := kagzi.Input[Total](next)
		if err != nil || total != (Total{Days: 7, Sum: 7}) || next.Status.Ended() {
			t.Errorf("the next run began with %+v, %v", total, err)
		}
	})
}

func TestInvoiceGoesByTheVersionOfItsRun(t *testing.T) {
	in(t, func(w *kagzi.Worker) { kagzi.Handle(w, "invoice", Invoice) }, func(t *testing.T, env *kagzitest.Env) {
		want(t, start(t, env, "invoice", 100, kagzi.StartOptions{Version: "1"}), 100)
		want(t, start(t, env, "invoice", 100, kagzi.StartOptions{Version: "2"}), 119)
	})
}

func TestReportOfEachFailure(t *testing.T) {
	in(t, func(w *kagzi.Worker) {
		kagzi.Handle(w, "order", func(kagzi.Context, int) (int, error) { return 0, errors.New("out of stock") })
		kagzi.Handle(w, kagzi.GlobalFailureHandler, Report)
	}, func(t *testing.T, env *kagzitest.Env) {
		run := start(t, env, "order", 1, kagzi.StartOptions{})
		if text, err := Outcome(t.Context(), run); err != nil || text != "FAILED: out of stock" {
			t.Errorf("got %q, %v", text, err)
		}
		env.Settle()
		handlers := kagzi.ListOptions{WorkflowTypes: []string{kagzi.GlobalFailureHandler}}
		for d, err := range env.Client.List(t.Context(), handlers) {
			if err != nil || d.FailedRunID != run.ID() {
				t.Fatalf("got %+v, %v, want the handler's run", d, err)
			}
			want(t, env.Client.Run(d.RunID), "order FAILED: out of stock")
			return
		}
		t.Error("there is no run of the handler")
	})
}

func TestClient(t *testing.T) {
	kagzitest.Run(t, func(t *testing.T, env *kagzitest.Env) {
		ctx, c := t.Context(), env.Client
		first, err := StartOrder(ctx, c, "7", 1)
		if err != nil {
			t.Fatal(err)
		}
		again, err := StartOrder(ctx, c, "7", 1)
		if err != nil || again.ID() != first.ID() || !again.AlreadyExisted() {
			t.Errorf("a second start gave %v, %v, want the same run", again, err)
		}
		if ids, err := StartAll(ctx, c, []int{1, 2, 3}); err != nil || len(ids) != 3 {
			t.Errorf("got %q, %v, want three runs", ids, err)
		}
		env.Pass(25 * time.Hour) // nobody serves the queue
		if text, err := Outcome(ctx, first); err != nil || !strings.HasPrefix(text, "TIMED_OUT: ") {
			t.Errorf("got %q, %v", text, err)
		}
		if texts, err := Failures(ctx, c); err != nil || len(texts) != 0 {
			t.Errorf("got %q, %v, want none that was started within a day", texts, err)
		}
		for _, customer := range []string{"ada", "test"} {
			o := kagzi.StartOptions{Tags: map[string]string{"customer": customer}, ExecutionTimeout: time.Minute}
			if _, err := kagzi.Start(ctx, c, "orders", 1, o); err != nil {
				t.Fatal(err)
			}
		}
		env.Pass(time.Hour)
		if texts, err := Failures(ctx, c); err != nil || len(texts) != 1 {
			t.Errorf("got %q, %v, want the order that is no test", texts, err)
		}
	})
}

func TestStopAndAgain(t *testing.T) {
	in(t, func(w *kagzi.Worker) { kagzi.Handle(w, "prepare", Prepare) }, func(t *testing.T, env *kagzitest.Env) {
		run := start(t, env, "prepare", "o-1", kagzi.StartOptions{})
		env.Settle()
		if status, err := Stop(t.Context(), run); err != nil || status != kagzi.StatusCancelled {
			t.Errorf("got %s, %v", status, err)
		}
		var refused *kagzi.Error
		if _, err := Again(t.Context(), run); !errors.As(err, &refused) {
			t.Errorf("got %v: the run has no step charge", err)
		}
	})
}

func TestWorkersAreMadeWithTheirOptions(t *testing.T) {
	NewWorker("1.2.3", "eu")
	_, c, err := Encrypted(make([]byte, 32))
	if err != nil {
		t.Fatal(err)
	}
	if err := c.Close(); err != nil {
		t.Fatal(err)
	}
}

func TestAnnounce(t *testing.T) {
	in(t, func(w *kagzi.Worker) { kagzi.Handle(w, "announce", Announce) }, func(t *testing.T, env *kagzitest.Env) {
		posted := 0
		kagzitest.ReplaceDo(env, "post", func(context.Context) error { posted++; return nil })
		want(t, start(t, env, "announce", "we are open", kagzi.StartOptions{}), true)
		if posted != 1 {
			t.Errorf("posted %d times, want once", posted)
		}
	})
}

func TestRestock(t *testing.T) {
	in(t, func(w *kagzi.Worker) { kagzi.Handle(w, "restock", Restock) }, func(t *testing.T, env *kagzitest.Env) {
		want(t, start(t, env, "restock", "book", kagzi.StartOptions{}), 4)
	})
}

func TestGross(t *testing.T) {
	in(t, func(w *kagzi.Worker) { invoice.Handle(w, Invoice) }, func(t *testing.T, env *kagzitest.Env) {
		if got, err := Gross(t.Context(), env.Client, 100); got != 119 || err != nil {
			t.Errorf("got %v, %v, want 119", got, err)
		}
	})
}

func TestApprove(t *testing.T) {
	in(t, func(w *kagzi.Worker) { kagzi.Handle(w, "approve", Approve) }, func(t *testing.T, env *kagzitest.Env) {
		run := start(t, env, "approve", "order-1", kagzi.StartOptions{})
		env.Pass(time.Hour)
		if err := kagzi.Signal(t.Context(), run, "answer", true, kagzi.SignalOptions{}); err != nil {
			t.Fatal(err)
		}
		want(t, run, "order-1 approved: true")
		want(t, start(t, env, "approve", "order-2", kagzi.StartOptions{}), "nobody answered for order-2")
	})
}

func TestDeliver(t *testing.T) {
	in(t, func(w *kagzi.Worker) { kagzi.Handle(w, "deliver", Deliver) }, func(t *testing.T, env *kagzitest.Env) {
		want(t, start(t, env, "deliver", "order-1", kagzi.StartOptions{}), "parcel of order-1")
	})
}
