package demo

import (
	"fmt"
	"io"
	"strings"
	"sync"
	"time"

	"github.com/kagzi/kagzi/tui/render"
)

// redrawEvery is how often a terminal's lines are redrawn, for the clock and the spinner.
const redrawEvery = 100 * time.Millisecond

var spinner = [...]string{"|", "/", "-", `\`}

// board shows running runs: in a terminal one updated line per run, elsewhere one line per event.
type board struct {
	screen screen
	began  time.Time

	mu     sync.Mutex
	rows   []row
	drawn  int // lines
	frame  int
	ticker *time.Ticker
	ended  chan struct{}
	ticks  sync.WaitGroup
}

type row struct {
	title  string
	status string
	style  render.Style
	detail string
	took   time.Duration // set once judged
	judged bool
	good   bool
}

// newBoard starts to show the board; close it.
func newBoard(s screen, titles []string) *board {
	b := &board{screen: s, began: time.Now(), ended: make(chan struct{})}
	for _, t := range titles {
		b.rows = append(b.rows, row{title: t})
	}
	if s.terminal {
		b.ticker = time.NewTicker(redrawEvery)
		b.ticks.Go(b.tick)
	}
	return b
}

func (b *board) tick() {
	for {
		select {
		case <-b.ticker.C:
			b.mu.Lock()
			b.frame++
			b.draw()
			b.mu.Unlock()
		case <-b.ended:
			return
		}
	}
}

// close leaves the last state on the screen.
func (b *board) close() {
	close(b.ended)
	b.ticks.Wait()
	if b.ticker == nil {
		return
	}
	b.ticker.Stop()
	b.mu.Lock()
	defer b.mu.Unlock()
	b.draw()
}

// status shows a new status of a run.
func (b *board) status(i int, status string, style render.Style) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.rows[i].status, b.rows[i].style = status, style
	b.print(i, b.screen.paint(status, style))
}

// detail shows the progress of a run; event describes what happened, and is empty if it is not
// worth a line.
func (b *board) detail(i int, detail, event string) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.rows[i].detail = render.Safe(detail)
	if event != "" {
		b.print(i, render.Safe(event))
	}
}

// judge shows the result of checking a run.
func (b *board) judge(i int, good bool, note string) {
	b.mu.Lock()
	defer b.mu.Unlock()
	r := &b.rows[i]
	r.judged, r.good, r.detail, r.took = true, good, render.Safe(note), time.Since(b.began)
	b.print(i, b.screen.paint(r.mark(""), r.markStyle())+" "+r.detail)
}

// print writes a line for an event if lines are not updated in place. Needs mu.
func (b *board) print(i int, text string) {
	if b.screen.terminal {
		return
	}
	since := fmt.Sprintf("%7.3fs", time.Since(b.began).Seconds())
	b.screen.line(since + "  " + pad(b.rows[i].title, titleWidth) + "  " + text)
}

const (
	titleWidth  = 10
	statusWidth = len("COMPLETED")
)

func pad(s string, cells int) string { return s + strings.Repeat(" ", max(0, cells-render.Width(s))) }

// wrapWords breaks text at spaces into lines of at most cells, except for longer words; 0 is no limit.
func wrapWords(s string, cells int) []string {
	var lines []string
	line := ""
	for word := range strings.FieldsSeq(s) {
		switch {
		case line == "":
			line = word
		case cells > 0 && render.Width(line)+1+render.Width(word) > cells:
			lines = append(lines, line)
			line = word
		default:
			line += " " + word
		}
	}
	return append(lines, line)
}

// draw writes all lines over the previous ones. Needs mu.
func (b *board) draw() {
	table := render.Table{Columns: []render.Column{
		{}, {Title: "WORKFLOW"}, {Title: "STATUS"}, {Title: "TIME", Right: true}, {Title: "PROGRESS", Flex: true},
	}}
	for _, r := range b.rows {
		took := r.took
		if !r.judged {
			took = time.Since(b.began)
		}
		table.Rows = append(table.Rows, []render.Cell{
			{Text: r.mark(spinner[b.frame%len(spinner)]), Style: r.markStyle()},
			{Text: r.title, Style: render.Strong},
			{Text: pad(r.status, statusWidth), Style: r.style},
			{Text: fmt.Sprintf("%.1fs", took.Seconds()), Style: render.Dim},
			{Text: r.detail},
		})
	}
	var text strings.Builder
	if b.drawn > 0 {
		fmt.Fprintf(&text, "\x1b[%dA", b.drawn)
	}
	lines := table.Lines(render.Layout{Width: b.screen.width - 1, Colour: b.screen.colour})
	for _, line := range lines {
		text.WriteString("\r\x1b[K" + line + "\n")
	}
	b.drawn = len(lines)
	b.screen.write(text.String())
}

func (r row) mark(busy string) string {
	switch {
	case !r.judged:
		return busy
	case r.good:
		return "✓"
	}
	return "✗"
}

func (r row) markStyle() render.Style {
	switch {
	case !r.judged:
		return render.Dim
	case r.good:
		return render.Good
	}
	return render.Bad
}

// screen is the demo's output and what is known about it.
type screen struct {
	out      io.Writer
	terminal bool // lines can be updated in place
	colour   bool
	width    int // cells; 0 if it is not a terminal
}

func (s screen) write(text string) { _, _ = io.WriteString(s.out, text) } // a closed output is no reason to fail

func (s screen) line(text string) { s.write(text + "\n") }

func (s screen) paint(text string, style render.Style) string {
	if !s.colour {
		return text
	}
	return render.Paint(text, style)
}
