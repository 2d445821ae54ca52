package view

import (
	"strings"
	"testing"
	"time"

	"github.com/kagzi/kagzi/tui/scenario"
)

// lineOf returns the first screen line with a label, from the label on.
func lineOf(t *testing.T, r *fixture, label string) string {
	t.Helper()
	for line := range strings.Lines(r.draw()) {
		if at := strings.Index(line, label); at >= 0 {
			return line[at:]
		}
	}
	t.Fatalf("no line holds %s:\n%s", label, r.draw())
	return ""
}

func TestTimesInTextFollowTheClockAndTheStyleThatIsChosen(t *testing.T) {
	for _, view := range []struct {
		name, label string
		open        func(*shop) string
		keys        []string
	}{
		{"meta", "Created ", runOf(scenario.Failed), []string{"7"}},
		{"error", "The run failed ", runOf(scenario.Failed), []string{"4"}},
		{"diff", "created ", diffOf(scenario.Failed, scenario.Overridden), nil},
	} {
		t.Run(view.name, func(t *testing.T) {
			var w *shop
			options := func() Options {
				w = newShop()
				return Options{API: w, Open: view.open(w), Now: w.Now}
			}
			onFixture(t, options, 120, 40, func(r *fixture) {
				r.press(view.keys...)
				before := lineOf(t, r, view.label)
				w.Advance(2 * time.Minute)
				r.pass(100 * time.Millisecond)
				after := lineOf(t, r, view.label)
				if after == before {
					t.Errorf("two minutes later it still says %q", before)
				}
				seen := map[string]string{after: "relative"}
				for _, style := range []string{"local", "utc", "epoch"} {
					r.press("u")
					line := lineOf(t, r, view.label)
					if other, same := seen[line]; same {
						t.Errorf("%q is shown in style %s as in %s", line, style, other)
					}
					seen[line] = style
				}
			})
		})
	}
}

func TestAStepInTheTreeRunsOnAsTimePasses(t *testing.T) {
	onPiece(t, scenario.Growing, 120, 32, func(r *fixture, w *shop, p *runPage) {
		r.press("2")
		name := "●  " + p.run.Lanes()[len(p.run.Lanes())-1].Name + " "
		before := lineOf(t, r, name)
		w.Advance(time.Second)
		r.pass(100 * time.Millisecond)
		if after := lineOf(t, r, name); after == before {
			t.Errorf("a second later the tree still says %q", before)
		}
	})
}
