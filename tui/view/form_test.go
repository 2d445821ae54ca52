package view

import (
	"context"
	"strings"
	"testing"

	"github.com/gdamore/tcell/v2"
	"github.com/rivo/tview"

	kagziv1 "github.com/kagzi/kagzi/proto/kagzi/v1"
	"github.com/kagzi/kagzi/tui/scenario"
)

func TestTypingInAFormTypes(t *testing.T) {
	t.Run("the input of a run", func(t *testing.T) {
		var w *shop
		onFixture(t, inShop(&w, "runs"), 100, 30, func(r *fixture) {
			r.press("n")
			r.enter("order")
			r.press("tab")
			r.enter("shop")
			r.press("tab")
			r.enter(`{"e": 1}`)
			r.shows(`{"e": 1}`, "ctrl-o opens the editor")
			r.press("ctrl-s")
			r.shows("start")
			answer, err := w.ListWorkflows(context.Background(),
				&kagziv1.ListWorkflowsRequest{Page: &kagziv1.PageRequest{PageSize: 1}})
			if err != nil || len(answer.GetWorkflows()) != 1 {
				t.Fatal(answer, err)
			}
			run, err := w.GetWorkflow(context.Background(),
				&kagziv1.GetWorkflowRequest{RunId: answer.GetWorkflows()[0].GetRunId()})
			if got := run.GetWorkflow(); err != nil || got.GetTaskQueue() != "shop" ||
				string(got.GetInput().GetData()) != `{"e": 1}` {
				t.Errorf("the newest run is on queue %q with input %q (%v)", got.GetTaskQueue(),
					got.GetInput().GetData(), err)
			}
		})
	})
	t.Run("the payload of a signal", func(t *testing.T) {
		var w *shop
		onFixture(t, inShop(&w, "runs"), 100, 30, func(r *fixture) {
			id := onRun(t, r, "status:sleeping")
			r.press("s", "ctrl-u")
			r.enter("go")
			r.press("tab")
			r.enter(`["e",`)
			r.press("enter")
			r.enter("2]")
			r.press("ctrl-s")
			signals, err := w.ListSignals(context.Background(), &kagziv1.ListSignalsRequest{RunId: id})
			if err != nil || len(signals.GetSignals()) != 1 ||
				string(signals.GetSignals()[0].GetPayload().GetData()) != "[\"e\",\n2]" {
				t.Errorf("the run has the signals %v (%v)", signals.GetSignals(), err)
			}
		})
	})
	t.Run("the output of a step", func(t *testing.T) {
		onPiece(t, scenario.Failed, 120, 32, func(r *fixture, _ *shop, _ *runPage) {
			r.press("O", "ctrl-u")
			r.enter("ship")
			r.press("tab", "tab")
			r.enter(`{"tracking": "e-7"}`)
			r.press("tab", "tab")
			r.enter("by phone")
			r.press("ctrl-s")
			r.shows(`'{"tracking": "e-7"}'`, "by phone")
		})
	})
}

func TestTheCursorOfAnInputIsShownAndHidden(t *testing.T) {
	var w *shop
	onFixture(t, inShop(&w, "runs"), 100, 30, func(r *fixture) {
		shown := func(want bool) {
			t.Helper()
			r.draw()
			if _, _, visible := r.screen.GetCursor(); visible != want {
				t.Errorf("the cursor is visible: %t, want %t", visible, want)
			}
		}
		shown(false)
		r.press(":")
		shown(true)
		r.press("esc")
		shown(false)
		r.press("n")
		shown(true)
		r.press("shift-tab") // a button
		shown(false)
	})
}

func TestTheMouseReachesADialog(t *testing.T) {
	var w *shop
	onFixture(t, inShop(&w, "runs"), 100, 24, func(r *fixture) {
		id := onRun(t, r, "status:sleeping")
		r.press("x")
		for y, line := range strings.Split(r.draw(), "\n") {
			if before, _, ok := strings.Cut(line, "[ Cancel the run"); ok {
				newFrame(r.app).MouseHandler()(tview.MouseLeftClick, tcell.NewEventMouse(len([]rune(before)), y,
					tcell.Button1, 0), func(tview.Primitive) {})
			}
		}
		r.settle()
		if !cancelAsked(t, w, id) {
			t.Errorf("the button that was clicked did nothing:\n%s", r.draw())
		}
	})
}
