package view

import (
	"strconv"
	"time"

	"github.com/gdamore/tcell/v2"

	kagziv1 "github.com/kagzi/kagzi/proto/kagzi/v1"
	"github.com/kagzi/kagzi/tui/render"
	"github.com/kagzi/kagzi/tui/theme"
)

// eventTime is when an event was noted: the time of day, and the day as well when it was another one. Ages would change all the time.
func (a *App) eventTime(e *kagziv1.ServerEvent) string {
	zone, suffix := a.clock.zone, ""
	switch a.clock.style {
	case "epoch":
		return strconv.FormatInt(e.GetAt().GetSeconds(), 10)
	case "utc":
		zone, suffix = time.UTC, "Z"
	}
	at, now := e.GetAt().AsTime().In(zone), a.now().In(zone)
	if at.YearDay() == now.YearDay() && at.Year() == now.Year() {
		return at.Format(time.TimeOnly) + suffix
	}
	return at.Format("01-02 15:04") + suffix
}

// timeWidth is how much room the times of events need, of which the first and the last are the widest.
func (p *eventsPage) timeWidth() int {
	first, last := p.rows.find(p.rows.first), p.rows.find(p.rows.last)
	return max(len(p.app.eventTime(p.rows.list[first].event)), len(p.app.eventTime(p.rows.list[last].event)))
}

func (p *eventsPage) selectedStyle(render.Style) tcell.Style {
	return p.app.look.Role(theme.Selected)
}

func (p *eventsPage) staleStyle(render.Style) tcell.Style { return p.app.look.Role(theme.Stale) }
