package view

import (
	"cmp"
	"fmt"
	"strings"
	"testing"

	"github.com/kagzi/kagzi/tui/internal/diff"
	"github.com/kagzi/kagzi/tui/render"
	"github.com/kagzi/kagzi/tui/scenario"
)

func diffOf(left, right scenario.Piece) func(*shop) string {
	return func(w *shop) string {
		if w.ID(left) == "" {
			return "diff " + absent + " " + absent
		}
		return "diff " + w.ID(left) + " " + w.ID(right)
	}
}

func TestADiffLooksRight(t *testing.T) {
	goldenView(t, "diff", diffOf(scenario.Overridden, scenario.Retried))
}

func TestTwoMarkedRunsAreCompared(t *testing.T) {
	var w *shop
	onFixture(t, inShop(&w, "runs type:order status:failed"), 120, 32, func(r *fixture) {
		r.press("D")
		r.shows("mark two runs with space")
		r.press("space", "space", "D")
		p, ok := r.app.trails.top().(*diffPage)
		if !ok {
			t.Fatalf("D opened %T", r.app.trails.top())
		}
		r.shows("Diff", "differences", "≠")
		r.press("n")
		r.shows("difference 1 of ")
		r.press("N")
		r.shows(fmt.Sprintf("difference %d of %[1]d", len(diff.Differences(p.rows))))
		r.press(">")
		if run, ok := r.app.trails.top().(*runPage); !ok || run.run.ID() != p.sides[1].run.ID() {
			t.Error("> does not open the run on the right")
		}
		r.press("esc", "esc")
		r.shows("◆") // the marks are still there
	})
}

func TestADifferenceIsBroughtToTheScreen(t *testing.T) {
	var w *shop
	options := func() Options {
		w = newShop()
		return Options{API: w, Open: diffOf(scenario.Failed, scenario.Retried)(w), Now: w.Now}
	}
	onFixture(t, options, 80, 15, func(r *fixture) {
		p := r.app.trails.top().(*diffPage)
		all := diff.Differences(p.rows)
		for i, row := range all {
			r.press("n")
			text := strings.TrimSpace(cmp.Or(p.rows[row].Left, p.rows[row].Right))
			if text = render.Truncate(render.Safe(text), 20); !strings.Contains(
				r.draw(), strings.TrimSuffix(text, "…")) {
				t.Errorf("difference %d of %d, %q, is not on the screen:\n%s", i+1, len(all), text, r.draw())
			}
		}
	})
}

func TestARunDoesNotDifferFromItself(t *testing.T) {
	var w *shop
	options := func() Options {
		w = newShop()
		return Options{API: w, Open: diffOf(scenario.Hostile, scenario.Hostile)(w), Now: w.Now}
	}
	onFixture(t, options, 120, 60, func(r *fixture) {
		r.shows("no differences")
		r.lacks("≠")
	})
}
