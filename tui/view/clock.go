package view

import (
	"slices"
	"strconv"
	"time"

	"google.golang.org/protobuf/types/known/timestamppb"

	"github.com/kagzi/kagzi/tui/render"
)

// timeNames are the ways to show a moment, in the order in which a key goes through them.
var timeNames = []string{"relative", "local", "utc", "epoch"}

// clock says what time it is on the server, and how moments are shown.
type clock struct {
	now   func() time.Time
	style string // of timeNames
	zone  *time.Location
}

// stamp is when text that tells of moments was made, and how it shows them.
type stamp struct {
	style  string
	second int64
}

// stamp is that of text that is made now: text with another one no longer says what is so.
func (c *clock) stamp() stamp { return stamp{c.style, c.now().Unix()} }

// next is the style after this one.
func (c *clock) next() {
	c.style = timeNames[(slices.Index(timeNames, c.style)+1)%len(timeNames)]
}

// show is a moment in the style that is chosen; "-" when there is none.
func (c *clock) show(t *timestamppb.Timestamp) string {
	if t == nil {
		return "-"
	}
	return c.at(t.AsTime())
}

func (c *clock) at(t time.Time) string {
	switch c.style {
	case "local":
		return t.In(c.zone).Format("01-02 15:04:05")
	case "utc":
		return t.UTC().Format("01-02 15:04:05Z")
	case "epoch":
		return strconv.FormatInt(t.Unix(), 10)
	}
	return render.Ago(c.now().Sub(t))
}

// full is a moment for places with room: relative and as a date.
func (c *clock) full(t *timestamppb.Timestamp) string {
	if t == nil {
		return "-"
	}
	at, format := t.AsTime().In(c.zone), "2006-01-02 15:04:05.000 MST"
	if c.style == "utc" {
		at = at.UTC()
	}
	if c.style == "epoch" {
		return strconv.FormatInt(at.UnixMilli(), 10)
	}
	return at.Format(format) + " (" + render.Ago(c.now().Sub(t.AsTime())) + ")"
}

// view is how the shared renderers show values.
func (c *clock) view() render.View {
	v := render.View{Now: c.now(), ISO: c.style == "utc", Payloads: 200}
	if c.style == "local" || c.style == "epoch" {
		v.Moment = func(t *timestamppb.Timestamp, full bool) string {
			if full {
				return c.full(t)
			}
			return c.show(t)
		}
	}
	return v
}
