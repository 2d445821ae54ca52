// Package format writes figures, ids, errors and texts as the pages show them.
package format

import (
	"fmt"
	"strconv"
	"strings"
	"time"

	"github.com/rivo/uniseg"

	kagziv1 "github.com/kagzi/kagzi/proto/kagzi/v1"
	"github.com/kagzi/kagzi/tui/model"
	"github.com/kagzi/kagzi/tui/render"
	"github.com/kagzi/kagzi/tui/widget"
)

// Number groups the digits of large numbers: 12 481.
func Number(n int64) string {
	digits := strconv.FormatInt(n, 10)
	for i := len(digits) - 3; i > 0 && digits[i-1] != '-'; i -= 3 {
		digits = digits[:i] + " " + digits[i:]
	}
	return digits
}

// Pad pads text with blanks to a width, and always ends with one.
func Pad(text string, width int) string {
	return text + strings.Repeat(" ", max(width-render.Width(text), 1))
}

// Waited writes a growing duration, coarse enough not to change with every frame.
func Waited(d time.Duration) string {
	if d < time.Minute {
		return render.Duration(d.Truncate(time.Second))
	}
	return strings.TrimSuffix(render.Duration(d.Truncate(time.Minute)), "0s")
}

// Up writes how long something has been up; days and hours once it is days.
func Up(d time.Duration) string {
	if d = max(d, 0); d < 48*time.Hour {
		return Waited(d)
	}
	return fmt.Sprintf("%dd %dh", int(d.Hours())/24, int(d.Hours())%24)
}

// Until writes the time until a moment: in seconds for the last minute, in minutes for the last
// hours, so an idle screen stays still.
func Until(d time.Duration) string {
	rounded := d + time.Second - 1 // rounds up, as render.Ago does
	if rounded < time.Minute || rounded >= 10*time.Hour {
		return render.Ago(-d)
	}
	return "in " + render.Days(rounded.Truncate(time.Minute))
}

// ShortID returns the two ends of a run's id. The first part is a time and the last is random.
func ShortID(id string) string {
	if len(id) != 36 {
		return id
	}
	return id[:8] + "…" + id[24:]
}

// Tags joins tags, sorted: "customer=x team=pay".
func Tags(tags map[string]string) string { return render.KeyValues(tags) }

// PerTime writes a rate per second, or for low rates per minute or hour: "12/s", "4.2/min".
func PerTime(v float64) string {
	switch {
	case v == 0 || v >= 0.095:
		return Rate(v) + "/s"
	case v*60 >= 0.095:
		return Rate(v*60) + "/min"
	}
	return Rate(v*3600) + "/h"
}

// Rate writes a rate per second without a unit: "0", "0.4", "12".
func Rate(v float64) string {
	switch {
	case v == 0:
		return "0"
	case v < 0.095:
		return fmt.Sprintf("%.2f", v)
	case v < 9.95:
		return fmt.Sprintf("%.1f", v)
	}
	return Number(int64(v + 0.5))
}

// Milliseconds writes a duration; short ones with one decimal.
func Milliseconds(ms float64) string {
	d := time.Duration(ms * float64(time.Millisecond))
	if d < 10*time.Millisecond {
		return fmt.Sprintf("%.1fms", ms)
	}
	return render.Duration(d)
}

// Contains reports whether any cell contains the text, ignoring case; a leading "!" negates it.
func Contains(text string, cells ...string) bool {
	text, not := strings.CutPrefix(strings.ToLower(text), "!")
	for _, cell := range cells {
		if strings.Contains(strings.ToLower(cell), text) {
			return !not
		}
	}
	return not
}

// longestWrapped limits how many bytes of a text are wrapped.
const longestWrapped = 32 << 10

// Wrapped cuts safe text into lines of at most width cells, at blanks if possible.
func Wrapped(text string, width int) []string {
	if len(text) > longestWrapped {
		text = strings.ToValidUTF8(text[:longestWrapped], "") + " …"
	}
	var lines []string
	begin, blank, cells, after := 0, 0, 0, 0 // of the line; after its last blank, and the cells from there on
	for at, state := 0, -1; at < len(text); {
		cluster, _, w, next := uniseg.FirstGraphemeClusterInString(text[at:], state)
		if cells+w > width && at > begin {
			end := at
			if blank > begin {
				end = blank
				cells = after
			} else {
				cells = 0
			}
			lines = append(lines, text[begin:end])
			begin, blank, after = end, end, 0
		}
		at, state = at+len(cluster), next
		cells += w
		after += w
		if cluster == " " {
			blank, after = at, 0
		}
	}
	return append(lines, text[begin:])
}

// ErrorLines writes an error: message, details and stack.
func ErrorLines(e *kagziv1.ErrorDetail) []widget.Line {
	if e == nil {
		return nil
	}
	lines := widget.TextLines(render.TypedMessage(e.GetType(), e.GetMessage()), render.Bad)
	var facts []string
	if e.GetCode() != kagziv1.ErrorCode_ERROR_CODE_UNSPECIFIED {
		facts = append(facts, "code "+strings.TrimPrefix(e.GetCode().String(), "ERROR_CODE_"))
	}
	if e.GetNonRetryable() {
		facts = append(facts, "not retryable")
	}
	if e.GetRetryAfterMs() > 0 {
		facts = append(facts, fmt.Sprintf("asks to retry after %d ms", e.GetRetryAfterMs()))
	}
	if e.GetSubject() != "" {
		facts = append(facts, strings.TrimSpace("about "+e.GetSubject()+" "+e.GetSubjectId()))
	}
	if len(e.GetMetadata()) > 0 {
		facts = append(facts, render.KeyValues(e.GetMetadata()))
	}
	if len(facts) > 0 {
		lines = append(lines, widget.TextLine(strings.Join(facts, ", "), render.Dim))
	}
	if e.GetStack() != "" {
		for _, line := range widget.TextLines(e.GetStack(), render.Plain) {
			lines = append(lines, Indented(line))
		}
	}
	return lines
}

// Indented indents a line by one level.
func Indented(l widget.Line) widget.Line {
	return widget.Line{Cells: append([]render.Cell{{Text: "  "}}, l.Cells...)}
}

// PayloadKind returns the size of a payload and, unless it is plain JSON, its type.
func PayloadKind(p *kagziv1.Payload) string {
	if label, ok := render.Encrypted(p); ok {
		return label
	}
	kind := render.Bytes(int64(len(p.GetData())))
	if t := p.GetMetadata()["content-type"]; t != "" && t != "application/json" {
		kind += ", " + t
	}
	if codec := p.GetMetadata()["encoding"]; codec != "" {
		kind += `, encoded by "` + codec + `": shown as it is stored`
	}
	return kind
}

// widestName limits the width to which step names are aligned; longer names push the rest to the
// right.
const widestName = 32

// NameWidth returns the width to which the names of steps are aligned.
func NameWidth(lanes []model.Lane) int {
	wide := 0
	for i := range lanes {
		if n := render.Width(render.Safe(lanes[i].Name)); n <= widestName {
			wide = max(wide, n)
		}
	}
	return wide
}
