// Package diff compares two runs side by side: facts, steps, payloads and errors.
package diff

import (
	"crypto/sha256"
	"fmt"
	"strconv"
	"strings"
	"time"

	kagziv1 "github.com/kagzi/kagzi/proto/kagzi/v1"
	"github.com/kagzi/kagzi/tui/internal/clock"
	"github.com/kagzi/kagzi/tui/internal/format"
	"github.com/kagzi/kagzi/tui/model"
	"github.com/kagzi/kagzi/tui/render"
	"github.com/kagzi/kagzi/tui/theme"
	"github.com/kagzi/kagzi/tui/widget"
)

// Gutter is the number of cells between the two sides.
const Gutter = 3

// Row is a line of a comparison: the text of each side, and whether they differ.
type Row struct {
	Left, Right string
	differs     bool
	heading     bool
	styles      [2]render.Style
}

// Differs reports whether the sides differ.
func (r Row) Differs() bool { return r.differs }

// Heading reports whether the row is a title.
func (r Row) Heading() bool { return r.heading }

// Line returns the row in two columns, for a total width.
func (r Row) Line(width int, look *theme.Theme) widget.Line {
	if r.heading {
		return widget.TextLine(r.Left, render.Strong)
	}
	mark, style := " ", render.Dim
	if r.differs {
		mark, style = "≠", render.Waiting
		if look.ASCII() {
			mark = "!"
		}
	}
	styles := r.styles
	for i := range styles {
		if r.differs && styles[i] == render.Plain {
			styles[i] = render.Waiting
		}
	}
	left := render.Truncate(render.Safe(r.Left), max(width, 1))
	return widget.Line{Cells: []render.Cell{
		{Text: left + strings.Repeat(" ", max(width-render.Width(left), 0)), Style: styles[0]},
		{Text: " " + mark + " ", Style: style},
		{Text: render.Truncate(render.Safe(r.Right), max(width, 1)), Style: styles[1]},
	}}
}

// Differences returns the first row of each group of rows that differ.
func Differences(rows []Row) []int {
	var list []int
	for i, r := range rows {
		if r.differs && (i == 0 || !rows[i-1].differs) {
			list = append(list, i)
		}
	}
	return list
}

// Side holds a run with its steps.
type Side struct {
	Run   *kagziv1.Workflow
	Steps []model.Lane
}

// comparison holds the options of a comparison.
type comparison struct {
	clock *clock.Clock
	look  *theme.Theme
}

// Runs returns all rows of a comparison: facts, inputs, steps and results.
func Runs(sides [2]Side, at *clock.Clock, look *theme.Theme) []Row {
	p := &comparison{clock: at, look: look}
	left, right := sides[0].Run, sides[1].Run
	var rows []Row
	section := func(title string, body []Row) {
		if len(body) == 0 {
			return
		}
		if len(rows) > 0 {
			rows = append(rows, Row{})
		}
		rows = append(append(rows, Row{Left: title, heading: true}), body...)
	}
	section("Run", p.compareFacts(left, right))
	section("Error", compareText(errorText(left.GetError()), errorText(right.GetError())))
	section("Steps", p.compareSteps(sides[0].Steps, sides[1].Steps))
	section("Input", compareText(payloadText(left.GetInput()), payloadText(right.GetInput())))
	section("Output", compareText(payloadText(left.GetOutput()), payloadText(right.GetOutput())))
	return rows
}

// compareFacts compares the facts of the runs. Ids, workers and times differ even between equal
// runs, so they are not marked.
func (p *comparison) compareFacts(left, right *kagziv1.Workflow) []Row {
	var rows []Row
	add := func(label string, marked bool, of func(*kagziv1.Workflow) string) {
		l, r := of(left), of(right)
		if l == "" && r == "" {
			return
		}
		rows = append(rows, Row{Left: format.Pad(label, 11) + l, Right: format.Pad(label, 11) + r,
			differs: marked && l != r})
	}
	add("status", true, func(r *kagziv1.Workflow) string { return theme.OfRun(r).Word })
	add("type", true, (*kagziv1.Workflow).GetWorkflowType)
	add("version", true, (*kagziv1.Workflow).GetVersion)
	add("queue", true, (*kagziv1.Workflow).GetTaskQueue)
	add("worker", false, (*kagziv1.Workflow).GetWorkerId)
	add("attempt", true, func(r *kagziv1.Workflow) string { return strconv.Itoa(int(r.GetAttempts())) })
	add("retries", true, func(r *kagziv1.Workflow) string {
		if left.GetStepRetries() == 0 && right.GetStepRetries() == 0 {
			return ""
		}
		return strconv.Itoa(int(r.GetStepRetries()))
	})
	add("priority", true, func(r *kagziv1.Workflow) string {
		if left.GetPriority() == 0 && right.GetPriority() == 0 {
			return ""
		}
		return strconv.Itoa(int(r.GetPriority()))
	})
	add("tags", true, func(r *kagziv1.Workflow) string { return format.Tags(r.GetTags()) })
	add("run id", false, (*kagziv1.Workflow).GetRunId)
	add("ext id", false, (*kagziv1.Workflow).GetExternalId)
	add("created", false, func(r *kagziv1.Workflow) string { return p.clock.Show(r.GetCreatedAt()) })
	add("waited", false, func(r *kagziv1.Workflow) string { return p.clock.Took(r.GetCreatedAt(), r.GetStartedAt()) })
	add("took", false, func(r *kagziv1.Workflow) string { return p.clock.Took(r.GetStartedAt(), r.GetFinishedAt()) })
	return rows
}

// compareSteps pairs the steps with the same name, in the order in which they started.
func (p *comparison) compareSteps(left, right []model.Lane) []Row {
	names := func(lanes []model.Lane) []string {
		list := make([]string, len(lanes))
		for i := range lanes {
			list[i] = lanes[i].Name
		}
		return list
	}
	wide := max(format.NameWidth(left), format.NameWidth(right))
	var rows []Row
	for _, pair := range apart(align(names(left), names(right)), left, right) {
		row := Row{}
		var l, r *model.Lane
		if pair.left >= 0 {
			l = &left[pair.left]
			row.Left, row.styles[0] = p.stepText(l, wide), troubleStyle(l)
		}
		if pair.right >= 0 {
			r = &right[pair.right]
			row.Right, row.styles[1] = p.stepText(r, wide), troubleStyle(r)
		}
		row.differs = l == nil || r == nil || stepsDiffer(l, r)
		rows = append(rows, row)
	}
	return rows
}

// apart gives steps with different names separate rows.
func apart(pairs []pairing, left, right []model.Lane) []pairing {
	var list []pairing
	for _, pair := range pairs {
		if pair.left >= 0 && pair.right >= 0 && left[pair.left].Name != right[pair.right].Name {
			list = append(list, pairing{pair.left, -1}, pairing{-1, pair.right})
			continue
		}
		list = append(list, pair)
	}
	return list
}

func troubleStyle(l *model.Lane) render.Style {
	if l.Failed {
		return render.Bad
	}
	return render.Plain
}

// stepText returns a step as a line: status, duration, attempts and error.
func (p *comparison) stepText(l *model.Lane, wide int) string {
	name := render.Safe(l.Name)
	text := p.look.Glyph(theme.OfStep(l.Step).Glyph) + " " + name + strings.Repeat(" ", max(wide-render.Width(name), 0))
	text += fmt.Sprintf("  %6s", p.clock.Took(l.Step.GetStartedAt(), l.Step.GetFinishedAt()))
	if n := l.Step.GetAttemptNumber(); n > 1 {
		text += fmt.Sprintf("  attempt %d", n)
	}
	if l.Step.GetError() != nil {
		text += "  " + render.ErrorLine(l.Step.GetError())
	}
	return text
}

const (
	slower   = 2                      // a duration this many times as long counts as a difference,
	slowFrom = 100 * time.Millisecond // if it is also longer by this much
)

// stepsDiffer reports whether two steps differ in status, number of attempts, or clearly in
// duration.
func stepsDiffer(l, r *model.Lane) bool {
	if l.Step.GetStatus() != r.Step.GetStatus() || l.Step.GetAttemptNumber() != r.Step.GetAttemptNumber() ||
		l.Step.GetError().GetMessage() != r.Step.GetError().GetMessage() ||
		l.Step.GetOverriddenBy() != r.Step.GetOverriddenBy() {
		return true
	}
	if l.Step.GetFinishedAt() == nil || r.Step.GetFinishedAt() == nil || l.Step.GetStartedAt() == nil ||
		r.Step.GetStartedAt() == nil {
		return false
	}
	a := l.Step.GetFinishedAt().AsTime().Sub(l.Step.GetStartedAt().AsTime())
	b := r.Step.GetFinishedAt().AsTime().Sub(r.Step.GetStartedAt().AsTime())
	short, long := min(a, b), max(a, b)
	return long-short >= slowFrom && long >= slower*short
}

// compareText puts equal lines beside each other.
func compareText(left, right []string) []Row {
	var rows []Row
	for _, pair := range align(left, right) {
		row := Row{differs: pair.left < 0 || pair.right < 0 || left[pair.left] != right[pair.right]}
		if pair.left >= 0 {
			row.Left = left[pair.left]
		}
		if pair.right >= 0 {
			row.Right = right[pair.right]
		}
		rows = append(rows, row)
	}
	return rows
}

func errorText(e *kagziv1.ErrorDetail) []string {
	var lines []string
	for _, l := range format.ErrorLines(e) {
		lines = append(lines, l.Text())
	}
	return lines
}

// diffBytes limits how much of a payload is compared line by line.
const diffBytes = 256 << 10

func payloadText(p *kagziv1.Payload) []string {
	switch {
	case len(p.GetData()) == 0:
		return nil
	case len(p.GetData()) > diffBytes:
		return []string{format.PayloadKind(p) + ", too large to compare line by line",
			fmt.Sprintf("sha256 %x", sha256.Sum256(p.GetData()))}
	}
	lines := render.PayloadLines(p, -1)
	if _, hidden := render.Encrypted(p); hidden { // the codec's output differs even for equal payloads
		lines = append(lines, fmt.Sprintf("sha256 %x", sha256.Sum256(p.GetData())))
	}
	return lines
}

// pairing is a line on the left and the line beside it; -1 if there is none.
type pairing struct{ left, right int }

// alignMost limits the work of a comparison: the product of the lengths of the differing parts.
const alignMost = 4 << 20

// align pairs as many equal lines of two lists as possible without reordering. Lines that differ
// are paired while both sides have some. If that would exceed alignMost, lines are paired in order.
func align(left, right []string) []pairing {
	var pairs []pairing
	head := 0
	for head < len(left) && head < len(right) && left[head] == right[head] {
		pairs = append(pairs, pairing{head, head})
		head++
	}
	tail := 0
	for tail < len(left)-head && tail < len(right)-head && left[len(left)-1-tail] == right[len(right)-1-tail] {
		tail++
	}
	pairs = append(pairs, alignMiddle(left[head:len(left)-tail], right[head:len(right)-tail], head)...)
	for i := tail; i > 0; i-- {
		pairs = append(pairs, pairing{len(left) - i, len(right) - i})
	}
	return pairs
}

// alignMiddle aligns the part that differs at both ends; offset is the number of lines before it.
func alignMiddle(left, right []string, offset int) []pairing {
	if len(left) == 0 || len(right) == 0 || len(left) > alignMost/len(right) {
		return sideways(0, len(left), 0, len(right), offset)
	}
	common := commonAfter(left, right)
	var pairs []pairing
	i, j := 0, 0       // current lines
	from, with := 0, 0 // where the differing part began
	for i < len(left) && j < len(right) {
		switch {
		case left[i] == right[j]:
			pairs = append(append(pairs, sideways(from, i, with, j, offset)...), pairing{offset + i, offset + j})
			i, j = i+1, j+1
			from, with = i, j
		case common[i+1][j] >= common[i][j+1]:
			i++
		default:
			j++
		}
	}
	return append(pairs, sideways(from, len(left), with, len(right), offset)...)
}

// commonAfter returns, for each pair of positions, how many equal lines can be paired from there
// on.
func commonAfter(left, right []string) [][]int32 {
	common := make([][]int32, len(left)+1)
	cells := make([]int32, (len(left)+1)*(len(right)+1))
	for i := range common {
		common[i] = cells[i*(len(right)+1) : (i+1)*(len(right)+1)]
	}
	for i := len(left) - 1; i >= 0; i-- {
		for j := len(right) - 1; j >= 0; j-- {
			if left[i] == right[j] {
				common[i][j] = common[i+1][j+1] + 1
			} else {
				common[i][j] = max(common[i+1][j], common[i][j+1])
			}
		}
	}
	return common
}

// sideways pairs lines in order, while both sides have some.
func sideways(i, left, j, right, offset int) []pairing {
	var pairs []pairing
	for i < left || j < right {
		pair := pairing{-1, -1}
		if i < left {
			pair.left = offset + i
			i++
		}
		if j < right {
			pair.right = offset + j
			j++
		}
		pairs = append(pairs, pair)
	}
	return pairs
}
