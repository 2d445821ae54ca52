package widget_test

import (
	"errors"
	"fmt"
	"strings"
	"testing"

	"github.com/rivo/tview"

	"github.com/kagzi/kagzi/tui/render"
	"github.com/kagzi/kagzi/tui/theme"
	"github.com/kagzi/kagzi/tui/widget"
	"github.com/kagzi/kagzi/tui/widget/widgettest"
)

func startForm(look func() *theme.Theme) *widget.Form {
	f := widget.NewForm(look, "Start a run", []widget.Field{
		{Name: "type", Label: "Type", Required: true, Complete: func(text string) []string {
			return []string{"order", "order.refund"}
		}},
		{Name: "queue", Label: "Queue", Value: "orders"},
		{Name: "priority", Label: "Priority", Kind: widget.NumberField, Value: "0"},
		{Name: "delay", Label: "Delay", Kind: widget.DurationField},
		{Name: "conflict", Label: "If it is running", Kind: widget.ChoiceField,
			Choices: []string{"refuse", "use it", "terminate it"}},
		{Name: "paused", Label: "Begin paused", Kind: widget.CheckField, Value: "false"},
		{Name: "cron", Label: "Cron", Note: func(value string) []render.Cell {
			if value == "" {
				return nil
			}
			return []render.Cell{{Text: "fires at " + value, Style: render.Dim}}
		}, Check: func(value string) error {
			if value == "never" {
				return errors.New("that never fires")
			}
			return nil
		}},
		{Name: "input", Label: "Input", Kind: widget.JSONField, Value: "{\n  \"name\": \"you\"\n}"},
	})
	f.SubmitLabel = "Start"
	return f
}

func TestForm(t *testing.T) {
	for _, size := range widgettest.Sizes() {
		t.Run(size.String(), func(t *testing.T) {
			f := startForm(plain)
			f.Edit = func(current []byte) ([]byte, error) { return current, nil }
			got := widgettest.Draw(t, f, size.W, 15, nil)
			widgettest.Press(t, f, "ctrl-s")
			f.SetNote("cron", []widget.Line{widget.TextLine("next: in 5m", render.Dim),
				widget.TextLine("then: in 10m", render.Dim)})
			got += widgettest.Draw(t, f, size.W, 15, nil)
			widgettest.Press(t, f, "up", "up", "up")
			got += widgettest.Draw(t, f, size.W, 15, nil)
			widgettest.Golden(t, "form_"+size.String(), got)
		})
	}
	f := startForm(ascii)
	got := widgettest.Draw(t, f, 60, 15, nil)
	f = startForm(mono)
	widgettest.Type(t, f, "or")
	widgettest.Golden(t, "form_plain", got+widgettest.DrawStyles(t, f, 80, 24, nil))
}

// fill presses keys in a form and returns the submitted values; nil if there were none.
func fill(t *testing.T, f *widget.Form, keys ...string) map[string]string {
	t.Helper()
	var values map[string]string
	f.Submit = func(v map[string]string) { values = v }
	widgettest.Press(t, f, keys...)
	return values
}

func TestForm_values(t *testing.T) {
	f := startForm(plain)
	got := fill(t, f, "o", "right", "tab", "x", "tab", "backspace", "7", "down", "9", "0", "s", "enter", "right",
		"right", "right", "right", "tab", "space",
		"tab", "5", "shift-tab", "tab", "enter", "ctrl-s")
	want := map[string]string{"type": "order", "queue": "ordersx", "priority": "7", "delay": "90s",
		"conflict": "use it", "paused": "true", "cron": "5", "input": "{\n  \"name\": \"you\"\n}"}
	if fmt.Sprint(got) != fmt.Sprint(want) {
		t.Errorf("values\n%v\nwant\n%v", got, want)
	}
}

func TestForm_says_what_is_wrong_where_it_is(t *testing.T) {
	for _, test := range []struct{ field, value, want string }{
		{"type", " ", "a value is required"},
		{"priority", "1.5", "a whole number"},
		{"delay", "soon", "a duration such as"},
		{"delay", "-5m", "a duration such as"},
		{"cron", "never", "that never fires"},
		{"input", `{"a":}`, "not JSON: invalid character"},
	} {
		t.Run(test.field+" "+test.value, func(t *testing.T) {
			f := startForm(plain)
			f.SetValue("type", "order")
			f.SetValue(test.field, test.value)
			if got := fill(t, f, "ctrl-s"); got != nil {
				t.Fatalf("handed over %v", got)
			}
			if got := widgettest.Draw(t, f, 60, 15, nil); !strings.Contains(got, test.want) {
				t.Errorf("nothing says %q:\n%s", test.want, got)
			}
		})
	}
	f := startForm(plain)
	f.SetValue("type", "order")
	for _, value := range []string{"", "0s", "90s", "1h30m", "7d"} {
		f.SetValue("delay", value)
		if fill(t, f, "ctrl-s") == nil {
			t.Errorf("a delay of %q was refused", value)
		}
	}
	f.SetError("queue", "no worker serves it")
	if got := widgettest.Draw(t, f, 80, 24, nil); !strings.Contains(got, "no worker serves it") {
		t.Errorf("what the server said is missing:\n%s", got)
	}
	widgettest.Press(t, f, "x")
	f.SetError("", "the server does not answer")
	if got := widgettest.Draw(t, f, 80, 24, nil); strings.Contains(got, "no worker serves it") ||
		!strings.Contains(got, "the server does not answer") {
		t.Errorf("what was said stays or is missing:\n%s", got)
	}
}

// paste pastes a text as the terminal does.
func paste(p tview.Primitive, text string) { p.PasteHandler()(text, func(tview.Primitive) {}) }

func TestForm_edits_JSON_elsewhere(t *testing.T) {
	f := startForm(plain)
	f.SetValue("type", "order")
	widgettest.Press(t, f, "up", "up", "up")
	f.Edit = func(current []byte) ([]byte, error) {
		return []byte(strings.ReplaceAll(string(current), "you", "me")), nil
	}
	widgettest.Press(t, f, "ctrl-o")
	if got := f.Value("input"); !strings.Contains(got, `"me"`) {
		t.Errorf("input = %s", got)
	}
	f.Edit = func([]byte) ([]byte, error) { return nil, errors.New("no editor is set") }
	widgettest.Press(t, f, "ctrl-o")
	if got := widgettest.Draw(t, f, 80, 24, nil); !strings.Contains(got, "no editor is set") ||
		!strings.Contains(f.Value("input"), `"me"`) {
		t.Errorf("the failure is not said, or the value is gone:\n%s", got)
	}
	widgettest.Press(t, f, "ctrl-l") // everything
	paste(f, "[1,\r\n2]\x1b")
	if got := f.Value("input"); got != "[1,\n2]" {
		t.Errorf("input after a paste = %q", got)
	}
}

func TestForm_types_JSON(t *testing.T) {
	for _, test := range []struct {
		name, value, typed string
		keys               []string
		want               string
	}{
		{"into an empty field", "", `{"name": "eve"}`, nil, `{"name": "eve"}`},
		{"at the begin of what is there", "[2]", "x", []string{"backspace"}, "[2]"},
		{"on several lines", "", "[1,", []string{"enter", "2", "]"}, "[1,\n2]"},
		{"in the middle", "[1,\n2]", "", []string{"down", "3", "up", "end", "4"}, "[1,4\n32]"},
		{"and takes it back", "", "12", []string{"ctrl-_"}, ""},
	} {
		t.Run(test.name, func(t *testing.T) {
			f := startForm(plain)
			f.Edit = func([]byte) ([]byte, error) { t.Error("the editor was opened"); return nil, nil }
			f.SetValue("input", test.value)
			widgettest.Press(t, f, "shift-tab", "shift-tab", "shift-tab")
			widgettest.Type(t, f, test.typed)
			widgettest.Press(t, f, test.keys...)
			if got := f.Value("input"); got != test.want {
				t.Errorf("input = %q, want %q", got, test.want)
			}
			if got := widgettest.Draw(t, f, 80, 24, nil); test.want != "" &&
				!strings.Contains(got, strings.Split(test.want, "\n")[0]) {
				t.Errorf("what was typed is not on the screen:\n%s", got)
			}
		})
	}
}

func TestForm_leaves_JSON_with_the_arrows_at_its_ends(t *testing.T) {
	f := startForm(plain)
	f.SetValue("type", "order")
	f.SetValue("cron", "")
	widgettest.Press(t, f, "shift-tab", "shift-tab", "shift-tab", "down", "up", "up") // the field before
	widgettest.Type(t, f, "5")
	widgettest.Press(t, f, "down", "down", "down", "down") // the button after
	if got := fill(t, f, "enter"); got["cron"] != "5" {
		t.Errorf("handed over %v", got)
	}
}

func TestForm_buttons(t *testing.T) {
	f := startForm(plain)
	f.SetValue("type", "order")
	cancelled := 0
	f.Cancel = func() { cancelled++ }
	if got := fill(t, f, "up", "enter"); got != nil || cancelled != 1 {
		t.Errorf("up from the first field led to %v, cancelled %d, want the last button", got, cancelled)
	}
	if got := fill(t, f, "left", "enter"); got == nil {
		t.Error("the button handed nothing over")
	}
	widgettest.Press(t, f, "esc")
	if cancelled != 2 {
		t.Errorf("cancelled %d times, want 2", cancelled)
	}
}

func TestForm_shows_the_field_that_has_the_focus(t *testing.T) {
	f := startForm(plain)
	for _, size := range []widgettest.Size{{W: 60, H: 15}, {W: 60, H: 6}, {W: 20, H: 5}} {
		for _, label := range []string{"Type", "Queue", "Priority", "Delay", "If it", "Begin", "Cron", "Input"} {
			if got := widgettest.Draw(t, f, size.W, size.H, nil); !strings.Contains(got, label[:4]) {
				t.Errorf("%v: %s is not on the screen:\n%s", size, label, got)
			}
			widgettest.Press(t, f, "tab")
		}
		widgettest.Press(t, f, "tab", "tab")
	}
}

func TestForm_says_all_of_what_is_wrong(t *testing.T) {
	const long = "must be the name of a time zone of the IANA database, such as Europe/Berlin or America/New_York, and not empty"
	for _, size := range widgettest.Sizes() {
		f := startForm(plain)
		f.SetError("queue", long)
		if got := words(widgettest.Draw(t, f, size.W, size.H, nil)); !strings.Contains(got, long) {
			t.Errorf("%v: what is wrong with a field is cut:\n%s", size, got)
		}
		f = startForm(plain)
		f.SetError("", long)
		if got := words(widgettest.Draw(t, f, size.W, size.H, nil)); !strings.Contains(got, long) {
			t.Errorf("%v: what is wrong with the whole is cut:\n%s", size, got)
		}
	}
}

func TestForm_says_once_what_the_field_notes_too(t *testing.T) {
	const wrong = "that is no zone"
	f := widget.NewForm(plain, "A schedule", []widget.Field{
		{Name: "zone", Label: "Time zone", Note: func(string) []render.Cell {
			return []render.Cell{{Text: wrong, Style: render.Bad}}
		}},
	})
	f.SetError("zone", wrong)
	if got := widgettest.Draw(t, f, 80, 24, nil); strings.Count(got, wrong) != 1 {
		t.Errorf("%q is said %d times, want once:\n%s", wrong, strings.Count(got, wrong), got)
	}
}

// words returns a screen's words without lines and blanks.
func words(screen string) string {
	return strings.Join(strings.FieldsFunc(screen, func(r rune) bool { return r == ' ' || r == '\n' || r == '│' }), " ")
}
