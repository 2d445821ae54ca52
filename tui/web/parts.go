package web

import (
	"strings"
	"time"

	"google.golang.org/protobuf/types/known/timestamppb"
	g "maragu.dev/gomponents"

	kagziv1 "github.com/kagzi/kagzi/proto/kagzi/v1"
	"github.com/kagzi/kagzi/tui/internal/format"
	"github.com/kagzi/kagzi/tui/render"
	"github.com/kagzi/kagzi/tui/theme"
	h "github.com/kagzi/kagzi/tui/web/internal/markup"
)

// text shows text of users on one line: escaped for HTML, and with control characters and those that
// change the direction of text made visible.
func text(s string) g.Node { return h.Text(render.Safe(s)) }

// cut shows at most so many characters of a text, and all of it as a hint.
func cut(s string, most int) g.Node {
	if len(s) <= most {
		return text(s)
	}
	s = render.Safe(s[:min(len(s), 16*most)])
	return h.Span(h.Title(render.Truncate(s, 16*most)), h.Text(render.Truncate(s, most)))
}

// classes maps the meanings of texts to classes.
var classes = map[render.Style]string{
	render.Dim: "dim", render.Good: "good", render.Bad: "bad", render.Busy: "busy", render.Waiting: "waiting",
	render.Stopped: "stopped", render.Asleep: "asleep", render.Paused: "paused", render.Strong: "strong",
}

// cell shows safe text with its meaning.
func cell(c render.Cell) g.Node {
	if class := classes[c.Style]; class != "" && c.Text != "" {
		return h.Span(h.Class(class), h.Text(c.Text))
	}
	return h.Text(c.Text)
}

// sign shows a state by a symbol, a word and a colour.
func sign(s theme.Sign) g.Node {
	return h.Span(h.Class("sign "+classes[s.Style]), h.Span(h.Class("glyph"), h.Aria("hidden", "true"),
		h.Text(theme.Mono().Glyph(s.Glyph))), h.Text(" "+s.Word))
}

// signCell returns a state as a cell of a table.
func signCell(s theme.Sign) render.Cell { return theme.Mono().Cell(s) }

// ago shows a time relative to now, and in full as a hint.
func (p *page) ago(t *timestamppb.Timestamp) g.Node {
	if t == nil {
		return h.Span(h.Class("dim"), h.Text("–"))
	}
	return h.El("time", h.DateTime(t.AsTime().UTC().Format(time.RFC3339Nano)), h.Title(p.clock.Full(t)),
		h.Text(p.clock.Show(t)))
}

// view returns the options of the shared renderers.
func (p *page) view() render.View {
	v := p.clock.View()
	v.Payloads = 200
	return v
}

// table is a list with links.
type table struct {
	render.Table
	caption string
	empty   string
	link    func(row, column int) string // empty: the cell is no link; nil: none is
	key     func(row int) string         // identifies a row while it changes; nil: its position
	more    func(row int) g.Node         // a last cell; nil: none
}

// node returns the table; columns without values are left out.
func (t table) node() g.Node {
	if len(t.Rows) == 0 {
		return h.P(h.Class("empty"), h.Text(t.empty))
	}
	used := make([]bool, len(t.Columns))
	for _, row := range t.Rows {
		for j, c := range row {
			used[j] = used[j] || c.Text != "" && c.Text != "-"
		}
	}
	var head, body g.Group
	for j, c := range t.Columns {
		if used[j] {
			head = append(head, h.Th(h.Scope("col"), g.If(c.Right, h.Class("right")), h.Text(titled(c.Title))))
		}
	}
	if t.more != nil {
		head = append(head, h.Th(h.Scope("col"), h.Span(h.Class("sr"), h.Text("Actions"))))
	}
	for i, row := range t.Rows {
		cells := g.Group{}
		if t.key != nil {
			cells = append(cells, h.Data("key", render.Safe(t.key(i))))
		}
		for j, c := range row {
			if !used[j] {
				continue
			}
			content, url := cell(c), ""
			if t.link != nil {
				url = t.link(i, j)
			}
			if url != "" {
				content = h.A(h.Href(url), h.Text(orDash(c.Text)))
			}
			cells = append(cells, h.Td(g.If(t.Columns[j].Right, h.Class("right")), content))
		}
		if t.more != nil {
			cells = append(cells, h.Td(h.Class("acts"), t.more(i)))
		}
		body = append(body, h.Tr(cells))
	}
	return h.Div(h.Class("scroll"), h.TabIndex("0"), h.Role("region"), h.Aria("label", t.caption),
		h.Table(h.Class("rows"),
			h.Caption(h.Class("sr"), h.Text(t.caption)), h.THead(h.Tr(head)), h.TBody(body)))
}

func orDash(s string) string {
	if s == "" {
		return "–"
	}
	return s
}

// titled writes the title of a column, which is in capitals for terminals.
func titled(s string) string {
	if s == "" {
		return s
	}
	return s[:1] + strings.ToLower(s[1:])
}

// facts shows pairs of labels and values.
func facts(pairs []render.Pair, link func(label, value string) string) g.Node {
	return h.Dl(h.Class("facts"), g.Map(pairs, func(one render.Pair) g.Node {
		values := g.Group{}
		for i, line := range one.Lines {
			if i > 0 {
				values = append(values, h.Br())
			}
			node := cell(render.Cell{Text: line, Style: one.Style})
			if link != nil {
				if url := link(one.Label, line); url != "" {
					node = h.A(h.Href(url), h.Text(line))
				}
			}
			values = append(values, node)
		}
		return h.Div(h.Dt(h.Text(one.Label)), h.Dd(values))
	}))
}

// lines shows lines of safe text as they are.
func lines(list []string) g.Node { return h.Pre(h.TabIndex("0"), h.Text(strings.Join(list, "\n"))) }

// shownPayload limits how much of a payload is shown, in bytes.
const shownPayload = 64 << 10

// withheld is the metadata of a payload that the caller's role does not see.
const withheld = "kagzi-redacted-bytes"

// payload shows a payload as people read it; url is its download.
func (p *page) payload(of *kagziv1.Payload, missing, url string) g.Node {
	data := of.GetData()
	switch label, hidden := render.Encrypted(of); {
	case of.GetMetadata()[withheld] != "":
		return h.P(h.Class("empty"), text(of.GetMetadata()[withheld]+" bytes, withheld: the role of your key does not "+
			"see payloads."))
	case len(data) == 0:
		return h.P(h.Class("empty"), h.Text(missing))
	case hidden:
		return g.Group{h.P(h.Class("empty"), text(label), h.Text(" Encoded by the codec "),
			h.Code(text(of.GetMetadata()["encoding"])),
			h.Text("; only workers and clients that have the key can read it.")), download(url)}
	}
	list := render.PayloadLines(of, shownPayload)
	if n := len(list); len(data) > shownPayload && strings.HasPrefix(list[n-1], "… ") {
		list[n-1] = "…"
	}
	return g.Group{lines(list), h.P(h.Class("under"), text(format.PayloadKind(of)),
		g.If(len(data) > shownPayload, h.Text(", the first 64 KiB are shown")), h.Text(" "), download(url))}
}

func download(url string) g.Node {
	if url == "" {
		return nil
	}
	return h.A(h.Href(url), h.Is("download"), h.Text("Download"))
}

// section is a part of a page with a title.
func section(id, title string, body ...g.Node) g.Node {
	return h.Section(append([]g.Node{h.ID(id), h.H2(h.Text(title))}, body...)...)
}

// pager links to the pages around a page of a list.
func pager(prev, next string) g.Node {
	if prev == "" && next == "" {
		return nil
	}
	return h.Nav(h.Class("pager"), h.Aria("label", "Pages of the list"),
		g.If(prev != "", h.A(h.Rel("prev"), h.Href(prev), h.Text("← Newer"))),
		g.If(next != "", h.A(h.Rel("next"), h.Href(next), h.Text("Older →"))))
}
