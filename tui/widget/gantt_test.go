package widget_test

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/kagzi/kagzi/tui/render"
	"github.com/kagzi/kagzi/tui/theme"
	"github.com/kagzi/kagzi/tui/widget"
	"github.com/kagzi/kagzi/tui/widget/widgettest"
)

// noon is the start of the runs in these tests.
var noon = time.Date(2026, 11, 20, 12, 0, 0, 0, time.UTC)

func after(d time.Duration) time.Time { return noon.Add(d) }

func plain() *theme.Theme { return theme.Default() }
func ascii() *theme.Theme { return theme.Default().WithASCII() }
func mono() *theme.Theme  { return theme.Mono() }

var (
	done    = theme.Sign{Glyph: theme.Completed, Word: "completed", Style: render.Good}
	failed  = theme.Sign{Glyph: theme.Failed, Word: "failed", Style: render.Bad}
	running = theme.Sign{Glyph: theme.Running, Word: "running", Style: render.Busy}
	asleep  = theme.Sign{Glyph: theme.Sleeping, Word: "sleeping", Style: render.Asleep}
)

func work(from, to time.Duration, style render.Style) widget.Span {
	return widget.Span{From: after(from), To: after(to), Style: style}
}

// order returns a typical run: a step that failed twice, a sleep of two days, parallel steps, and
// an open one.
func order() []widget.Lane {
	bad := work(1*time.Second, 3*time.Second, render.Bad)
	bad.End = theme.Failed
	again := work(4*time.Second, 5*time.Second, render.Bad)
	again.End = theme.Failed
	between := widget.Span{From: after(3 * time.Second), To: after(4 * time.Second), Kind: widget.Between,
		Style: render.Waiting}
	wait := widget.Span{From: after(5 * time.Second), To: after(7 * time.Second), Kind: widget.Between,
		Style: render.Waiting}
	rest := widget.Span{From: after(9 * time.Second), To: after(48 * time.Hour), Kind: widget.Rest,
		Style: render.Asleep}
	late := 48 * time.Hour
	return []widget.Lane{
		{ID: "reserve", Label: "reserve", Sign: done, Spans: []widget.Span{work(0, 900*time.Millisecond, render.Good)},
			Note: "attempt 1, worker box-1"},
		{ID: "charge", Label: "charge-card", Sign: done,
			Spans:   []widget.Span{wait, work(7*time.Second, 9*time.Second, render.Good)},
			Overlay: []widget.Span{bad, between, again}, Note: "attempt 3, worker box-2"},
		{ID: "cool-off", Label: "cool-off", Sign: asleep, Spans: []widget.Span{rest}},
		{ID: "ship", Label: "ship", Sign: running, Spans: []widget.Span{{From: after(late), Style: render.Busy}}},
		{ID: "ship/label", Label: "print-label-for-the-warehouse", Indent: 1, Sign: failed,
			Spans: []widget.Span{{From: after(late), To: after(late + 2*time.Second), Style: render.Bad,
				End: theme.Failed}}},
		{ID: "mail", Label: "mail", Indent: 1, Sign: theme.Sign{Glyph: theme.Pending, Style: render.Dim}},
	}
}

func orderGantt(look func() *theme.Theme) *widget.Gantt {
	g := widget.NewGantt(look)
	g.SetLanes(order(), after(48*time.Hour+6*time.Second))
	return g
}

func TestGantt(t *testing.T) {
	for _, size := range widgettest.Sizes() {
		t.Run(size.String(), func(t *testing.T) {
			g := orderGantt(plain)
			got := widgettest.Draw(t, g, size.W, 10, nil)
			g.Collapse(true)
			got += widgettest.Draw(t, g, size.W, 10, nil)
			g.Overlay(true)
			g.Select("charge")
			got += widgettest.Draw(t, g, size.W, 10, nil)
			widgettest.Golden(t, "gantt_"+size.String(), got)
		})
	}
	t.Run("in letters and without colours", func(t *testing.T) {
		g := orderGantt(ascii)
		g.Collapse(true)
		g.Overlay(true)
		got := widgettest.Draw(t, g, 60, 10, nil)
		g = orderGantt(mono)
		g.Collapse(true)
		got += widgettest.DrawStyles(t, g, 80, 10, nil)
		widgettest.Golden(t, "gantt_plain", got)
	})
	t.Run("zoomed", func(t *testing.T) {
		g := orderGantt(plain)
		g.Collapse(true)
		widgettest.Draw(t, g, 80, 10, nil)
		g.ZoomIn()
		g.ZoomIn()
		got := widgettest.Draw(t, g, 80, 10, nil)
		widgettest.Press(t, g, "l", "l")
		got += widgettest.Draw(t, g, 80, 10, nil)
		widgettest.Press(t, g, "0")
		got += widgettest.Draw(t, g, 80, 10, nil)
		widgettest.Golden(t, "gantt_zoomed", got)
	})
}

func TestGantt_keys(t *testing.T) {
	g := orderGantt(plain)
	widgettest.Draw(t, g, 80, 10, nil)
	selected := func() string {
		lane, _ := g.Selected()
		return lane.ID
	}
	for _, step := range []struct{ key, want string }{
		{"j", "charge"}, {"down", "cool-off"}, {"k", "charge"}, {"G", "mail"}, {"j", "mail"}, {"g", "reserve"},
		{"up", "reserve"},
		{"pgdn", "mail"}, {"home", "reserve"}, {"f", "ship/label"}, {"f", "ship/label"}, {"F", "ship/label"},
		{"end", "mail"}, {"pgup", "reserve"},
	} {
		widgettest.Press(t, g, step.key)
		if got := selected(); got != step.want {
			t.Fatalf("after %q the cursor is on %q, want %q", step.key, got, step.want)
		}
	}
	var entered string
	g.OnEnter(func(l widget.Lane) { entered = l.ID })
	widgettest.Press(t, g, "enter")
	if entered != "reserve" {
		t.Errorf("entered %q, want reserve", entered)
	}
	widgettest.Press(t, g, "+", "+", "z", "o")
	if !g.Zoomed() || !g.Collapsed() || !g.Overlaid() {
		t.Errorf("zoomed %v, collapsed %v, overlaid %v, want all", g.Zoomed(), g.Collapsed(), g.Overlaid())
	}
	widgettest.Press(t, g, "-", "-", "-", "z", "o")
	if g.Zoomed() || g.Collapsed() || g.Overlaid() {
		t.Errorf("zoomed %v, collapsed %v, overlaid %v, want none", g.Zoomed(), g.Collapsed(), g.Overlaid())
	}
	if g.Key(widgettest.Key(t, "x")) {
		t.Error("x meant something to the timeline, want it left to others")
	}
}

func TestGantt_keeps_the_cursor_on_its_lane_when_lanes_come_and_go(t *testing.T) {
	g := orderGantt(plain)
	g.Select("cool-off")
	lanes := order()
	g.SetLanes(append([]widget.Lane{{ID: "new"}, {ID: "newer"}}, lanes...), after(49*time.Hour))
	if lane, _ := g.Selected(); lane.ID != "cool-off" {
		t.Errorf("the cursor is on %q, want cool-off", lane.ID)
	}
	g.SetLanes(lanes[:1], after(49*time.Hour))
	if lane, ok := g.Selected(); !ok || lane.ID != "reserve" {
		t.Errorf("the cursor is on %q, want the lane that is left", lane.ID)
	}
	g.SetLanes(nil, after(49*time.Hour))
	if _, ok := g.Selected(); ok {
		t.Error("a lane is selected where there is none")
	}
}

func TestGantt_says_exactly_what_is_under_the_cursor(t *testing.T) {
	g := orderGantt(plain)
	for id, want := range map[string]string{
		"charge":     "2026-11-20 12:00:05.000Z  +5s  took 4s  attempt 3, worker box-2",
		"ship":       "2026-11-22 12:00:00.000Z  +48h0m0s  so far 6s",
		"ship/label": "2026-11-22 12:00:00.000Z  +48h0m0s  took 2s",
		"mail":       "not started",
	} {
		g.Select(id)
		lines := strings.Split(strings.TrimSpace(widgettest.Draw(t, g, 80, 10, nil)), "\n")
		if got := lines[len(lines)-1]; got != want {
			t.Errorf("about %s it says %q, want %q", id, got, want)
		}
	}
}

func TestGantt_grows_with_now(t *testing.T) {
	g := widget.NewGantt(plain)
	g.SetLanes([]widget.Lane{
		{ID: "a", Label: "a", Spans: []widget.Span{work(0, time.Second, render.Good)}},
		{ID: "b", Label: "b", Spans: []widget.Span{{From: after(time.Second)}}},
	}, after(2*time.Second))
	bar := func() int {
		lines := strings.Split(widgettest.Draw(t, g, 60, 6, nil), "\n")
		return strings.Count(lines[1], "█")
	}
	half := bar()
	g.SetNow(after(10 * time.Second))
	if tenth := bar(); half < 19 || tenth > half/4 {
		t.Errorf("the bar of a second took %d cells of two seconds and %d of ten", half, tenth)
	}
}

func TestGantt_shows_something_of_every_span(t *testing.T) {
	month := widget.Lane{ID: "month", Label: "month", Spans: []widget.Span{work(0, 30*24*time.Hour, render.Good)}}
	moment := widget.Lane{ID: "moment", Label: "moment",
		Spans: []widget.Span{work(30*24*time.Hour, 30*24*time.Hour, render.Good)}}
	early := widget.Lane{ID: "early", Label: "early",
		Spans: []widget.Span{work(time.Hour, time.Hour+time.Millisecond, render.Good)}}
	backwards := widget.Lane{ID: "backwards", Label: "backwards",
		Spans: []widget.Span{work(2*time.Hour, time.Hour, render.Good)}}
	for _, look := range []func() *theme.Theme{plain, ascii} {
		g := widget.NewGantt(look)
		g.SetLanes([]widget.Lane{month, moment, early, backwards}, after(0))
		lines := strings.Split(widgettest.Draw(t, g, 80, 8, nil), "\n")
		for i, lane := range []string{"month", "moment", "early", "backwards"} {
			if _, bar, _ := strings.Cut(lines[1+i], lane); !strings.ContainsAny(bar, "▏#█") {
				t.Errorf("the lane %s shows nothing: %q", lane, lines[1+i])
			}
		}
	}
}

func TestGantt_draws_what_there_is(t *testing.T) {
	for name, lanes := range map[string][]widget.Lane{
		"no lanes":             nil,
		"a lane without spans": {{ID: "a", Label: "a"}},
		"a run of no length":   {{ID: "a", Label: "a", Spans: []widget.Span{work(0, 0, render.Good)}}},
		"all of it asleep":     {{ID: "a", Label: "a", Spans: []widget.Span{{From: noon, Kind: widget.Rest}}}},
		"begun in the future":  {{ID: "a", Label: "a", Spans: []widget.Span{{From: after(time.Hour)}}}},
		"a thousand spans":     {{ID: "a", Label: "a", Spans: many(1000)}},
		"the width of an hour": {{ID: "a", Label: "a", Spans: []widget.Span{work(0, time.Hour, render.Good)}}},
		"a nanosecond in years": {{ID: "a", Label: "a",
			Spans: []widget.Span{work(0, 1, render.Good),
				work(100*365*24*time.Hour, 100*365*24*time.Hour+1, render.Good)}}},
	} {
		t.Run(name, func(t *testing.T) {
			for _, size := range []widgettest.Size{{W: 0, H: 0}, {W: 1, H: 1}, {W: 17, H: 3}, {W: 60, H: 8}} {
				g := widget.NewGantt(plain)
				g.SetLanes(lanes, after(time.Minute))
				for _, key := range []string{"z", "+", "l", "l", "+", "+", "+", "h", "-", "0", "f", "F", "o",
					"j", "k"} {
					widgettest.Draw(t, g, size.W, size.H, nil)
					widgettest.Press(t, g, key)
				}
				for range 40 {
					g.ZoomIn()
					widgettest.Draw(t, g, size.W, size.H, nil)
				}
			}
		})
	}
}

func TestGantt_zoom_keeps_the_lane_under_the_cursor_in_view(t *testing.T) {
	g := orderGantt(plain)
	g.Select("ship")
	widgettest.Draw(t, g, 80, 10, nil)
	for range 20 {
		g.ZoomIn()
		if lines := strings.Split(widgettest.Draw(t, g, 80, 10, nil), "\n"); !strings.ContainsAny(
			lines[4], "█▶▏▎▍▌▋▊▉") {
			t.Fatalf("the bar of the lane left the screen: %q", lines[4])
		}
	}
}

func many(n int) []widget.Span {
	spans := make([]widget.Span, n)
	for i := range spans {
		spans[i] = work(time.Duration(i)*time.Second, time.Duration(i)*time.Second+300*time.Millisecond, render.Good)
	}
	return spans
}

// fanOut returns a run of n steps with ten attempts each.
func fanOut(n int) []widget.Lane {
	lanes := make([]widget.Lane, n)
	for i := range lanes {
		lanes[i] = widget.Lane{ID: fmt.Sprint(i), Label: fmt.Sprintf("step-%d", i), Sign: done, Spans: many(10),
			Overlay: many(10)}
	}
	return lanes
}

func BenchmarkGantt_draw_2000_lanes(b *testing.B) {
	g := widget.NewGantt(plain)
	g.SetLanes(fanOut(2000), after(time.Hour))
	g.Collapse(true)
	g.Overlay(true)
	benchmarkDraw(b, g)
}

func BenchmarkGantt_set_2000_lanes(b *testing.B) {
	g, lanes := widget.NewGantt(plain), fanOut(2000)
	for b.Loop() {
		g.SetLanes(lanes, after(time.Hour))
	}
}
