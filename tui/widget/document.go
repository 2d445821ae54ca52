package widget

import (
	"bytes"
	"encoding/json"
	"strings"
	"unicode/utf8"

	"github.com/gdamore/tcell/v2"
	"github.com/rivo/tview"

	"github.com/kagzi/kagzi/tui/render"
	"github.com/kagzi/kagzi/tui/theme"
)

// headBytes limits how much of a large payload is shown at first.
const headBytes = 256 << 10

// Document shows a payload: JSON as a tree of rows that can be folded, text by lines, other data as
// a hex dump. tview's TreeView needs a node in memory for each row, and visits all of them for each
// key; its rows cannot be wrapped, and neither those of its TextView folded.
type Document struct {
	*tview.Box
	look   func() *theme.Theme
	title  string
	data   []byte
	note   string // what people should know about the data
	tokens []token
	whole  bool // tokens cover all of the data

	cursor        int   // token
	top           place // first visible row
	wrap          bool
	width, height int     // for rows, at the last draw
	laid          layouts // by token

	hits  []docHit
	find  *finder
	found int
	lit   lit
}

// NewDocument returns an empty document.
func NewDocument(look func() *theme.Theme) *Document {
	return &Document{Box: tview.NewBox(), look: look, whole: true, laid: layouts{}}
}

// SetPayload shows other data from its start. contentType may be empty; declared text is not parsed
// as JSON. Only the first 256 KiB are shown until LoadAll. The document keeps data, which must not
// change.
func (d *Document) SetPayload(title string, data []byte, contentType string) {
	d.title, d.data = title, data
	d.note, d.find, d.hits, d.found = "", nil, nil, 0
	d.cursor, d.top = 0, place{}
	d.index(contentType, headBytes)
}

// index makes the rows of the first bytes, up to about limit.
func (d *Document) index(contentType string, limit int) {
	clear(d.laid)
	d.whole = true
	if !strings.HasPrefix(contentType, "text/") && json.Valid(d.data) {
		d.tokens, d.whole = indexJSON(d.data, limit)
		return
	}
	if strings.Contains(contentType, "json") && len(d.data) > 0 {
		d.note = "not JSON: " + invalid(d.data)
	}
	head := d.data
	if len(head) > limit {
		head, d.whole = head[:limit], false
		for n := 0; n < utf8.UTFMax && !utf8.RuneStart(d.data[len(head)]); n++ {
			head = head[:len(head)-1]
		}
	}
	if utf8.Valid(head) && bytes.IndexByte(head, 0) < 0 {
		d.tokens = indexText(head)
		return
	}
	d.tokens = indexBytes(head)
}

// invalid says why data is not JSON.
func invalid(data []byte) string {
	var raw json.RawMessage
	if err := json.Unmarshal(data, &raw); err != nil {
		return err.Error()
	}
	return "nested too deeply"
}

// LoadAll shows all of the data instead of its head. The cursor stays where it is.
func (d *Document) LoadAll() {
	if d.whole {
		return
	}
	folded := map[int32]bool{}
	for i := range d.tokens {
		if d.tokens[i].folded {
			folded[d.tokens[i].from] = true
		}
	}
	if d.JSON() {
		d.tokens, d.whole = indexJSON(d.data, len(d.data))
	} else if d.tokens[0].kind == textToken {
		d.tokens, d.whole = indexText(d.data), true
	} else {
		d.tokens, d.whole = indexBytes(d.data), true
	}
	for i := range d.tokens {
		d.tokens[i].folded = d.tokens[i].opens() && folded[d.tokens[i].from]
	}
	clear(d.laid)
	d.hits = d.search()
}

// JSON reports whether the data is shown as JSON.
func (d *Document) JSON() bool {
	return len(d.tokens) > 0 && d.tokens[0].kind != textToken && d.tokens[0].kind != bytesToken
}

// SetWrap sets whether long rows are wrapped instead of cut; the default is true.
func (d *Document) SetWrap(wrap bool) {
	d.wrap, d.top.row = wrap, 0
	clear(d.laid)
	d.reveal()
}

// Wrap reports whether long rows are wrapped.
func (d *Document) Wrap() bool { return d.wrap }

// InputHandler moves, folds and repeats a search.
func (d *Document) InputHandler() func(*tcell.EventKey, func(tview.Primitive)) {
	return takes(d.Box, func(event *tcell.EventKey) { d.Key(event) })
}

// Key handles a key; ok is false if it has no meaning.
func (d *Document) Key(event *tcell.EventKey) (ok bool) {
	key := KeyName(event)
	rows, ok := MovesBy(key, 0, d.height)
	switch {
	case key == "g" || key == "home":
		d.cursor, d.top = 0, place{}
	case key == "G" || key == "end":
		d.cursor = d.shown(max(len(d.tokens)-1, 0))
		d.reveal()
	case !ok:
		return d.viewKey(key)
	case rows == 1 || rows == -1:
		d.move(rows)
	default:
		d.page(rows)
	}
	return true
}

// viewKey handles keys that change how the document is shown.
func (d *Document) viewKey(key string) bool {
	switch key {
	case "enter", "space":
		d.Toggle()
	case "h", "left":
		d.out()
	case "l", "right":
		d.in()
	case "[":
		d.FoldAll()
	case "]":
		d.UnfoldAll()
	case "n":
		d.Next()
	case "N":
		d.Prev()
	case "w":
		d.SetWrap(!d.wrap)
	case "L":
		d.LoadAll()
	default:
		return false
	}
	return true
}

// MouseHandler moves with the wheel, selects with a click and folds with a double click.
func (d *Document) MouseHandler() mouseHandler {
	return mouse(d.Box, d.page, func(_, y int, double bool) {
		if y < 1 || y > d.height || len(d.tokens) == 0 {
			return
		}
		d.cursor = step(d, d.top, y-1).line
		if double {
			d.Toggle()
		}
	})
}

// remark returns the text below the rows; empty for none.
func (d *Document) remark() string {
	note := d.note
	if !d.whole {
		if note != "" {
			note += "; "
		}
		note += "the first " + render.Bytes(headBytes) + " of " + render.Bytes(int64(len(d.data))) + ", L loads all"
	}
	if current, of := d.Found(); of > 0 {
		note = found(current, of) + note
	}
	return note
}
