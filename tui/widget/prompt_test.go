package widget_test

import (
	"strings"
	"testing"

	"github.com/rivo/tview"

	"github.com/kagzi/kagzi/tui/widget"
	"github.com/kagzi/kagzi/tui/widget/widgettest"
)

func commands(text string) []string {
	var list []string
	for _, name := range []string{"runs", "runs failed", "workers", "schedules"} {
		if strings.HasPrefix(name, text) {
			list = append(list, name)
		}
	}
	return list
}

func prompt() *widget.Prompt {
	p := widget.NewPrompt(plain, ": ")
	p.Complete = commands
	return p
}

func TestPrompt(t *testing.T) {
	p := prompt()
	widgettest.Type(t, p, "sch")
	got := widgettest.DrawStyles(t, p, 60, 1, nil)
	widgettest.Press(t, p, "left")
	p.Error("no command is called sch")
	got += widgettest.DrawStyles(t, p, 60, 1, nil)
	p = prompt()
	widgettest.Type(t, p, strings.Repeat("a long text ", 20))
	got += widgettest.Draw(t, p, 60, 1, nil)
	p = widget.NewPrompt(mono, "/")
	p.Complete = commands
	widgettest.Type(t, p, "w")
	widgettest.Golden(t, "prompt", got+widgettest.DrawStyles(t, p, 60, 1, nil))
}

func TestPrompt_edits(t *testing.T) {
	for _, test := range []struct {
		name, text string
		keys       []string
		want       string
	}{
		{"types at the end", "abc", []string{"d"}, "abcd"},
		{"types in the middle", "abc", []string{"left", "left", "x"}, "axbc"},
		{"goes to the begin", "abc", []string{"home", "x"}, "xabc"},
		{"goes to the end", "abc", []string{"ctrl-a", "ctrl-e", "x"}, "abcx"},
		{"deletes before the cursor", "abc", []string{"backspace"}, "ab"},
		{"deletes nothing before the begin", "abc", []string{"home", "backspace"}, "abc"},
		{"deletes under the cursor", "abc", []string{"home", "delete", "ctrl-d"}, "c"},
		{"deletes to the begin", "abc def", []string{"left", "ctrl-u"}, "f"},
		{"deletes to the end", "abc def", []string{"home", "right", "ctrl-k"}, "a"},
		{"deletes a word", "abc def  ", []string{"ctrl-w"}, "abc "},
		{"deletes all words", "abc def", []string{"ctrl-w", "ctrl-w", "ctrl-w"}, ""},
		{"goes back a word", "abc def", []string{"alt-b", "x"}, "abc xdef"},
		{"deletes a letter with its marks", "ae\u0301", []string{"backspace"}, "a"},
		{"deletes a family at once", "a👨‍👩‍👧", []string{"backspace"}, "a"},
		{"goes over a wide letter", "日本", []string{"left", "x"}, "日x本"},
		{"accepts with tab", "wor", []string{"tab"}, "workers"},
		{"accepts with the right arrow", "wor", []string{"right"}, "workers"},
		{"accepts with ctrl-f", "wor", []string{"ctrl-f"}, "workers"},
		{"accepts nothing in the middle", "wor", []string{"left", "tab"}, "wor"},
		{"completes what is complete further", "runs", []string{"tab"}, "runs failed"},
	} {
		t.Run(test.name, func(t *testing.T) {
			p := prompt()
			widgettest.Type(t, p, test.text)
			widgettest.Press(t, p, test.keys...)
			if got := p.Text(); got != test.want {
				t.Errorf("text = %q, want %q", got, test.want)
			}
		})
	}
}

func TestPrompt_history(t *testing.T) {
	p := prompt()
	p.SetHistory([]string{"first", "second"})
	widgettest.Type(t, p, "dra")
	for _, step := range []struct{ key, want string }{
		{"up", "second"}, {"up", "first"}, {"up", "first"}, {"down", "second"}, {"down", "dra"}, {"down", "dra"}} {
		widgettest.Press(t, p, step.key)
		if got := p.Text(); got != step.want {
			t.Fatalf("after %q the text is %q, want %q", step.key, got, step.want)
		}
	}
}

func TestPrompt_tells_of_changes_and_of_the_end(t *testing.T) {
	p := prompt()
	var changes []string
	ended := ""
	p.Changed = func(text string) { changes = append(changes, text) }
	p.Done = func(text string, ok bool) { ended = text + map[bool]string{true: " entered", false: " left"}[ok] }
	widgettest.Type(t, p, "ab")
	widgettest.Press(t, p, "left", "end", "enter")
	if got := strings.Join(changes, ","); got != "a,ab" || ended != "ab entered" {
		t.Errorf("changes %q, ended %q", got, ended)
	}
	widgettest.Press(t, p, "esc")
	if ended != "ab left" {
		t.Errorf("ended %q, want ab left", ended)
	}
}

func TestPrompt_paste_stays_on_one_line_and_within_bounds(t *testing.T) {
	p := prompt()
	p.PasteHandler()("one\r\ntwo\tthree\x1b[31m\xff", func(tview.Primitive) {})
	if got := p.Text(); got != "one two three[31m\uFFFD" {
		t.Errorf("text = %q", got)
	}
	paste(p, strings.Repeat("語", 100_000))
	if n := len(p.Text()); n > 64<<10 || n < 60<<10 {
		t.Errorf("text has %d bytes, want at most 64 KiB", n)
	}
	widgettest.Press(t, p, "home", "x")
	paste(p, "y")
	widgettest.Harmless(t, p, 60, 1, nil)
}
