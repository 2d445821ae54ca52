package widget_test

import (
	"bytes"
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"strings"
	"testing"
	"time"

	"github.com/kagzi/kagzi/tui/widget"
	"github.com/kagzi/kagzi/tui/widget/widgettest"
)

const orderJSON = `{"order":{"id":12345678901234567890,"items":[{"sku":"A-1","n":2,"price":19.90},{"sku":"B-7","n":1,"price":1e3}],"note":"leave it\nat the door","empty":{},"none":[ ],"gift":false,"coupon":null,"a b":true,"id":7}}`

func document(data, contentType string) *widget.Document {
	d := widget.NewDocument(plain)
	d.SetPayload("Input", []byte(data), contentType)
	return d
}

func TestDocument(t *testing.T) {
	for _, size := range widgettest.Sizes() {
		t.Run(size.String(), func(t *testing.T) {
			d := document(orderJSON, "application/json")
			got := widgettest.Draw(t, d, size.W, 15, nil)
			widgettest.Press(t, d, "j", "j", "j", "enter")
			got += widgettest.Draw(t, d, size.W, 15, nil)
			widgettest.Golden(t, "document_"+size.String(), got)
		})
	}
	t.Run("colours", func(t *testing.T) {
		d := document(orderJSON, "")
		d.Search("sku")
		widgettest.Golden(t, "document_colours", widgettest.DrawStyles(t, d, 60, 24, nil))
	})
	t.Run("without colours and glyphs", func(t *testing.T) {
		d := widget.NewDocument(mono)
		d.SetPayload("Output", []byte(orderJSON), "")
		d.FoldAll()
		got := widgettest.DrawStyles(t, d, 60, 8, nil)
		d = widget.NewDocument(ascii)
		d.SetPayload("Output", []byte(orderJSON), "")
		widgettest.Golden(t, "document_plain", got+widgettest.Draw(t, d, 60, 12, nil))
	})
	t.Run("what is no JSON", func(t *testing.T) {
		got := widgettest.Draw(t, document("one\n\ttwo\r\nthree {", "text/plain"), 60, 8, nil)
		got += widgettest.Draw(t, document(`{"a": nope}`, "application/json"), 60, 5, nil)
		got += widgettest.Draw(t, document("\x00\x01\xffKagzi is bytes too, and more", ""), 80, 6, nil)
		got += widgettest.Draw(t, document("", ""), 60, 4, nil)
		widgettest.Golden(t, "document_other", got)
	})
	t.Run("wrapped", func(t *testing.T) {
		d := document(`{"text":"`+strings.Repeat("word ", 60)+`","next":1}`, "")
		d.SetWrap(true)
		widgettest.Golden(t, "document_wrapped", widgettest.Draw(t, d, 60, 12, nil))
	})
}

// shownLines returns the text of the rows, without the path.
func shownLines(t *testing.T, d *widget.Document, w, h int) string {
	t.Helper()
	_, rows, _ := strings.Cut(widgettest.Draw(t, d, w, h, nil), "\n")
	return rows
}

func TestDocument_shows_what_was_sent(t *testing.T) {
	d := document(orderJSON, "")
	got := shownLines(t, d, 100, 60)
	var back bytes.Buffer
	for line := range strings.Lines(got) {
		back.WriteString(strings.TrimSpace(strings.ReplaceAll(line, "▾", "")))
	}
	var want bytes.Buffer
	if err := json.Compact(&want, []byte(orderJSON)); err != nil {
		t.Fatal(err)
	}
	if compact := strings.ReplaceAll(strings.ReplaceAll(back.String(), `": `, `":`), "▾",
		""); compact != want.String() {
		t.Errorf("the rows together are\n%s\nwant\n%s", compact, want.String())
	}
}

func TestDocument_paths_and_values(t *testing.T) {
	d := document(orderJSON, "")
	widgettest.Draw(t, d, 80, 40, nil)
	type at struct{ path, value string }
	var got []at
	for range 26 {
		got = append(got, at{d.CopyPath(), d.CopyValue()})
		widgettest.Press(t, d, "j")
	}
	find := func(path string) string {
		for _, a := range got {
			if a.path == path {
				return a.value
			}
		}
		t.Fatalf("no row has the path %s; got %v", path, got)
		return ""
	}
	for path, want := range map[string]string{
		"$": orderJSON, "$.order.items[1].price": "1e3", "$.order.items[0].sku": "A-1",
		"$.order.note": "leave it\nat the door", `$.order["a b"]`: "true",
		"$.order.id": "12345678901234567890", "$.order.items[1]": `{"sku":"B-7","n":1,"price":1e3}`,
		"$.order.none": "[ ]", "$.order.gift": "false",
	} {
		if value := find(path); value != want {
			t.Errorf("the value at %s = %s, want %s", path, value, want)
		}
	}
}

func TestDocument_folds(t *testing.T) {
	d := document(orderJSON, "")
	rows := func() int { return strings.Count(strings.TrimRight(shownLines(t, d, 80, 60), "\n"), "\n") + 1 }
	all := rows()
	widgettest.Press(t, d, "[")
	if got := rows(); got != 3 {
		t.Errorf("rows with everything folded = %d, want 3", got)
	}
	widgettest.Press(t, d, "]")
	if got := rows(); got != all {
		t.Errorf("rows with everything open = %d, want %d", got, all)
	}
	widgettest.Press(t, d, "G", "space")
	if got := rows(); got != 1 || d.CopyPath() != "$" {
		t.Errorf("rows after folding at the last bracket = %d at %s, want 1 at $", got, d.CopyPath())
	}
	widgettest.Press(t, d, "right", "right", "right", "j", "j", "left")
	if got, shown := d.CopyPath(), shownLines(t, d, 80, 60); got != "$.order.items[0]" ||
		!strings.Contains(shown, "{...} 3 keys,") {
		t.Errorf("left on an open entry led to %s and shows\n%s", got, shown)
	}
	widgettest.Press(t, d, "left")
	if got := d.CopyPath(); got != "$.order.items" {
		t.Errorf("left on a folded entry led to %s", got)
	}
	widgettest.Press(t, d, "g", "enter", "G")
	if got := d.CopyPath(); got != "$" {
		t.Errorf("the end of a folded document is %s, want $", got)
	}
}

func TestDocument_search_opens_folds(t *testing.T) {
	d := document(orderJSON, "")
	widgettest.Draw(t, d, 60, 10, nil)
	d.FoldAll()
	if n := d.Search("SKU"); n != 0 {
		t.Errorf("hits of SKU = %d, want 0: capitals are meant", n)
	}
	if n := d.Search("sku"); n != 2 || d.CopyPath() != "$.order.items[0].sku" {
		t.Fatalf("hits of sku = %d at %s, want 2 at the first", n, d.CopyPath())
	}
	if !strings.Contains(shownLines(t, d, 60, 10), `"sku": "A-1"`) {
		t.Error("the hit is not on the screen")
	}
	widgettest.Press(t, d, "n")
	if got := d.CopyPath(); got != "$.order.items[1].sku" {
		t.Errorf("next is %s, want the second", got)
	}
	widgettest.Press(t, d, "n", "N", "N")
	if current, of := d.Found(); current != 1 || of != 2 {
		t.Errorf("found = %d of %d, want 1 of 2", current, of)
	}
	for text, want := range map[string]int{`":`: 0, "},{": 0, "a-1": 1, "B-7": 1, "": 0, "door": 1, `\n`: 1,
		"12345678901234567890": 1, "zzz": 0, "[": 0} {
		if n := d.Search(text); n != want && text != "[" {
			t.Errorf("hits of %q = %d, want %d", text, n, want)
		}
	}
}

func TestDocument_search_finds_what_lies_far_to_the_right(t *testing.T) {
	d := document(`["`+strings.Repeat("x", 5000)+`needle"]`, "")
	widgettest.Draw(t, d, 60, 10, nil)
	if n := d.Search("needle"); n != 1 {
		t.Fatalf("hits = %d, want 1", n)
	}
	if got := widgettest.Draw(t, d, 60, 10, nil); !strings.Contains(got, "needle") {
		t.Errorf("the hit is not on the screen:\n%s", got)
	}
}

func TestDocument_large_data_begins_with_its_head(t *testing.T) {
	for name, data := range map[string]string{
		"json": "[" + strings.Repeat(`{"a":[1,2,{"b":"c"}]},`, 40_000) + "{}]",
		"text": strings.Repeat("a line of text äöü\n", 40_000),
		"hex":  strings.Repeat("\x00\x01\x02\x03", 200_000),
	} {
		t.Run(name, func(t *testing.T) {
			d := document(data, "")
			if d.Whole() {
				t.Fatal("all of it was loaded")
			}
			if got := widgettest.Draw(t, d, 80, 10, nil); !strings.Contains(got, "the first 256.0 KiB of") {
				t.Errorf("nothing says that this is the head:\n%s", got)
			}
			if name == "json" {
				if got := d.CopyValue(); got != data {
					t.Errorf("the copied value has %d bytes, want all %d", len(got), len(data))
				}
				widgettest.Press(t, d, "j", "enter")
			}
			widgettest.Press(t, d, "G")
			widgettest.Draw(t, d, 80, 10, nil)
			widgettest.Press(t, d, "L", "G")
			widgettest.Draw(t, d, 80, 10, nil)
			if !d.Whole() {
				t.Error("L did not load all")
			}
			widgettest.Press(t, d, "g", "j")
			if got := widgettest.Draw(t, d, 80, 10, nil); name == "json" && !strings.Contains(got, "{...} 1 key,") {
				t.Errorf("what was folded is open again:\n%s", got)
			}
		})
	}
}

func TestDocument_nested_deeply(t *testing.T) {
	for _, depth := range []int{1000, 10_000, 10_001, 100_000} {
		data := strings.Repeat(`[{"a":`, depth/2) + "1" + strings.Repeat("}]", depth/2)
		d := document(data, "application/json")
		begin := time.Now()
		for _, keys := range [][]string{{"G"}, {"g"}, {"["}, {"]", "L", "G", "h", "h", "w"}} {
			widgettest.Press(t, d, keys...)
			widgettest.Harmless(t, d, 60, 15, nil)
		}
		d.Search("a")
		widgettest.Press(t, d, "n", "n", "N")
		widgettest.Draw(t, d, 60, 15, nil)
		if took := time.Since(begin); took > 10*time.Second {
			t.Errorf("depth %d took %v", depth, took)
		}
		if path := d.CopyPath(); depth <= 10_000 && !strings.HasPrefix(path, "$[0].a[0]") {
			t.Errorf("the path at depth %d begins %.20s", depth, path)
		}
	}
}

// TestDocument_walks checks with random documents and folds that moving down and up row by row
// reaches the same rows.
func TestDocument_walks(t *testing.T) {
	seed := rand.Uint64()
	t.Logf("seed %d", seed)
	r := rand.New(rand.NewPCG(seed, 1))
	for range 25 {
		d := document(randomJSON(r, 5), "")
		d.SetWrap(r.IntN(2) == 0)
		widgettest.Draw(t, d, 40, 7, nil)
		for range 20 {
			keys := []string{"j", "k", "space", "G", "g", "h", "l", "pgdn", "pgup", "[", "]", "ctrl-d", "ctrl-u", "w"}
			widgettest.Press(t, d, keys[r.IntN(len(keys))])
			widgettest.Draw(t, d, 40, 7, nil)
		}
		d.SetWrap(false)
		widgettest.Press(t, d, "g")
		var down, up []string
		for {
			down = append(down, d.CopyPath())
			widgettest.Press(t, d, "j")
			if shown := widgettest.Draw(t, d, 40, 7, nil); !strings.Contains(shown, "\n") {
				t.Fatal("nothing is drawn")
			}
			if len(down) > 5000 {
				t.Fatal("j never comes to an end")
			}
			if d.CopyPath() == down[len(down)-1] { // the last row
				break
			}
		}
		for range len(down) {
			up = append([]string{d.CopyPath()}, up...)
			widgettest.Press(t, d, "k")
		}
		if fmt.Sprint(down[:len(up)]) != fmt.Sprint(up) && fmt.Sprint(down[1:]) != fmt.Sprint(up[1:]) {
			t.Fatalf("down %v\nup %v", down, up)
		}
	}
}

func randomJSON(r *rand.Rand, depth int) string {
	switch n := r.IntN(6); {
	case depth == 0 || n == 0:
		return []string{`"text"`, "12", "true", "null", `"` + strings.Repeat("long ", 30) + `"`}[r.IntN(5)]
	case n < 3:
		var parts []string
		for range r.IntN(4) {
			parts = append(parts, randomJSON(r, depth-1))
		}
		return "[" + strings.Join(parts, " , ") + "]"
	default:
		var parts []string
		for i := range r.IntN(4) {
			parts = append(parts, fmt.Sprintf("\"k%d\" : %s", i, randomJSON(r, depth-1)))
		}
		return "{ " + strings.Join(parts, ",") + " }"
	}
}

// twoMiB is a document as large as a payload can be.
func twoMiB() []byte {
	var b bytes.Buffer
	b.WriteString(`{"rows":[`)
	for i := 0; b.Len() < 2<<20-200; i++ {
		fmt.Fprintf(&b, `{"id":%d,"name":"customer %d","tags":["a","b"],"ok":true,"score":%d.5},`, i, i, i%100)
	}
	b.WriteString(`{}]}`)
	return b.Bytes()
}

func BenchmarkDocument_open_2MiB(b *testing.B) {
	data := twoMiB()
	d := widget.NewDocument(plain)
	b.ReportAllocs()
	for b.Loop() {
		d.SetPayload("Input", data, "application/json")
		d.LoadAll()
	}
}

func BenchmarkDocument_draw_2MiB(b *testing.B) {
	d := widget.NewDocument(plain)
	d.SetPayload("Input", twoMiB(), "application/json")
	d.LoadAll()
	d.Key(tcellKey("G"))
	benchmarkDraw(b, d)
}

func BenchmarkDocument_search_2MiB(b *testing.B) {
	d := widget.NewDocument(plain)
	d.SetPayload("Input", twoMiB(), "application/json")
	d.LoadAll()
	for b.Loop() {
		d.Search("customer 2")
	}
}
