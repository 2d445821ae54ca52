// Package clock formats times and durations in the style that the person has chosen, based on the
// server's time.
package clock

import (
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"

	"google.golang.org/protobuf/types/known/timestamppb"

	"github.com/kagzi/kagzi/tui/render"
)

// Styles lists the ways to show a time, in the order in which a key switches them.
var Styles = []string{"relative", "local", "utc", "epoch"}

// Clock returns the server's time and formats times.
type Clock struct {
	Now   func() time.Time
	Style string // one of Styles
	Zone  *time.Location
}

// Stamp identifies when a text with times was made, and in which style.
type Stamp struct {
	style  string
	second int64
}

// Stamp returns the stamp of a text made now. A text with another stamp is stale.
func (c *Clock) Stamp() Stamp { return Stamp{c.Style, c.Now().Unix()} }

// Next switches to the next style.
func (c *Clock) Next() {
	c.Style = Styles[(slices.Index(Styles, c.Style)+1)%len(Styles)]
}

// Show returns a time in the chosen style; "-" if it is unset.
func (c *Clock) Show(t *timestamppb.Timestamp) string {
	if t == nil {
		return "-"
	}
	return c.at(t.AsTime())
}

func (c *Clock) at(t time.Time) string {
	switch c.Style {
	case "local":
		return t.In(c.Zone).Format("01-02 15:04:05")
	case "utc":
		return t.UTC().Format("01-02 15:04:05Z")
	case "epoch":
		return strconv.FormatInt(t.Unix(), 10)
	}
	return render.Ago(c.Now().Sub(t))
}

// Full returns a time where there is room: relative and as a date.
func (c *Clock) Full(t *timestamppb.Timestamp) string {
	if t == nil {
		return "-"
	}
	at, format := t.AsTime().In(c.Zone), "2006-01-02 15:04:05.000 MST"
	if c.Style == "utc" {
		at = at.UTC()
	}
	if c.Style == "epoch" {
		return strconv.FormatInt(at.UnixMilli(), 10)
	}
	return at.Format(format) + " (" + render.Ago(c.Now().Sub(t.AsTime())) + ")"
}

// View returns the options for the shared renderers.
func (c *Clock) View() render.View {
	v := render.View{Now: c.Now(), ISO: c.Style == "utc", Payloads: 200}
	if c.Style == "local" || c.Style == "epoch" {
		v.Moment = func(t *timestamppb.Timestamp, full bool) string {
			if full {
				return c.Full(t)
			}
			return c.Show(t)
		}
	}
	return v
}

// Took returns how long something ran; the time so far if it has no end, "-" if it has no start. A
// running duration is shown in seconds, and after the first minute in minutes, so an idle screen
// stays still.
func (c *Clock) Took(from, to *timestamppb.Timestamp) string {
	if from == nil {
		return "-"
	}
	if to != nil {
		return render.Duration(max(to.AsTime().Sub(from.AsTime()), 0))
	}
	d := max(c.Now().Sub(from.AsTime()), 0)
	if d < time.Minute {
		return render.Duration(d.Truncate(time.Second))
	}
	return strings.TrimSuffix(render.Duration(d.Truncate(time.Minute)), "0s")
}

// Exact returns a time to the millisecond, for comparing times.
func (c *Clock) Exact(t time.Time) string {
	switch c.Style {
	case "utc":
		return t.UTC().Format("2006-01-02 15:04:05.000Z")
	case "epoch":
		return fmt.Sprintf("%d.%03d", t.Unix(), t.Nanosecond()/int(time.Millisecond))
	}
	t = t.In(c.Zone)
	if now := c.Now().In(c.Zone); now.YearDay() == t.YearDay() && now.Year() == t.Year() {
		return t.Format("15:04:05.000")
	}
	return t.Format("01-02 15:04:05.000")
}
