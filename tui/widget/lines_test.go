package widget_test

import (
	"fmt"
	"strings"
	"testing"

	"github.com/kagzi/kagzi/tui/render"
	"github.com/kagzi/kagzi/tui/widget"
	"github.com/kagzi/kagzi/tui/widget/widgettest"
)

func numberedLines(n int) []widget.Line {
	lines := make([]widget.Line, n)
	for i := range lines {
		lines[i] = widget.Line{Cells: []render.Cell{
			{Text: fmt.Sprintf("%03d ", i), Style: render.Dim}, {Text: "something happened"}}}
	}
	return lines
}

// firstLine returns the first row.
func firstLine(t *testing.T, l *widget.Lines, w, h int) string {
	t.Helper()
	line, _, _ := strings.Cut(widgettest.Draw(t, l, w, h, nil), "\n")
	return line
}

func TestLines(t *testing.T) {
	stack :=
		"payment declined: the card ending in 4242 was refused by its bank, which gave no reason for that\n\tmain.charge(0x1)\n\t\t/app/charge.go:42\n\ngoroutine 7 [running]"
	for _, size := range widgettest.Sizes() {
		t.Run(size.String(), func(t *testing.T) {
			l := widget.NewLines(plain).SetLines(widget.TextLines(stack, render.Bad))
			got := widgettest.Draw(t, l, size.W, 9, nil)
			l.SetWrap(false)
			got += widgettest.Draw(t, l, size.W, 5, nil)
			widgettest.Golden(t, "lines_"+size.String(), got)
		})
	}
	l := widget.NewLines(mono).SetLines(numberedLines(30))
	l.Search("happened")
	widgettest.Press(t, l, "n", "j")
	widgettest.Golden(t, "lines_plain", widgettest.DrawStyles(t, l, 40, 5, nil))
}

func TestLines_scrolls(t *testing.T) {
	l := widget.NewLines(plain).SetLines(numberedLines(100))
	widgettest.Draw(t, l, 40, 10, nil)
	for _, step := range []struct{ key, first string }{
		{"j", "001"}, {"down", "002"}, {"k", "001"}, {"pgdn", "010"}, {"pgup", "001"}, {"G", "090"}, {"j", "090"},
		{"g", "000"}, {"up", "000"}, {"ctrl-d", "004"}, {"ctrl-u", "000"},
	} {
		widgettest.Press(t, l, step.key)
		if got := firstLine(t, l, 40, 10); !strings.HasPrefix(got, step.first) {
			t.Fatalf("after %q the first line is %q, want %s", step.key, got, step.first)
		}
	}
}

func TestLines_search(t *testing.T) {
	lines := numberedLines(100)
	lines[70] = widget.TextLine("the Needle is here, and a needle there", render.Plain)
	l := widget.NewLines(plain).SetLines(lines)
	widgettest.Draw(t, l, 40, 10, nil)
	if n := l.Search("needle"); n != 2 {
		t.Fatalf("hits = %d, want 2", n)
	}
	if got := widgettest.Draw(t, l, 40, 10, nil); !strings.Contains(got, "Needle") {
		t.Errorf("the hit is not on the screen:\n%s", got)
	}
	widgettest.Press(t, l, "N")
	if current, of := l.Found(); current != 2 || of != 2 {
		t.Errorf("found = %d of %d, want 2 of 2", current, of)
	}
	if n := l.Search("Needle"); n != 1 {
		t.Errorf("hits of a text with a capital = %d, want 1", n)
	}
	l.SetLines(append(lines, widget.TextLine("another Needle", render.Plain)))
	if _, of := l.Found(); of != 2 {
		t.Errorf("hits after a line was added = %d, want 2", of)
	}
	if n := l.Search("ÄÖ") + l.Search("nothing") + l.Search(""); n != 0 {
		t.Errorf("hits of what is not there = %d", n)
	}
	l.SetLines([]widget.Line{widget.TextLine(strings.Repeat("x", 300)+"äöü", render.Plain)})
	l.SetWrap(false)
	if n := l.Search("ÄÖÜ") + l.Search("äöü"); n != 1 {
		t.Errorf("hits = %d, want that in small letters", n)
	}
	if got := widgettest.Draw(t, l, 40, 3, nil); !strings.Contains(got, "äöü") {
		t.Errorf("the hit is not on the screen:\n%s", got)
	}
}

func TestLines_a_wrapped_line_hangs_where_it_says(t *testing.T) {
	line := widget.Line{Hang: 10, Cells: []render.Cell{
		{Text: "key       ", Style: render.Dim}, {Text: "what it does in some words"}}}
	for width, want := range map[int]string{
		26: "key       what it does in\n          some words\n", // below where it began
		16: "key       what\n  it does in\n  some words\n",      // less than half of the width would be left
	} {
		if got := widgettest.Draw(t, widget.NewLines(plain).SetLines([]widget.Line{line}), width, 3,
			nil); !strings.HasPrefix(strip(got), want) {
			t.Errorf("%d cells wide the line is\n%s\nwant\n%s", width, got, want)
		}
	}
}

// strip removes trailing blanks.
func strip(screen string) string {
	lines := strings.Split(screen, "\n")
	for i := range lines {
		lines[i] = strings.TrimRight(lines[i], " ")
	}
	return strings.Join(lines, "\n")
}

// TestLines_wrapping_loses_nothing checks that the rows of a wrapped line hold its words in order,
// each row within the width.
func TestLines_wrapping_loses_nothing(t *testing.T) {
	for _, text := range []string{
		strings.Repeat("word ", 50), strings.Repeat("unbroken", 40), "a " + strings.Repeat("b", 200) + " c d e",
		strings.Repeat("日本語 の ", 30), strings.Repeat("語", 99),
		"short", "", strings.Repeat(" ", 100) + "end", strings.Repeat("e\u0301", 100),
	} {
		for _, width := range []int{4, 7, 20, 40, 61} {
			l := widget.NewLines(plain).SetLines([]widget.Line{widget.TextLine(text, render.Plain)})
			got := widgettest.Draw(t, l, width, 300, nil)
			if want := strings.ReplaceAll(text, " ", ""); strings.NewReplacer(" ", "", "\n", "").Replace(got) != want {
				t.Errorf("width %d: the rows hold\n%s\nwant %q", width, got, text)
			}
		}
	}
}
