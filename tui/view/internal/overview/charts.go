package overview

import (
	"fmt"

	kagziv1 "github.com/kagzi/kagzi/proto/kagzi/v1"
	"github.com/kagzi/kagzi/tui/internal/format"
	"github.com/kagzi/kagzi/tui/render"
	"github.com/kagzi/kagzi/tui/theme"
	"github.com/kagzi/kagzi/tui/widget"
)

// chart is one of the series of the overview.
type chart struct {
	title string
	style render.Style
	value func(*kagziv1.ActivityPoint) float64
	rate  bool // counts, shown per second; otherwise milliseconds
}

var chartList = [charts]chart{
	{"started", render.Busy, func(a *kagziv1.ActivityPoint) float64 { return float64(a.GetRunsStarted()) }, true},
	{"completed", render.Good, func(a *kagziv1.ActivityPoint) float64 { return float64(a.GetRunsCompleted()) }, true},
	{"failed", render.Bad, func(a *kagziv1.ActivityPoint) float64 { return float64(a.GetRunsFailed()) }, true},
	{"write p95", render.Waiting, (*kagziv1.ActivityPoint).GetWriteP95Ms, false},
	{"tick lag", render.Asleep, (*kagziv1.ActivityPoint).GetScheduleLagMs, false},
}

const (
	chartTitle = 10 // cells
	chartValue = 21
)

// drawActivity draws the recent activity of the server, over all namespaces.
func (p *Board) drawActivity(c widget.Canvas) {
	if p.File {
		c.Cut(0, 0, c.W, "Database file", p.Look().Role(theme.Title))
		for i, line := range []string{"No server is running here: throughput", "is known only to a server."} {
			c.Cut(0, 1+i, c.W, line, p.style(render.Dim))
		}
		return
	}
	if p.Overview.Sealed() {
		c.Cut(0, 0, c.W, "Server", p.Look().Role(theme.Title))
		for i, line := range []string{"The server reports its activity only",
			"to admins of all namespaces."} {
			c.Cut(0, 1+i, c.W, line, p.style(render.Dim))
		}
		return
	}
	x := c.Cut(0, 0, c.W, "Server, last "+p.Span.String(), p.Look().Role(theme.Title)) + 2
	c.Cut(x, 0, c.W-x, "{ } range", p.style(render.Dim))
	points := p.Overview.Activity(p.Span)
	rows := max((c.H-1)/charts, 1)
	for i, ch := range chartList {
		p.drawChart(c.Part(0, 1+i*rows, c.W, rows), ch, points)
	}
}

// drawChart draws a series between its title and its latest value.
func (p *Board) drawChart(c widget.Canvas, ch chart, points []*kagziv1.ActivityPoint) {
	values := make([]float64, len(points))
	for i, point := range points {
		values[i] = ch.value(point)
		if ch.rate {
			values[i] /= p.Span.Step().Seconds()
		}
	}
	bottom := c.H - 1
	c.Cut(0, bottom, chartTitle, ch.title, p.style(render.Plain))
	room := c.W - chartTitle - chartValue - 2
	last := p.Clock.Now().UnixNano()/int64(p.Span.Step()) - 1
	bars := Buckets(values, last, room, ch.rate)
	widget.Spark(c.Part(chartTitle, 0, min(len(bars), room), c.H), bars, p.style(ch.style))
	c.Cut(chartTitle+room+1, bottom, chartValue+1, ch.summary(values, bars), p.style(render.Dim))
}

// summary returns the latest value and the peak.
func (ch chart) summary(values, bars []float64) string {
	most, latest := 0.0, 0.0
	for _, v := range bars {
		most = max(most, v)
	}
	for _, v := range values {
		if v > 0 {
			latest = v
		}
	}
	if ch.rate {
		now := Lately(values) // over fewer points than a column may hold
		return fmt.Sprintf("%s, peak %s", format.PerTime(now), format.PerTime(max(most, now)))
	}
	if most == 0 {
		return "none"
	}
	return fmt.Sprintf("%s, peak %s", format.Milliseconds(latest), format.Milliseconds(most))
}

// latelyPoints is the number of points averaged for the latest value, so it does not jump.
const latelyPoints = 10

// Lately returns the mean of the last points.
func Lately(values []float64) float64 {
	values = values[max(len(values)-latelyPoints, 0):]
	sum := 0.0
	for _, v := range values {
		sum += v
	}
	return sum / max(float64(len(values)), 1)
}

// Buckets groups values into at most n columns, each the mean or the largest of several; few values
// are drawn wider. last is the number of the last value since the epoch: columns start at whole
// multiples, so they shift together, and rarely.
func Buckets(values []float64, last int64, n int, mean bool) []float64 {
	if n <= 0 || len(values) == 0 {
		return nil
	}
	if wide := n / len(values); wide > 1 {
		columns := make([]float64, 0, len(values)*wide)
		for _, v := range values {
			for range wide {
				columns = append(columns, v)
			}
		}
		return columns
	}
	per := int64((len(values) + n - 1) / n)
	columns := make([]float64, (int64(len(values))+per-1)/per)
	for i, v := range values {
		back := last/per - (last-int64(len(values)-1-i))/per
		at := int64(len(columns)) - 1 - back
		switch {
		case at < 0:
		case mean:
			columns[at] += v / float64(per)
		default:
			columns[at] = max(columns[at], v)
		}
	}
	return columns
}
