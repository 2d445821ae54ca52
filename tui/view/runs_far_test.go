package view

import (
	"testing"
	"time"
)

func TestTwentyThousandRunsAreGoneThroughWithoutLoadingThemAll(t *testing.T) {
	var w *shop
	many := theDay.withMore(20_000)
	options := func() Options {
		w = many.open()
		return Options{API: w, Open: "runs", Now: w.Now}
	}
	onFixture(t, options, 100, 30, func(r *fixture) {
		p := r.app.trails.top().(*runsPage)
		r.press("G")
		r.pass(2 * time.Second)
		if i := p.tab.Index(); i != p.runs.Len()-1 || i < 20_000 {
			t.Errorf("G leads to row %d of %d:\n%s", i, p.runs.Len(), r.draw())
		}
		for range 30 {
			r.press("pgup")
		}
		r.pass(time.Second)
		if id, ok := p.tab.Selected(); !ok || p.runs.Get(id) == nil {
			t.Errorf("30 pages up there is no run:\n%s", r.draw())
		}
		r.press("g")
		r.pass(2 * time.Second)
		if p.tab.Index() != 0 {
			t.Errorf("g leads to row %d", p.tab.Index())
		}
		for range 200 {
			r.press("pgdn")
		}
		r.pass(2 * time.Second)
		if i := p.tab.Index(); i < 4_000 {
			t.Errorf("200 pages down is row %d", i)
		}
		if n := len(p.runs.All()); n > 10_000 {
			t.Errorf("%d runs are kept", n)
		}
	})
}

func TestOfManyRunsThoseThatWereReadAreMatchedAndThatIsSaid(t *testing.T) {
	many := theDay.withMore(5_000)
	options := func() Options {
		w := many.open()
		return Options{API: w, Open: "runs no-such-text", Now: w.Now}
	}
	onFixture(t, options, 120, 30, func(r *fixture) {
		r.shows("no-such-text is matched on the 2", "search all, m loads more")
	})
}
