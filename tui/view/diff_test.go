package view

import (
	"cmp"
	"fmt"
	"strings"
	"testing"

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
	onRig(t, inShop(&w, "runs type:order status:failed"), 120, 32, func(r *rig) {
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
		r.shows(fmt.Sprintf("difference %d of %[1]d", len(differences(p.rows))))
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
	onRig(t, options, 80, 15, func(r *rig) {
		p := r.app.trails.top().(*diffPage)
		all := differences(p.rows)
		for i, row := range all {
			r.press("n")
			text := strings.TrimSpace(cmp.Or(p.rows[row].left, p.rows[row].right))
			if text = render.Truncate(render.Safe(text), 20); !strings.Contains(r.draw(), strings.TrimSuffix(text, "…")) {
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
	onRig(t, options, 120, 60, func(r *rig) {
		r.shows("no differences")
		r.lacks("≠")
	})
}

func TestAlignPutsEqualLinesBesideEachOther(t *testing.T) {
	for _, test := range []struct{ left, right, want string }{
		{"", "", ""},
		{"a b c", "a b c", "aa bb cc"},
		{"a b c", "a c", "aa b- cc"},
		{"a c", "a b c", "aa -b cc"},
		{"a x c", "a y c", "aa xy cc"},
		{"x a b y", "a z b", "x- aa -z bb y-"},
		{"a b", "", "a- b-"},
		{"", "a", "-a"},
		{"a b a b", "b a b a", "a- bb aa bb -a"},
	} {
		left, right := strings.Fields(test.left), strings.Fields(test.right)
		var got []string
		for _, pair := range align(left, right) {
			text := [2]string{"-", "-"}
			if pair.left >= 0 {
				text[0] = left[pair.left]
			}
			if pair.right >= 0 {
				text[1] = right[pair.right]
			}
			got = append(got, text[0]+text[1])
		}
		if strings.Join(got, " ") != test.want {
			t.Errorf("align %q and %q = %q, want %q", test.left, test.right, strings.Join(got, " "), test.want)
		}
	}
}
