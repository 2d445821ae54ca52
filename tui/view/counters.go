package view

import (
	"fmt"
	"strconv"
	"time"

	"github.com/gdamore/tcell/v2"

	kagziv1 "github.com/kagzi/kagzi/proto/kagzi/v1"
	"github.com/kagzi/kagzi/tui/model"
	"github.com/kagzi/kagzi/tui/render"
	"github.com/kagzi/kagzi/tui/theme"
	"github.com/kagzi/kagzi/tui/widget"
)

// counted are the statuses in the line of counters.
var counted = []kagziv1.WorkflowStatus{
	kagziv1.WorkflowStatus_WORKFLOW_STATUS_RUNNING, kagziv1.WorkflowStatus_WORKFLOW_STATUS_PENDING, kagziv1.WorkflowStatus_WORKFLOW_STATUS_SLEEPING,
}

// drawCounters says how many runs are in each state, who works, and how much gets done. What does not fit is left out, from the right.
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

// counters are the counts of the namespace in one line.
func (a *App) counters(stats *kagziv1.GetStatsResponse) []render.Cell {
	var cells []render.Cell
	for _, status := range counted {
		sign := theme.OfStatus(status)
		n := stats.GetWorkflowsByStatus()[render.RunStatus(status)]
		if n == 0 {
			sign.Style = render.Dim
		}
		cells = append(cells, render.Cell{Text: a.look.Glyph(sign.Glyph) + " " + number(n) + " " + sign.Word, Style: sign.Style})
	}
	lately, since, _ := a.failed(stats)
	failed := render.Cell{Text: fmt.Sprintf("%s %s failed %s", a.look.Glyph(theme.Failed), number(lately), since), Style: render.Dim}
	if lately > 0 {
		failed.Style = render.Bad
	}
	workers := render.Cell{Text: fmt.Sprintf("%d of %d workers online", stats.GetOnlineWorkers(), stats.GetTotalWorkers())}
	if stats.GetOnlineWorkers() == 0 {
		workers = render.Cell{Text: "no worker online", Style: render.Waiting}
	}
	return append(cells, failed, workers)
}

// failed is how many runs failed lately, and where and since when, also in the few cells of a tile: in the last hour, or since the start of a
// server that is younger, which counts from then on. It is of the server that this terminal is connected to, in all namespaces, and says so,
// since the numbers beside it are the namespace's. Where the server does not tell that, it is those of the namespace that are kept.
func (a *App) failed(stats *kagziv1.GetStatsResponse) (n int64, since, short string) {
	started := a.overview.Info().GetStartedAt()
	switch {
	case a.options.File || a.overview.Sealed():
		byStatus := stats.GetWorkflowsByStatus()
		return byStatus["FAILED"] + byStatus["TIMED_OUT"], "in all", "in all"
	case started != nil && a.now().Sub(started.AsTime()) < time.Hour:
		up := "<1m"
		if d := a.now().Sub(started.AsTime()); d >= time.Minute {
			up = a.waited(d)
		}
		return a.overview.FailedLastHour(), "on server since start", "server, up " + up
	}
	return a.overview.FailedLastHour(), "on server in 1 h", "server, 1 h"
}

const (
	doneText  = 12 // cells of "1 234/s done"
	doneSpark = 40 // of the chart at most
	// leastSpark is the least of it that says anything; at 120 columns there is little more.
	leastSpark = 6
)

// drawDone says how many runs end in a second, now and in the last five minutes.
func (a *App) drawDone(c widget.Canvas, style func(render.Style) tcell.Style) {
	rates := a.doneRates()
	if c.W < doneText+leastSpark || a.options.File || a.overview.Sealed() {
		return
	}
	x := c.Text(0, 0, perTime(lately(rates))+" done ", style(render.Dim))
	last := a.now().Unix() - 1
	bars := buckets(rates, last, min(doneSpark, c.W-x), true)
	widget.Spark(c.Part(x, 0, len(bars), 1), bars, style(render.Good))
}

// number groups the digits of large numbers: 12 481.
func number(n int64) string {
	digits := strconv.FormatInt(n, 10)
	for i := len(digits) - 3; i > 0 && digits[i-1] != '-'; i -= 3 {
		digits = digits[:i] + " " + digits[i:]
	}
	return digits
}

// connection is how the server is reached, as a sign.
func (a *App) connection() theme.Sign {
	state := a.link.State()
	if a.frozen {
		return theme.Sign{Glyph: theme.Paused, Word: "frozen", Style: render.Paused}
	}
	switch state.Phase {
	case model.Live:
		if a.options.File { // what a server writes to it is seen, but none is asked whether it lives
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
