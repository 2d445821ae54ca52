package view

import (
	"fmt"
	"strings"
	"time"

	"github.com/gdamore/tcell/v2"
	"github.com/rivo/tview"

	kagziv1 "github.com/kagzi/kagzi/proto/kagzi/v1"
	"github.com/kagzi/kagzi/tui/internal/format"
	"github.com/kagzi/kagzi/tui/model"
	"github.com/kagzi/kagzi/tui/render"
	"github.com/kagzi/kagzi/tui/theme"
	"github.com/kagzi/kagzi/tui/view/internal/overview"
	"github.com/kagzi/kagzi/tui/widget"
)

// The smallest usable window.
const (
	leastWidth  = 60
	leastHeight = 15
)

// cramped reports whether the window is too small to show anything.
func (a *App) cramped() bool {
	w, h := a.screen.Size()
	return w < leastWidth || h < leastHeight
}

// frame is the whole screen: header, page, banner, hints, and the layers over them. It is the only
// primitive that tview manages.
type frame struct {
	*tview.Box
	app *App
}

func newFrame(a *App) *frame {
	f := &frame{Box: tview.NewBox(), app: a}
	return f
}

// HasFocus returns true: the program dispatches keys itself, so focus cannot get lost.
func (f *frame) HasFocus() bool { return true }

// InputHandler returns nil: App.key handles all keys.
func (f *frame) InputHandler() func(*tcell.EventKey, func(tview.Primitive)) { return nil }

// PasteHandler pastes into the open input. Over a page a paste is ignored, so it never triggers
// actions.
func (f *frame) PasteHandler() func(string, func(tview.Primitive)) {
	return func(text string, _ func(tview.Primitive)) {
		if l := f.app.layer(); l != nil && !f.app.cramped() {
			l.Paste(text)
		}
	}
}

// MouseHandler passes the event to the topmost layer or the page.
func (f *frame) MouseHandler() func(tview.MouseAction, *tcell.EventMouse, func(tview.Primitive)) (bool,
	tview.Primitive) {
	return func(action tview.MouseAction, event *tcell.EventMouse, _ func(tview.Primitive)) (bool, tview.Primitive) {
		if f.app.cramped() {
			return true, nil
		}
		if l := f.app.layer(); l != nil {
			l.Mouse(action, event)
			return true, nil
		}
		if p, ok := f.app.trails.top().(clicked); ok {
			return p.Mouse(action, event), nil
		}
		return false, nil
	}
}

// Draw draws the frame.
func (f *frame) Draw(screen tcell.Screen) {
	a := f.app
	_, _, w, h := f.GetRect()
	screen.HideCursor()
	c := widget.On(screen, a.look, 0, 0, w, h)
	c.Clear(a.look.Role(theme.Text))
	if a.cramped() {
		for i, line := range []string{fmt.Sprintf("%dx%d is too small,", w, h),
			fmt.Sprintf("%dx%d is needed.", leastWidth, leastHeight), "q quits."} {
			c.Text(0, i, line, a.look.Role(theme.Warning))
		}
		return
	}
	top, bottom := 1, h-1
	a.drawHeader(c.Part(0, 0, w, 1))
	if a.header && h >= 30 {
		a.drawCounters(c.Part(0, 1, w, 1))
		top = 2
	}
	a.drawHints(c.Part(0, bottom, w, 1))
	if banner := a.banner(); banner != "" {
		bottom--
		c.Cut(1, bottom, w-2, a.look.Glyph(theme.Alert)+" "+banner, a.look.Role(theme.Warning))
	}
	a.drawPage(c.Part(0, top, w, bottom-top))
	for _, l := range a.layers {
		screen.HideCursor() // that of the layer below
		l.Draw(c)
	}
	a.drew()
}

// drawPage draws the page in its box, or why it cannot be shown.
func (a *App) drawPage(c widget.Canvas) {
	p := a.trails.top()
	if p == nil {
		return
	}
	inner := c.Box("", a.look.Role(theme.Border))
	if f, ok := p.(failed); ok && f.Failure() != nil {
		a.drawFailure(inner, f.Failure())
	} else {
		p.Draw(inner) // first: the title depends on what was drawn
	}
	status := p.Status()
	room := c.W - 4
	if status != "" {
		width := min(render.Width(status)+2, room/2)
		c.Right(c.W-2-width, 0, width, " "+status+" ", a.look.Role(theme.Faint))
		room -= width + 1
	}
	c.Cut(2, 0, room, " "+p.Title()+" ", a.look.Role(theme.Title))
}

// drawFailure draws the card that replaces a page that could not be read.
func (a *App) drawFailure(c widget.Canvas, err error) {
	lines := []string{"Cannot show this: " + sentence(err), "", "server   " + a.options.Address}
	if a.options.Source != "" {
		lines[2] += "  (" + a.options.Source + ")"
	}
	if state := a.link.State(); state.Err != nil {
		lines = append(lines, "retry    "+a.connection().Word, "")
		lines = append(lines, format.Wrapped(render.Safe(remedy(state.Err, a.options.Address, a.scope().Reach())),
			max(c.W-4, 1))...)
		lines = append(lines, "ctrl-r retries now, q quits.")
	} else {
		lines = append(lines, "", "ctrl-r retries, esc goes back.")
	}
	for i, line := range lines {
		style := a.look.Role(theme.Text)
		if i == 0 {
			style = a.look.Role(theme.Danger)
		}
		c.Cut(2, max(c.H/4, 0)+i, c.W-4, line, style)
	}
}

// drawHeader shows the path to the page and the state of the server.
func (a *App) drawHeader(c widget.Canvas) {
	sign := a.connection()
	right := a.about()
	state := a.look.Glyph(sign.Glyph) + " " + sign.Word
	x := c.W - 1 - render.Width(state)
	c.Text(x, 0, state, a.look.Style(sign.Style))
	if len(a.overview.Info().GetWarnings()) > 0 { // the overview and the server page show the warnings
		mark := a.look.Glyph(theme.Alert) + " exposed"
		x -= render.Width(mark) + 2
		c.Text(x, 0, mark, a.look.Role(theme.Danger))
	}
	if right != "" && c.W >= 80 {
		right = render.Truncate(render.Safe(right), c.W/3)
		x -= render.Width(right) + 2
		c.Text(x, 0, right, a.look.Role(theme.Faint))
	}
	crumbs := []string{"kagzi", a.link.Namespace()}
	for _, p := range a.trails.pages() {
		crumbs = append(crumbs, p.Crumb())
	}
	a.drawCrumbs(c.Part(1, 0, x-2, 1), crumbs)
}

// drawCrumbs cuts the path in the middle if it does not fit.
func (a *App) drawCrumbs(c widget.Canvas, crumbs []string) {
	arrow := " " + a.look.Glyph(theme.Right) + " "
	line := strings.Join(crumbs, arrow)
	for i := 2; render.Width(render.Safe(line)) > c.W && len(crumbs) > 3; {
		crumbs = append(crumbs[:i:i], crumbs[i+1:]...)
		line = strings.Join(crumbs[:i], arrow) + arrow + a.look.Glyph(theme.Ellipsis) + arrow +
			strings.Join(crumbs[i:], arrow)
	}
	c.Cut(0, 0, c.W, line, a.look.Role(theme.Crumb))
}

// about describes the server in a few words.
func (a *App) about() string {
	var parts []string
	if a.options.Note != "" {
		parts = append(parts, a.options.Note)
	}
	if role, ok := a.role(); ok {
		parts = append(parts, render.KeyRole(role))
	}
	if a.looksOnly() {
		parts = append(parts, "read-only")
	}
	if info := a.overview.Info(); info != nil && a.options.Note == "" {
		parts = append(parts, info.GetBackend(), info.GetVersion())
	}
	if trip := a.link.RoundTrip(); trip >= time.Millisecond && !a.options.File {
		parts = append(parts, render.Duration(trip))
	}
	return strings.Join(parts, " · ")
}

// banner returns what is wrong with the visible page.
func (a *App) banner() string {
	if state := a.link.State(); state.Down() {
		if a.link.AsOf().IsZero() {
			return fmt.Sprintf("%s: %s", a.connection().Word, sentence(state.Err))
		}
		return fmt.Sprintf("%s, as of %s: %s", a.connection().Word,
			a.link.AsOf().In(a.options.Zone).Format(time.TimeOnly), sentence(state.Err))
	}
	if p, ok := a.trails.top().(warned); ok {
		return p.Banner()
	}
	return ""
}

// hint is a key and a word for its effect.
type hint struct{ key, does string }

// hints returns the hints of the topmost layer or the page.
func (a *App) hints() []hint {
	if o, ok := a.layer().(*over); ok {
		return o.hints
	}
	var list []hint
	for _, action := range a.actions().hints() {
		list = append(list, hint{action.Keys[0], action.short()})
	}
	return list
}

// drawHints draws the key hints, or the latest message.
func (a *App) drawHints(c widget.Canvas) {
	if a.toast.text != "" && a.options.Now().Before(a.toast.until) {
		c.Cut(1, 0, c.W-2, a.toast.text, a.look.Role(a.toast.role))
		return
	}
	x := 1
	for _, h := range a.hints() {
		key, short := "<"+h.key+">", h.does
		if x+render.Width(key)+1+render.Width(short) > c.W-1 {
			return
		}
		x += c.Text(x, 0, key, a.look.Role(theme.Key)) + 1
		x += c.Text(x, 0, short, a.look.Role(theme.Faint)) + 2
	}
}

// counted lists the statuses in the line of counters.
var counted = []kagziv1.WorkflowStatus{
	kagziv1.WorkflowStatus_WORKFLOW_STATUS_RUNNING, kagziv1.WorkflowStatus_WORKFLOW_STATUS_PENDING,
	kagziv1.WorkflowStatus_WORKFLOW_STATUS_SLEEPING,
}

// drawCounters draws runs by status, online workers and throughput. What does not fit is left out
// from the right.
func (a *App) drawCounters(c widget.Canvas) {
	stats := a.overview.Stats()
	if stats == nil {
		return
	}
	style := a.look.Style
	if a.link.State().Down() {
		style = func(render.Style) tcell.Style { return a.look.Role(theme.Stale) }
	}
	x := 1
	for _, cell := range a.counters(stats) {
		if x+render.Width(cell.Text) > c.W-1 {
			return
		}
		x += c.Text(x, 0, cell.Text, style(cell.Style)) + 3
	}
	a.drawDone(c.Part(x, 0, c.W-x-1, 1), style)
}

// counters returns the counts of the namespace in one line.
func (a *App) counters(stats *kagziv1.GetStatsResponse) []render.Cell {
	var cells []render.Cell
	for _, status := range counted {
		sign := theme.OfStatus(status)
		n := stats.GetWorkflowsByStatus()[render.RunStatus(status)]
		if n == 0 {
			sign.Style = render.Dim
		}
		cells = append(cells, render.Cell{Text: a.look.Glyph(sign.Glyph) + " " + format.Number(n) + " " + sign.Word,
			Style: sign.Style})
	}
	lately, since, _ := a.failed(stats)
	failed := render.Cell{Text: fmt.Sprintf("%s %s failed %s", a.look.Glyph(theme.Failed), format.Number(lately),
		since), Style: render.Dim}
	if lately > 0 {
		failed.Style = render.Bad
	}
	workers := render.Cell{Text: fmt.Sprintf(
		"%d of %d workers online", stats.GetOnlineWorkers(), stats.GetTotalWorkers())}
	if stats.GetOnlineWorkers() == 0 {
		workers = render.Cell{Text: "no worker online", Style: render.Waiting}
	}
	return append(cells, failed, workers)
}

// failed returns how many runs failed lately, with a label for where and since when, and a short
// one for a tile. The count is of the last hour, or since the server's start if that is later. It
// covers all namespaces of the connected server, and the label says so, because the numbers beside
// it cover one namespace. If the server does not report it, failed returns the kept failed runs of
// the namespace.
func (a *App) failed(stats *kagziv1.GetStatsResponse) (n int64, since, short string) {
	started := a.overview.Info().GetStartedAt()
	switch {
	case a.options.File || a.overview.Sealed():
		byStatus := stats.GetWorkflowsByStatus()
		return byStatus["FAILED"] + byStatus["TIMED_OUT"], "in all", "in all"
	case started != nil && a.now().Sub(started.AsTime()) < time.Hour:
		up := "<1m"
		if d := a.now().Sub(started.AsTime()); d >= time.Minute {
			up = format.Waited(d)
		}
		return a.overview.FailedLastHour(), "on server since start", "server, up " + up
	}
	return a.overview.FailedLastHour(), "on server in 1 h", "server, 1 h"
}

const (
	doneText  = 12 // cells of "1 234/s done"
	doneSpark = 40 // of the chart at most
	// leastSpark is the narrowest useful chart; at 120 columns there is little more.
	leastSpark = 6
)

// drawDone draws how many runs end per second, now and over the last five minutes.
func (a *App) drawDone(c widget.Canvas, style func(render.Style) tcell.Style) {
	rates := a.doneRates()
	if c.W < doneText+leastSpark || a.options.File || a.overview.Sealed() {
		return
	}
	x := c.Text(0, 0, format.PerTime(overview.Lately(rates))+" done ", style(render.Dim))
	last := a.now().Unix() - 1
	bars := overview.Buckets(rates, last, min(doneSpark, c.W-x), true)
	widget.Spark(c.Part(x, 0, len(bars), 1), bars, style(render.Good))
}

// connection returns the state of the connection as a sign.
func (a *App) connection() theme.Sign {
	state := a.link.State()
	if a.frozen {
		return theme.Sign{Glyph: theme.Paused, Word: "frozen", Style: render.Paused}
	}
	switch state.Phase {
	case model.Live:
		if a.options.File { // changes that a server writes are shown, but no server is asked
			return theme.Sign{Glyph: theme.Running, Word: "following", Style: render.Plain}
		}
		return theme.Sign{Glyph: theme.Running, Word: "live", Style: render.Good}
	case model.Polling:
		return theme.Sign{Glyph: theme.Polling, Word: "polling", Style: render.Waiting}
	case model.Connecting:
		return theme.Sign{Glyph: theme.Polling, Word: "connecting", Style: render.Waiting}
	case model.Refused:
		return theme.Sign{Glyph: theme.Failed, Word: "refused", Style: render.Bad}
	}
	word := "reconnecting"
	if wait := state.NextTry.Sub(a.options.Now()); wait > 0 {
		word += fmt.Sprintf(" in %ds", int((wait+time.Second-1)/time.Second))
	}
	return theme.Sign{Glyph: theme.Broken, Word: word, Style: render.Bad}
}

// doneRates returns the runs that ended in each of the last seconds.
func (a *App) doneRates() []float64 {
	var rates []float64
	for _, p := range a.overview.Activity(model.FiveMinutes) {
		rates = append(rates, float64(p.GetRunsCompleted()+p.GetRunsFailed()+p.GetRunsStopped()))
	}
	return rates
}
