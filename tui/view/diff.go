package view

import (
	"errors"
	"fmt"
	"strings"

	"github.com/gdamore/tcell/v2"
	"github.com/rivo/tview"

	kagziv1 "github.com/kagzi/kagzi/proto/kagzi/v1"
	"github.com/kagzi/kagzi/tui/internal/clock"
	"github.com/kagzi/kagzi/tui/internal/diff"
	"github.com/kagzi/kagzi/tui/internal/format"
	"github.com/kagzi/kagzi/tui/model"
	"github.com/kagzi/kagzi/tui/render"
	"github.com/kagzi/kagzi/tui/theme"
	"github.com/kagzi/kagzi/tui/widget"
)

// diffPage shows two runs side by side and marks the differences.
type diffPage struct {
	app   *App
	sides [2]*diffSide
	text  *widget.Lines
	rows  []diff.Row
	stale bool
	width int         // that the lines were made for
	made  clock.Stamp // when the lines were made
	at    int         // current difference for n and N; -1 before the first
	shown bool
}

// diffSide is one of the two runs.
type diffSide struct {
	ref    string
	finder *runFinder
	run    *model.Run // nil until found
}

func openDiff(a *App, args []string) (page, error) {
	if len(args) != 2 {
		return nil, errors.New("diff takes two runs: by id, id prefix or external id")
	}
	p := &diffPage{app: a, text: widget.NewLines(a.theme), stale: true, at: -1}
	p.text.SetWrap(false)
	for i, ref := range args {
		side := &diffSide{ref: ref}
		p.sides[i] = side
		if isRunID(ref) {
			p.follow(side, strings.ToLower(ref))
			continue
		}
		side.finder = newRunFinder(a, ref, func(id string) {
			p.follow(side, id)
			if p.shown {
				side.run.Show()
			}
		})
	}
	return p, nil
}

func (p *diffPage) follow(side *diffSide, id string) {
	side.run = model.NewRun(p.app.link, id)
	side.run.Changed = func() { p.stale = true }
}

func (s *diffSide) workflow() *kagziv1.Workflow {
	if s.run == nil {
		return nil
	}
	return s.run.Workflow()
}

// name returns what people call the run.
func (s *diffSide) name() string {
	if r := s.workflow(); r != nil {
		return runTitle(r)
	}
	return format.ShortID(s.ref)
}

// loaded reports whether both runs are loaded.
func (p *diffPage) loaded() bool {
	for _, s := range p.sides {
		if s.workflow() == nil || !s.run.Loaded() {
			return false
		}
	}
	return true
}

func (p *diffPage) Name() string  { return "diff" }
func (p *diffPage) Crumb() string { return "diff " + p.sides[0].name() + " " + p.sides[1].name() }
func (p *diffPage) Title() string { return "Diff  " + p.sides[0].name() + " | " + p.sides[1].name() }

// Status shows how many differences there are.
func (p *diffPage) Status() string {
	if !p.loaded() {
		return ""
	}
	switch n := len(diff.Differences(p.rows)); {
	case n == 0:
		return "no differences"
	case p.at >= 0 && p.at < n:
		return fmt.Sprintf("difference %d of %d", p.at+1, n)
	case n == 1:
		return "1 difference"
	default:
		return fmt.Sprintf("%d differences", n)
	}
}

func (p *diffPage) Show() {
	p.shown = true
	for _, s := range p.sides {
		if s.finder != nil {
			s.finder.start()
		}
		if s.run != nil {
			s.run.Show()
		}
	}
}

func (p *diffPage) Hide() {
	p.shown = false
	for _, s := range p.sides {
		if s.finder != nil {
			s.finder.stop()
		}
		if s.run != nil {
			s.run.Hide()
		}
	}
}

func (p *diffPage) Close() {
	for _, s := range p.sides {
		if s.finder != nil {
			s.finder.close()
		}
		if s.run != nil {
			s.run.Close()
		}
	}
}

// Refresh reads both runs again.
func (p *diffPage) Refresh() {
	for _, s := range p.sides {
		if s.finder != nil {
			s.finder.start()
		}
		if s.run != nil {
			s.run.Refresh()
		}
	}
}

// Failure returns why one of them cannot be shown.
func (p *diffPage) Failure() error {
	for _, s := range p.sides {
		switch {
		case s.run != nil && s.run.Err() != nil:
			return s.run.Err()
		case s.run == nil && s.finder.err != nil:
			return s.finder.err
		case s.run == nil && p.app.link.State().Down():
			return p.app.link.State().Err
		}
	}
	return nil
}

func (p *diffPage) Draw(c widget.Canvas) {
	if !p.loaded() {
		drawMiddle(c, widget.TextLine("Reading …", render.Dim))
		return
	}
	if made := p.app.clock.Stamp(); p.stale || p.width != c.W || p.made != made {
		p.stale, p.width, p.made = false, c.W, made
		p.rows = diff.Runs([2]diff.Side{
			{Run: p.sides[0].workflow(), Steps: p.sides[0].run.Lanes()},
			{Run: p.sides[1].workflow(), Steps: p.sides[1].run.Lanes()},
		}, &p.app.clock, p.app.look)
		lines := make([]widget.Line, len(p.rows))
		for i, row := range p.rows {
			lines[i] = row.Line((c.W-diff.Gutter)/2, p.app.look)
		}
		p.text.SetLines(lines)
	}
	for i, s := range p.sides {
		x := i * ((c.W-diff.Gutter)/2 + diff.Gutter)
		c.Part(0, 0, x+(c.W-diff.Gutter)/2, 1).Cut(x, 0, c.W, s.name(), c.Theme.Role(theme.Title))
	}
	p.text.SetRect(c.X, c.Y+1, c.W, c.H-1)
	p.text.Draw(c.Screen)
}

func (p *diffPage) Key(event *tcell.EventKey) bool { return p.text.Key(event) }

func (p *diffPage) Mouse(action tview.MouseAction, event *tcell.EventMouse) bool {
	consumed, _ := p.text.MouseHandler()(action, event, func(tview.Primitive) {})
	return consumed
}

// leap goes to the next or previous difference.
func (p *diffPage) leap(step int) error {
	all := diff.Differences(p.rows)
	if len(all) == 0 {
		return errors.New("the two runs do not differ")
	}
	if p.at < 0 && step < 0 {
		p.at = 0
	}
	p.at = (p.at + step + len(all)) % len(all)
	p.text.Top()
	p.text.Scroll(max(all[p.at]-2, 0)) // two rows of context above it
	return nil
}

// Actions go to differences and open the runs.
func (p *diffPage) Actions() []*Action {
	open := func(side int) func([]string) error {
		return func([]string) error {
			if p.sides[side].run == nil {
				return errNotRead
			}
			return p.app.pushView("run", p.sides[side].run.ID())
		}
	}
	return []*Action{
		{Name: "next-difference", Keys: []string{"n"}, Short: "next", Help: "go to the next difference",
			Group: GroupMove,
			Hint:  1, Run: func([]string) error { return p.leap(1) }},
		{Name: "previous-difference", Keys: []string{"N"}, Help: "go to the previous difference", Group: GroupMove,
			Run: func([]string) error { return p.leap(-1) }},
		{Name: "left", Keys: []string{"<"}, Help: "open the run on the left", Group: GroupMove, Hint: 2, Run: open(0)},
		{Name: "right", Keys: []string{">"}, Help: "open the run on the right", Group: GroupMove, Hint: 3,
			Run: open(1)},
		{Name: "copy-text", Keys: []string{"y"}, Short: "copy", Help: "copy the comparison as text", Group: GroupView,
			Hint: 4, Run: func([]string) error { return p.app.copy("comparison", p.text.Text()) }},
	}
}
