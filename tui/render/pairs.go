package render

import (
	"strconv"
	"strings"

	"google.golang.org/protobuf/types/known/timestamppb"

	kagziv1 "github.com/kagzi/kagzi/proto/kagzi/v1"
)

// pairs collects the lines of a detail view; unset values are left out.
type pairs []Pair

func (p *pairs) text(label, raw string) { p.cell(label, Text(raw)) }

func (p *pairs) cell(label string, c Cell) {
	if c.Text != "" {
		*p = append(*p, Pair{label, []string{c.Text}, c.Style})
	}
}

func (p *pairs) number(label string, n int64) {
	if n != 0 {
		p.text(label, strconv.FormatInt(n, 10))
	}
}

func (p *pairs) time(label string, t *timestamppb.Timestamp, v View) {
	if t != nil {
		p.text(label, v.FullTime(t))
	}
}

// PairLines lays pairs out in two columns; further lines of a value go below its first.
func PairLines(list []Pair, colour bool) []string {
	wide := 0
	for _, p := range list {
		wide = max(wide, Width(p.Label))
	}
	var lines []string
	for _, p := range list {
		label := p.Label + strings.Repeat(" ", wide-Width(p.Label)+gap)
		if colour {
			label = Paint(label, Dim)
		}
		for i, text := range p.Lines {
			if i > 0 {
				label = strings.Repeat(" ", wide+gap)
			}
			if colour {
				text = Paint(text, p.Style)
			}
			lines = append(lines, strings.TrimRight(label+text, " "))
		}
	}
	return lines
}

// ErrorLines writes an error: message, details, and the indented stack.
func ErrorLines(e *kagziv1.ErrorDetail, v View) []string {
	lines := SafeLines(e.GetMessage())
	if e.GetMessage() == "" {
		lines = []string{noMessage(e)}
	}
	lines[0] = TypedMessage(Safe(e.GetType()), lines[0])
	var facts []string
	if e.GetCode() != kagziv1.ErrorCode_ERROR_CODE_UNSPECIFIED {
		facts = append(facts, enumText(e.GetCode()))
	}
	if e.GetNonRetryable() {
		facts = append(facts, "not retryable")
	}
	if e.GetSubject() != "" {
		facts = append(facts, strings.TrimSpace("about "+e.GetSubject()+" "+e.GetSubjectId()))
	}
	if len(e.GetMetadata()) > 0 {
		facts = append(facts, KeyValues(e.GetMetadata()))
	}
	if len(facts) > 0 {
		lines = append(lines, Safe("("+strings.Join(facts, ", ")+")"))
	}
	if e.GetStack() != "" {
		stack, cutOff := cut(e.GetStack(), limitOf(v.Payloads))
		for _, line := range SafeLines(stack) {
			lines = append(lines, "    "+line)
		}
		if cutOff {
			lines = append(lines, more(len(e.GetStack())-len(stack)))
		}
	}
	return lines
}
