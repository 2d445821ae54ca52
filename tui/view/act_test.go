package view

import (
	"context"
	"strings"
	"testing"
	"time"

	"google.golang.org/grpc"

	kagziv1 "github.com/kagzi/kagzi/proto/kagzi/v1"
	"github.com/kagzi/kagzi/tui"
	"github.com/kagzi/kagzi/tui/internal/format"
	"github.com/kagzi/kagzi/tui/render"
	"github.com/kagzi/kagzi/tui/view/internal/settings"
)

// statusOf returns a run's status in the shop.
func statusOf(t *testing.T, w *shop, id string) string {
	t.Helper()
	answer, err := w.GetWorkflow(context.Background(), &kagziv1.GetWorkflowRequest{RunId: id})
	if err != nil {
		t.Fatal(err)
	}
	return render.RunStatusCell(answer.GetWorkflow()).Text
}

// cancelAsked says whether a run is cancelled, or its code was asked to stop.
func cancelAsked(t *testing.T, w *shop, id string) bool {
	t.Helper()
	answer, err := w.GetWorkflow(context.Background(), &kagziv1.GetWorkflowRequest{RunId: id})
	if err != nil {
		t.Fatal(err)
	}
	return answer.GetWorkflow().GetCancelRequestedAt() != nil || answer.GetWorkflow().GetStatus() ==
		kagziv1.WorkflowStatus_WORKFLOW_STATUS_CANCELLED
}

// onRun opens the list of runs with the cursor on the first one that matches a filter, and returns
// its id.
func onRun(t *testing.T, r *fixture, filter string) string {
	t.Helper()
	if err := r.app.command("runs " + filter); err != nil {
		t.Fatal(err)
	}
	r.settle()
	p := r.app.trails.top().(*runsPage)
	run := p.under()
	if run == nil {
		t.Fatalf("no run is %s:\n%s", filter, r.draw())
	}
	return run.GetRunId()
}

func TestNothingIsDoneWithoutAYesAndEnterAloneIsNone(t *testing.T) {
	var w *shop
	onFixture(t, inShop(&w, "runs"), 100, 24, func(r *fixture) {
		id := onRun(t, r, "status:sleeping")
		r.press("x")
		r.shows("Cancel the run", "kagzi workflow cancel "+id, "gets 30s to clean up", "Leave as is")
		r.press("enter")
		if got := statusOf(t, w, id); got != "SLEEPING" {
			t.Fatalf("after enter alone the run is %s", got)
		}
		r.press("x", "esc")
		if got := statusOf(t, w, id); got != "SLEEPING" {
			t.Fatalf("after esc the run is %s", got)
		}
		r.press("x", "tab", "enter")
		r.shows("cancel requested")
		if !cancelAsked(t, w, id) {
			t.Fatal("after a yes the run is not cancelled")
		}
		id = onRun(t, r, "status:sleeping")
		if err := r.app.command("cancel 0"); err != nil {
			t.Fatal(err)
		}
		r.shows("Ends now, without cleanup", "--grace 0s")
		r.press("tab", "enter")
		if got := statusOf(t, w, id); got != "CANCELLED" {
			t.Fatalf("after a yes the run is %s:\n%s", got, r.draw())
		}
		r.shows("CANCELLED")
	})
}

func TestACancellationTakesNoNegativeGrace(t *testing.T) {
	var w *shop
	onFixture(t, inShop(&w, "runs"), 100, 24, func(r *fixture) {
		onRun(t, r, "status:sleeping")
		if err := r.app.command("cancel -30s"); err == nil || !strings.Contains(err.Error(), `grace "-30s"`) ||
			r.app.layer() != nil {
			t.Errorf("%v, want the grace refused and nothing asked", err)
		}
	})
}

func TestARetryTakesOneStep(t *testing.T) {
	var w *shop
	onFixture(t, inShop(&w, "runs"), 100, 24, func(r *fixture) {
		onRun(t, r, "status:failed")
		for _, words := range []string{"--from-step charge-card", "--restart charge-card"} {
			if err := r.app.command("retry " + words); err == nil || !strings.Contains(err.Error(), words) ||
				r.app.layer() != nil {
				t.Errorf("retry %s: %v, want it refused and nothing asked", words, err)
			}
		}
		if err := r.app.command("retry charge-card"); err != nil || r.app.layer() == nil {
			t.Errorf("retry charge-card: %v, want a question", err)
		}
	})
}

func TestWhatHasEndedIsOfferedARetryOnlyWhereThatIsPossible(t *testing.T) {
	var w *shop
	onFixture(t, inShop(&w, "runs"), 100, 24, func(r *fixture) {
		onRun(t, r, "status:failed")
		r.press("x")
		r.shows("the run has ended; t retries it")
		onRun(t, r, "status:completed")
		r.press("x")
		r.shows("the run has ended")
		r.lacks("t starts it again")
	})
}

func TestManyRunsAreCancelledOnlyAfterTheirNumberWasTyped(t *testing.T) {
	var w *shop
	onFixture(t, inShop(&w, "runs"), 100, 30, func(r *fixture) {
		onRun(t, r, "status:pending,running,sleeping type:thumbnail")
		p := r.app.trails.top().(*runsPage)
		r.press("space", "pgdn", "ctrl-space")
		ids := p.tab.Targets()
		if len(ids) <= manyTargets {
			t.Fatalf("%d runs are marked, want more than %d", len(ids), manyTargets)
		}
		r.press("x", "tab", "enter")
		if got := statusOf(t, w, ids[0]); got == "CANCELLED" {
			t.Fatal("they were cancelled without their number")
		}
		r.press("x")
		r.enter(strings.TrimSpace(format.Number(int64(len(ids)))))
		r.press("tab", "enter")
		r.pass(time.Second)
		for _, id := range ids {
			if !cancelAsked(t, w, id) {
				t.Fatalf("run %s is not cancelled", id)
			}
		}
	})
}

func TestACommandThatSaysPauseResumePinOrUnpinDoesNothingElse(t *testing.T) {
	var w *shop
	pinned := func(t *testing.T, id string) bool {
		answer, err := w.GetWorkflow(context.Background(), &kagziv1.GetWorkflowRequest{RunId: id})
		if err != nil {
			t.Fatal(err)
		}
		return answer.GetWorkflow().GetPinned()
	}
	onFixture(t, inShop(&w, "runs"), 100, 24, func(r *fixture) {
		id := onRun(t, r, "status:sleeping")
		refused := func(command, why string) {
			t.Helper()
			err := r.app.command(command)
			r.settle()
			if err == nil || !strings.Contains(err.Error(), why) || r.app.layer() != nil {
				t.Errorf(":%s: %v, want %q and no question", command, err, why)
			}
		}
		obeyed := func(command string, keys ...string) {
			t.Helper()
			if err := r.app.command(command); err != nil {
				t.Errorf(":%s: %v", command, err)
			}
			r.settle()
			r.press(keys...)
			r.pass(time.Second) // until the list knows of it
		}
		refused("resume", "not paused")
		obeyed("pause", "tab", "enter")
		if got := statusOf(t, w, id); got != "SLEEPING paused" {
			t.Errorf("after :pause the run is %s", got)
		}
		refused("pause", "already paused")
		obeyed("resume")
		if got := statusOf(t, w, id); got != "SLEEPING" {
			t.Errorf("after :resume the run is %s", got)
		}
		refused("unpin", "not pinned")
		obeyed("pin")
		refused("pin", "already pinned")
		r.press("down")
		other := r.app.trails.top().(*runsPage).under().GetRunId()
		r.press("up", "space", "space") // the first is pinned, the second is not
		obeyed("unpin")
		if pinned(t, id) || pinned(t, other) {
			t.Errorf("after :unpin of two marked runs they are pinned: %t and %t", pinned(t, id), pinned(t, other))
		}
	})
}

func TestARunningRunIsPausedNowOrAfterItsStep(t *testing.T) {
	var w *shop
	onFixture(t, inShop(&w, "runs"), 110, 30, func(r *fixture) {
		id := onRun(t, r, "status:running type:order")
		r.press("P")
		r.shows("Pause the run", "Running steps finish first", "Pause now")
		r.press("tab", "enter")
		if got := statusOf(t, w, id); got != "RUNNING pausing" {
			t.Fatalf("the run is %s, want it pausing:\n%s", got, r.draw())
		}
		r.pass(time.Second)
		r.press("P") // takes it back
		if got := statusOf(t, w, id); got != "RUNNING" {
			t.Fatalf("the run is %s, want it RUNNING again", got)
		}
		r.pass(time.Second)
		if err := r.app.command("pause soon"); err == nil {
			t.Error(":pause soon is accepted")
		}
		if err := r.app.command("pause --now"); err != nil {
			t.Fatal(err)
		}
		r.settle()
		r.shows("kagzi workflow pause", "--now", "Running steps are interrupted")
		r.press("esc", "P", "tab", "tab", "enter")
		if got := statusOf(t, w, id); got != "PENDING paused" {
			t.Fatalf("the run is %s, want it interrupted:\n%s", got, r.draw())
		}
	})
}

func TestARunIsPausedResumedRetriedSignalledAndPinned(t *testing.T) {
	var w *shop
	onFixture(t, inShop(&w, "runs"), 110, 30, func(r *fixture) {
		id := onRun(t, r, "status:sleeping type:refund.approval")
		r.press("s")
		r.shows("Signal", "approval")
		r.press("ctrl-s")
		r.shows("delivered")
		r.press("I")
		r.shows("pinned")
		if err := r.app.command("runs id:" + id); err != nil {
			t.Fatal(err)
		}
		r.settle()
		id = onRun(t, r, "status:pending type:onboarding")
		r.press("P", "tab", "enter")
		if got := statusOf(t, w, id); !strings.Contains(got, "paused") {
			t.Fatalf("the run is %s, want it paused:\n%s", got, r.draw())
		}
		r.pass(time.Second)
		r.press("P")
		if got := statusOf(t, w, id); strings.Contains(got, "paused") {
			t.Fatalf("the run is %s, want it resumed", got)
		}
		onRun(t, r, "status:failed type:order")
		r.press("t")
		r.shows("Retry the run", "kagzi workflow retry", "keeps all completed steps")
		r.press("tab", "enter")
		r.shows("give :retry a step, --restart or --keep-all", "refund-car")
		if err := r.app.command("retry --keep-all"); err != nil {
			t.Fatal(err)
		}
		r.shows("--keep-all", "compensations too")
		r.press("tab", "enter")
		r.shows("retried as")
	})
}

func TestARunIsStartedFromTheFormAndMistakesAreNamedAtTheirField(t *testing.T) {
	var w *shop
	onFixture(t, inShop(&w, "runs"), 100, 30, func(r *fixture) {
		r.press("n")
		r.shows("Start a run")
		r.press("ctrl-s")
		r.shows("a value is required")
		r.shows("<ctrl-s> start", "<esc> cancel")
		r.lacks("<enter> open")
		r.shows("-100 to 100, higher first", "such as 90s, 2h or 7d; empty means now")
		r.enter("or der")
		r.press("ctrl-s")
		r.pass(time.Second)
		r.shows("Start a run", "may hold only letters")
		r.lacks("workflow_type")
		r.press("backspace", "backspace", "backspace", "backspace") // the field of the type has the focus again
		r.enter("der")
		r.press("tab")
		r.enter("orders")
		r.press("tab", "tab")
		r.enter("by-hand-1")
		r.press("tab", "tab")
		r.enter("90s")
		r.press("ctrl-s")
		r.pass(time.Second)
		r.shows("started as", "by-hand-1")
		r.press(":")
		r.enter("messages")
		r.press("enter")
		r.shows("$ kagzi workflow start order --queue orders --external-id by-hand-1 --delay", "1m30s")
	})
}

func TestWhatFailsIsSaidAndCanBeTriedAgain(t *testing.T) {
	var w *shop
	onFixture(t, inShop(&w, "runs"), 110, 30, func(r *fixture) {
		id := onRun(t, r, "status:sleeping")
		r.press("x")
		w.Down(errGone)
		r.press("tab", "enter")
		r.shows("it may have worked; ")
		w.Up()
		r.pass(20 * time.Second)
		if err := r.app.command("again"); err != nil {
			t.Fatal(err)
		}
		r.settle()
		if !cancelAsked(t, w, id) {
			t.Fatal("after :again the run is not cancelled")
		}
	})
}

// slowToPause is a server whose first pause waits for its result.
type slowToPause struct {
	tui.API
	came chan error
}

func (a *slowToPause) PauseWorkflow(ctx context.Context, request *kagziv1.PauseWorkflowRequest,
	options ...grpc.CallOption) (*kagziv1.PauseWorkflowResponse, error) {
	if err := <-a.came; err != nil {
		return nil, err
	}
	return a.API.PauseWorkflow(ctx, request, options...)
}

func TestWhatFailsAfterSomethingElseWasDoneCanBeTriedAgain(t *testing.T) {
	var w *shop
	var slow *slowToPause
	onFixture(t, func() Options {
		w = newShop()
		slow = &slowToPause{w, make(chan error)}
		return Options{API: slow, Open: "runs", Now: w.Now}
	}, 110, 30, func(r *fixture) {
		id := onRun(t, r, "status:sleeping")
		r.press("P", "tab", "enter")
		if err := r.app.command("pin"); err != nil {
			t.Fatal(err)
		}
		r.settle()
		r.shows("pinned")
		slow.came <- errGone
		r.settle()
		r.shows("it may have worked; :again repeats the request")
		close(slow.came)
		if err := r.app.command("again"); err != nil {
			t.Fatalf(":again: %v", err)
		}
		r.settle()
		if got := statusOf(t, w, id); got != "SLEEPING paused" {
			t.Fatalf("after :again the run is %s", got)
		}
	})
}

func TestInAProtectedNamespaceItsNameIsTyped(t *testing.T) {
	options := func() Options {
		w := newShop()
		return Options{API: w, Open: "runs", Now: w.Now, Config: settings.Config{Protected: []string{"def*"}}}
	}
	onFixture(t, options, 100, 24, func(r *fixture) {
		onRun(t, r, "status:sleeping")
		r.press("x")
		r.shows("Type default to continue.")
	})
}

func TestTheHintsAreThoseOfWhatLiesOnTop(t *testing.T) {
	var w *shop
	onFixture(t, inShop(&w, "runs"), 100, 30, func(r *fixture) {
		r.shows("<enter> open")
		r.press("y")
		r.shows("</> search", "<esc> close")
		r.lacks("<enter> open")
		r.press("esc")
		r.shows("<enter> open")
		r.press("?")
		r.shows("<esc> close")
		r.press("esc", "x")
		r.shows("<tab> next button", "<esc> cancel")
	})
}

func TestADivergedRunIsResumedOnlyAfterAQuestion(t *testing.T) {
	var w *shop
	onFixture(t, inShop(&w, "runs"), 120, 40, func(r *fixture) {
		id := onRun(t, r, "status:pending type:onboarding")
		r.press("P", "tab", "enter")
		r.press("enter")
		r.pass(time.Second)
		p := r.app.trails.top().(*runPage)
		p.workflow().Divergences = []*kagziv1.Divergence{{BuildId: "b\x1b[31m2",
			Made: []*kagziv1.Call{{Name: "bill"}}, Owed: []*kagziv1.Call{{Name: "charge"}, {Name: "ship"}}}}
		if err := r.app.command("resume"); err != nil {
			t.Fatal(err)
		}
		r.shows("Resume the run", "kagzi workflow resume", "The code has diverged", "Accept divergence lets the code skip",
			"calls bill, and not the recorded charge, ship")
		r.press("enter")
		if got := statusOf(t, w, id); !strings.Contains(got, "paused") {
			t.Fatalf("after enter the run is %s", got)
		}
		if err := r.app.command("resume"); err != nil {
			t.Fatal(err)
		}
		r.press("tab", "tab", "enter")
		if got := statusOf(t, w, id); strings.Contains(got, "paused") {
			t.Fatalf("accepted, the run is %s", got)
		}
	})
}
