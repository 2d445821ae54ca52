package guide

import (
	"regexp"
	"strings"

	"github.com/rivo/uniseg"

	"github.com/kagzi/kagzi/tui/render"
)

// Layout is how Text renders a chapter.
type Layout struct {
	Width   int                      // columns; Text uses at least 40 and at most 100
	Strong  bool                     // headings and strong words in bold, by the terminal's codes
	Topics  []Topic                  // what a link can name
	Command func(name string) string // what shows a topic; nil stands for kagzi help NAME
}

type kind uint8

const (
	paragraph kind = iota
	heading
	code
	item
	row
	rule
)

// block is a piece of Markdown that is laid out by itself.
type block struct {
	kind   kind
	text   string   // of a paragraph, heading or item: its lines joined by blanks
	marker string   // of an item: "•" or "2."
	level  int      // of a heading: 1 to 6; of an item and of what belongs to one: how deep it stands, from 0
	lines  []string // of code
	cells  []string // of a row
	tight  bool     // no blank line stands above it
}

var (
	headingLine = regexp.MustCompile(`^(#{1,6}) +(.*?) *#*$`)
	itemLine    = regexp.MustCompile(`^( *)([-*+]|[0-9]{1,3}[.)]) +(.*)$`)
	ruleLine    = regexp.MustCompile(`^ {0,3}(-{3,}|\*{3,}|_{3,})$`)
	dividerLine = regexp.MustCompile(`^\|?[ :|-]*-[ :|-]*$`)
	comments    = regexp.MustCompile(`(?s)<!--.*?-->\n?`)
)

// parse reads the simple Markdown that the guides use: headings, paragraphs, lists, tables, fenced
// and indented code. Comments are dropped, but not within code.
func parse(text string) []block {
	var (
		blocks []block
		lines  = strings.Split(withoutComments(strings.ReplaceAll(text, "\r\n", "\n")), "\n")
		blank  = true
		depths []int // columns at which the items of the list begin, the outermost first
	)
	for i := 0; i < len(lines); i++ {
		line := strings.TrimRight(lines[i], " \t")
		if line == "" {
			blank = true
			continue
		}
		indent := len(line) - len(strings.TrimLeft(line, " "))
		if blank && indent == 0 && !itemLine.MatchString(line) {
			depths = nil
		}
		last := func(kinds ...kind) *block {
			if blank || len(blocks) == 0 {
				return nil
			}
			b := &blocks[len(blocks)-1]
			for _, k := range kinds {
				if b.kind == k {
					return b
				}
			}
			return nil
		}
		trimmed := strings.TrimSpace(line)
		switch {
		case strings.HasPrefix(trimmed, "```") || strings.HasPrefix(trimmed, "~~~"):
			fence, b := trimmed[:3], block{kind: code, level: len(depths)}
			for i++; i < len(lines) && !strings.HasPrefix(strings.TrimSpace(lines[i]), fence); i++ {
				l := lines[i]
				b.lines = append(b.lines, l[min(indent, len(l)-len(strings.TrimLeft(l, " "))):])
			}
			blocks = append(blocks, b)
		case blank && indent >= 4 && len(depths) == 0:
			b := block{kind: code}
			for ; i < len(lines) && (strings.HasPrefix(lines[i], "    ") || strings.TrimSpace(lines[i]) == ""); i++ {
				b.lines = append(b.lines, strings.TrimPrefix(lines[i], "    "))
			}
			i--
			for len(b.lines) > 0 && strings.TrimSpace(b.lines[len(b.lines)-1]) == "" {
				b.lines = b.lines[:len(b.lines)-1]
			}
			blocks = append(blocks, b)
			blank = true
			continue
		case headingLine.MatchString(line):
			m := headingLine.FindStringSubmatch(line)
			blocks = append(blocks, block{kind: heading, level: len(m[1]), text: m[2]})
			depths = nil
		case ruleLine.MatchString(line):
			blocks = append(blocks, block{kind: rule})
		case itemLine.MatchString(line):
			m := itemLine.FindStringSubmatch(line)
			for len(depths) > 0 && depths[len(depths)-1] > len(m[1]) {
				depths = depths[:len(depths)-1]
			}
			if len(depths) == 0 || depths[len(depths)-1] < len(m[1]) {
				depths = append(depths, len(m[1]))
			}
			marker := m[2]
			if len(marker) == 1 {
				marker = "-"
			}
			blocks = append(blocks, block{
				kind: item, level: len(depths) - 1, marker: marker, text: m[3], tight: last(item, paragraph) != nil,
			})
		case strings.HasPrefix(trimmed, "|"):
			if dividerLine.MatchString(trimmed) {
				continue
			}
			blocks = append(blocks, block{kind: row, cells: cells(trimmed), tight: last(row) != nil})
		default:
			if b := last(paragraph, item); b != nil {
				b.text += " " + trimmed
				continue
			}
			blocks = append(blocks, block{kind: paragraph, level: len(depths), text: strings.TrimPrefix(trimmed, "> ")})
		}
		blank = false
	}
	return blocks
}

// withoutComments drops <!-- … --> outside of fenced code.
func withoutComments(text string) string {
	parts := strings.Split(text, "```")
	for i := 0; i < len(parts); i += 2 {
		parts[i] = comments.ReplaceAllString(parts[i], "")
	}
	return strings.Join(parts, "```")
}

// cells splits a line of a table, but not at a | that is escaped.
func cells(line string) []string {
	const kept = "\x00"
	line = strings.ReplaceAll(strings.TrimSuffix(strings.TrimPrefix(line, "|"), "|"), `\|`, kept)
	parts := strings.Split(line, "|")
	for i, p := range parts {
		parts[i] = strings.TrimSpace(strings.ReplaceAll(p, kept, "|"))
	}
	return parts
}

// Text renders a chapter as lines of plain text: headings at the margin, everything else two
// columns in.
func Text(t Topic, o Layout) []string {
	o.Width = max(40, min(o.Width, 100))
	var out []string
	blocks := parse(string(t.Text))
	for i := 0; i < len(blocks); i++ {
		b := blocks[i]
		if len(out) > 0 && !b.tight {
			out = append(out, "")
		}
		pad := strings.Repeat("  ", b.level+1)
		switch b.kind {
		case heading:
			out = append(out, wrap(inline(b.text, t, o, false), "", "", o.Width, o.strong)...)
		case code:
			for _, line := range b.lines {
				out = append(out, strings.TrimRight(pad+"  "+render.Safe(strings.ReplaceAll(line, "\t", "    ")), " "))
			}
		case item:
			first := pad + b.marker + " "
			out = append(out, wrap(inline(b.text, t, o, true), first, strings.Repeat(" ", len(first)), o.Width, nil)...)
		case row:
			last := i
			for last+1 < len(blocks) && blocks[last+1].kind == row && blocks[last+1].tight {
				last++
			}
			for _, line := range table(blocks[i:last+1], t, o) {
				out = append(out, "  "+line)
			}
			i = last
		case rule:
			out = append(out, "  "+strings.Repeat("-", 20))
		default:
			out = append(out, wrap(inline(b.text, t, o, true), pad, pad, o.Width, nil)...)
		}
	}
	return out
}

func (o Layout) strong(text string) string {
	if !o.Strong {
		return text
	}
	return render.Paint(text, render.Strong)
}

// table lays out rows, the first of which is the heading. The last column takes what the others
// leave, and wraps.
func table(rows []block, t Topic, o Layout) []string {
	columns := 0
	for _, r := range rows {
		columns = max(columns, len(r.cells))
	}
	const gap = 2
	width := o.Width - 2
	texts := make([][]string, len(rows))
	widths := make([]int, columns)
	for i, r := range rows {
		texts[i] = make([]string, columns)
		for j, c := range r.cells {
			texts[i][j] = inline(c, t, o, false)
			widths[j] = max(widths[j], printed(texts[i][j]))
		}
	}
	// Columns that are too wide give way, the widest first, down to twelve columns each.
	for {
		total, widest := gap*(columns-1), 0
		for j, w := range widths {
			total += w
			if w > widths[widest] {
				widest = j
			}
		}
		if total <= width || widths[widest] <= 12 {
			break
		}
		widths[widest] = max(12, widths[widest]-(total-width), secondWidest(widths))
	}
	var out []string
	for i := range rows {
		var parts [][]string
		height := 1
		for j, text := range texts[i] {
			part := wrap(text, "", "", widths[j], nil)
			parts, height = append(parts, part), max(height, len(part))
		}
		for l := range height {
			line := ""
			for j, part := range parts {
				cell := ""
				if l < len(part) {
					cell = part[l]
				}
				space := max(0, widths[j]-uniseg.StringWidth(cell))
				if i == 0 {
					cell = o.strong(cell)
				}
				line += cell + strings.Repeat(" ", space+gap)
			}
			if line = strings.TrimRight(line, " "); line != "" {
				out = append(out, line)
			}
		}
		if i == 0 {
			line := ""
			for _, w := range widths {
				line += strings.Repeat("-", w) + strings.Repeat(" ", gap)
			}
			out = append(out, strings.TrimRight(line, " "))
		}
	}
	return out
}

// secondWidest is the second of the widths by size, less one so that a tie goes on shrinking.
func secondWidest(widths []int) int {
	first, second := 0, 0
	for _, w := range widths {
		if w > first {
			first, second = w, first
		} else {
			second = max(second, w)
		}
	}
	return min(second, first-1)
}

// wrap breaks text at its blanks so that no line is wider than width, unless a word alone is.
// finish, where there is one, changes each line.
func wrap(text, first, rest string, width int, finish func(string) string) []string {
	var out []string
	prefix, line := first, ""
	flush := func() {
		line = strings.ReplaceAll(line, noBreak, " ")
		if finish != nil {
			line = finish(line)
		}
		out = append(out, prefix+line)
		prefix, line = rest, ""
	}
	for word := range strings.FieldsSeq(text) {
		if line != "" && printed(prefix)+printed(line)+1+printed(word) > width {
			flush()
		}
		if line != "" {
			line += " "
		}
		line += word
	}
	if line != "" || len(out) == 0 {
		flush()
	}
	return out
}

// sgr is a code of the terminal, which takes no column.
var sgr = regexp.MustCompile("\x1b\\[[0-9]*m")

// printed is how many columns text takes, a noBreak as a blank.
func printed(text string) int {
	return uniseg.StringWidth(strings.ReplaceAll(sgr.ReplaceAllString(text, ""), noBreak, " "))
}
