package view

import (
	"errors"
	"time"

	"github.com/gdamore/tcell/v2"
	"github.com/rivo/tview"
	"google.golang.org/protobuf/proto"

	"github.com/kagzi/kagzi/tui/internal/format"
	"github.com/kagzi/kagzi/tui/model"
	"github.com/kagzi/kagzi/tui/render"
	"github.com/kagzi/kagzi/tui/view/internal/overview"
)

// overviewPage summarises the namespace: warnings first, then what waits and what comes next. A
// cursor moves through its blocks, and enter opens the item under it.
type overviewPage struct {
	app *App
	*overview.Board
}

func openOverview(a *App, _ []string) (page, error) {
	return &overviewPage{app: a, Board: overview.New(overview.Source{
		Overview: a.overview, Link: a.link, Clock: &a.clock, Look: a.theme, File: a.options.File, Failed: a.failed,
		FailedFilter: onlyFailed, Reach: func() string { return a.scope().Reach() }, Open: a.pushView,
	})}, nil
}

func (p *overviewPage) Name() string   { return "overview" }
func (p *overviewPage) Crumb() string  { return "overview" }
func (p *overviewPage) Title() string  { return "Overview of " + p.app.link.Namespace() }
func (p *overviewPage) Show()          { p.app.overview.Show() }
func (p *overviewPage) Hide()          { p.app.overview.Hide() }
func (p *overviewPage) Close()         {} // the counters and warnings stay open
func (p *overviewPage) Refresh()       { p.app.overview.Refresh() }
func (p *overviewPage) Failure() error { return p.app.overview.Err() }

// Status shows how long the server has been up.
func (p *overviewPage) Status() string {
	info := p.app.overview.Info()
	if info.GetStartedAt() == nil {
		return ""
	}
	return "up " + format.Up(p.app.now().Sub(info.GetStartedAt().AsTime()))
}

// Pace is shorter while the next tick is near, so its countdown is right.
func (p *overviewPage) Pace() time.Duration {
	if fires := p.app.overview.Fires(); len(fires) > 0 {
		if left := fires[0].GetNextFireAt().AsTime().Sub(p.app.now()); left > 0 && left < time.Minute {
			return time.Second
		}
	}
	return slowPace
}

// Actions move through the page, open items and set the range of the charts.
func (p *overviewPage) Actions() []*Action {
	do := func(f func()) func([]string) error {
		return func([]string) error { f(); return nil }
	}
	list := []*Action{
		{Name: "open", Keys: []string{"enter"}, Help: "open the item under the cursor", Group: GroupMove, Hint: 1,
			Run: func([]string) error {
				i := p.Under()
				if i == nil {
					return errNothingUnder
				}
				return i.Open()
			}},
		{Name: "next", Keys: []string{"tab"}, Short: "next part", Help: "go to the next part",
			Group: GroupMove, Hint: 2, Run: do(func() { p.Step(1) })},
		{Name: "previous", Keys: []string{"shift-tab"}, Help: "go to the previous part", Group: GroupMove,
			Run: do(func() { p.Step(-1) })},
	}
	if p.app.options.File { // no charts
		return list
	}
	return append(list,
		&Action{Name: "range", Args: "5m|1h|24h", Help: "set the range of the charts",
			Group: GroupView, Run: p.setRange,
			Complete: func(text string) []string { return beginning(rangeNames, text) }},
		&Action{Name: "longer", Keys: []string{"}"}, Short: "longer", Help: "show a longer range",
			Group: GroupView, Hint: 3, Run: do(func() { p.Span = min(p.Span+1, model.Day) })},
		&Action{Name: "shorter", Keys: []string{"{"}, Help: "show a shorter range", Group: GroupView,
			Run: do(func() { p.Span = max(p.Span, 1) - 1 })},
	)
}

// rangeNames holds the ranges as they are typed, shortest first.
var rangeNames = []string{"5m", "1h", "24h"}

func (p *overviewPage) setRange(args []string) error {
	for i, name := range rangeNames {
		if len(args) == 1 && args[0] == name {
			p.Span = model.Range(i)
			return nil
		}
	}
	return errors.New("want range 5m, 1h or 24h")
}

// CopyID returns the id of the item under the cursor.
func (p *overviewPage) CopyID() string {
	if i := p.Under(); i != nil {
		return i.ID
	}
	return ""
}

// CopyAll returns the item under the cursor as JSON.
func (p *overviewPage) CopyAll() string {
	i := p.Under()
	if i == nil {
		return ""
	}
	return document(i.Message)
}

// Rows returns the items of all blocks, one after the other.
func (p *overviewPage) Rows() (titles []string, rows [][]string) {
	blocks := p.Blocks()
	for _, id := range overview.BlockOrder {
		for _, i := range blocks[id].Items {
			row := []string{id}
			for _, cell := range i.Cells {
				row = append(row, cell.Text)
			}
			rows = append(rows, append(row, make([]string, 1+overview.MostCells-len(row))...))
		}
	}
	return []string{"PART", "WHAT", "VALUE", "MORE"}, rows
}

// JSON returns the counts of the namespace.
func (p *overviewPage) JSON() ([]byte, error) {
	raw, err := render.JSON(render.Documents([]proto.Message{p.app.overview.Stats()}), "  ")
	return append(raw, '\n'), err
}

// Mouse moves the cursor to a click; a second click opens the item.
func (p *overviewPage) Mouse(action tview.MouseAction, event *tcell.EventMouse) bool {
	switch action {
	case tview.MouseScrollDown:
		p.Move(1)
	case tview.MouseScrollUp:
		p.Move(-1)
	case tview.MouseLeftClick, tview.MouseLeftDoubleClick:
		if x, y := event.Position(); !p.Point(x, y) {
			return false
		}
		if i := p.Under(); i != nil && action == tview.MouseLeftDoubleClick {
			p.app.done(i.Open())
		}
	default:
		return false
	}
	return true
}
