package widget

import (
	"slices"

	"github.com/gdamore/tcell/v2"
	"github.com/rivo/tview"
)

// InputHandler edits the form.
func (f *Form) InputHandler() func(*tcell.EventKey, func(tview.Primitive)) {
	return takes(f.Box, f.key)
}

// PasteHandler inserts text at the cursor of the focused field.
func (f *Form) PasteHandler() func(string, func(tview.Primitive)) {
	return pastes(f.Box, func(text string) {
		if f.focus < len(f.fields) && f.fields[f.focus].typed != nil {
			f.fields[f.focus].typed.insert(text)
			f.fields[f.focus].problem = ""
		}
	})
}

func (f *Form) key(event *tcell.EventKey) {
	name := KeyName(event)
	switch name {
	case "esc":
		f.cancel()
		return
	case "ctrl-s":
		f.submit()
		return
	}
	if f.focus >= len(f.fields) {
		f.buttonKey(name)
		return
	}
	switch field := f.fields[f.focus]; {
	case name == "tab":
		f.move(1)
	case name == "shift-tab":
		f.move(-1)
	case field.typed == nil:
		f.switchKey(field, name)
	case field.typed.lines:
		f.linesKey(field, event)
	case name == "enter" || name == "down":
		f.move(1)
	case name == "up":
		f.move(-1)
	case (name == "right" || name == "ctrl-f") && field.typed.accept():
		field.problem = ""
	default:
		field.write(event)
	}
}

// write passes a key to the field's text.
func (f *formField) write(event *tcell.EventKey) {
	if f.typed.key(event) {
		f.problem = ""
	}
}

// move focuses the next field or button. It checks the field that loses the focus, so that mistakes
// show at once.
func (f *Form) move(step int) {
	if f.focus < len(f.fields) {
		field := f.fields[f.focus]
		field.problem = ""
		if err := field.check(); err != nil && field.value() != "" {
			field.problem = err.Error()
		}
	}
	f.focus = around(f.focus, step, len(f.fields)+2)
}

// buttonKey handles a key while one of the buttons, which come after the last field, has the focus.
func (f *Form) buttonKey(name string) {
	submit := len(f.fields)
	switch name {
	case "tab", "down":
		f.move(1)
	case "shift-tab", "up":
		f.move(-1)
	case "left", "right":
		f.focus = 2*submit + 1 - f.focus
	case "enter", "space":
		f.press(f.focus - submit)
	}
}

// press presses a button.
func (f *Form) press(button int) {
	f.focus = len(f.fields) + button
	if button == 0 {
		f.submit()
	} else {
		f.cancel()
	}
}

// switchKey changes a choice or a check in place.
func (f *Form) switchKey(field *formField, name string) {
	choices := field.Choices
	if field.Kind == CheckField {
		choices = []string{"false", "true"}
	}
	step := 1
	switch name {
	case "down", "enter":
		f.move(1)
		return
	case "up":
		f.move(-1)
		return
	case "left":
		step = -1
	case "right", "space":
	default:
		return
	}
	if at := around(slices.Index(choices, field.Value), step, len(choices)); at < len(choices) {
		field.set(choices[at])
	}
}

// linesKey edits text of several lines: the arrows leave it at its ends, and ctrl-o opens the
// editor.
func (f *Form) linesKey(field *formField, event *tcell.EventKey) {
	name := KeyName(event)
	if name == "ctrl-o" && f.Edit != nil {
		edited, err := f.Edit([]byte(field.value()))
		if err == nil {
			field.set(string(edited))
			err = field.check()
		}
		if err != nil {
			field.problem = err.Error()
		}
		return
	}
	before, _, _, _ := field.typed.area.GetCursor()
	field.write(event)
	if after, _, _, _ := field.typed.area.GetCursor(); before == after {
		switch name {
		case "down":
			f.move(1)
		case "up":
			f.move(-1)
		}
	}
}

// MouseHandler moves with the wheel, and focuses fields and chooses buttons with clicks.
func (f *Form) MouseHandler() mouseHandler {
	return mouse(f.Box, func(rows int) { f.move(min(max(rows, -1), 1)) }, func(x, y int, _ bool) {
		left, top, _, _ := f.GetInnerRect()
		if button := f.buttons.at(x+left, y+top); button >= 0 {
			f.press(button)
		} else if field, ok := f.places[y+top]; ok {
			f.move(field - f.focus)
		}
	})
}
