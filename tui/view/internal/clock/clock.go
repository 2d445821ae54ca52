// Package clock shows moments and lengths of time in the style that the person has chosen, on the time of the server.
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

// Styles lists the ways to show a moment, in the order in which a key goes through them.
var Styles = []string{"relative", "local", "utc", "epoch"}

// Clock says what time it is on the server, and how moments are shown.
type Clock struct {
	Now   func() time.Time
	Style string // of timeNames
	Zone  *time.Location
}

// Stamp holds when a text with times was made and how it shows them.
type Stamp struct {
	style  string
	second int64
}

// Stamp returns the stamp of a text made now: a text with another stamp is out of date.
func (c *Clock) Stamp() Stamp { return Stamp{c.Style, c.Now().Unix()} }

// Next switches to the style after this one.
func (c *Clock) Next() {
	c.Style = Styles[(slices.Index(Styles, c.Style)+1)%len(Styles)]
}

// Show returns a moment in the style that is chosen; "-" when there is none.
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

// Full returns a moment for places with room: relative and as a date.
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

// View returns how the shared renderers show values.
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

// Took returns how long something ran, so far where it has no end; "-" where it has no beginning.
// What goes on is shown in whole seconds, and in whole minutes after the first, so that a screen on
// which nothing happens stays quiet.
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

// Exact returns a moment to the millisecond, for places where what lies between moments matters.
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
