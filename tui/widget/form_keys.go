package widget

import (
	"slices"

	"github.com/gdamore/tcell/v2"
	"github.com/rivo/tview"
)

// Key handles a key; ok is false if it has no meaning.
func (f *Form) Key(event *tcell.EventKey) (ok bool) {
	name := KeyName(event)
	switch name {
	case "esc":
		f.cancel()
		return true
	case "ctrl-s":
		f.submit()
		return true
	case "tab", "down":
		f.move(1)
		return true
	case "shift-tab", "up":
		f.move(-1)
		return true
	}
	if f.focus >= len(f.fields) {
		return f.buttonKey(name)
	}
	field := f.fields[f.focus]
	switch field.Kind {
	case ChoiceField:
		return f.choiceKey(field, name)
	case CheckField:
		return f.checkKey(field, name)
	case JSONField:
		return f.jsonKey(field, name)
	}
	if name == "enter" {
		f.move(1)
		return true
	}
	if (name == "right" || name == "ctrl-f") && f.accept() {
		return true
	}
	changed, ok := field.input.key(event)
	field.typed(changed)
	return ok
}

// submitFocus and cancelFocus are the positions of the buttons, after the last field.
func (f *Form) submitFocus() int { return len(f.fields) }
func (f *Form) cancelFocus() int { return len(f.fields) + 1 }

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

// accept inserts the completion of the focused field.
func (f *Form) accept() bool {
	if f.focus >= len(f.fields) || f.fields[f.focus].ghost == "" {
		return false
	}
	field := f.fields[f.focus]
	field.set(field.input.text + field.ghost)
	return true
}

// typed handles the result of a key in the field's input.
func (f *formField) typed(changed bool) {
	if changed {
		f.problem = ""
	}
	f.guess()
}

func (f *Form) buttonKey(name string) bool {
	switch name {
	case "left", "right":
		f.focus = f.submitFocus() + f.cancelFocus() - f.focus
	case "enter", "space":
		if f.focus == f.submitFocus() {
			f.submit()
		} else {
			f.cancel()
		}
	default:
		return false
	}
	return true
}

func (f *Form) choiceKey(field *formField, name string) bool {
	at := slices.Index(field.Choices, field.Value)
	switch name {
	case "left":
		at = around(at, -1, len(field.Choices))
	case "right", "space":
		at = around(at, 1, len(field.Choices))
	case "enter":
		f.move(1)
		return true
	default:
		return false
	}
	if at < len(field.Choices) {
		field.set(field.Choices[at])
	}
	return true
}

func (f *Form) checkKey(field *formField, name string) bool {
	switch name {
	case "space", "left", "right":
		if field.Value == "true" {
			field.set("false")
		} else {
			field.set("true")
		}
	case "enter":
		f.move(1)
	default:
		return false
	}
	return true
}

// jsonKey opens the editor, or clears the field.
func (f *Form) jsonKey(field *formField, name string) bool {
	switch name {
	case "e", "enter":
		if f.Edit == nil {
			return false
		}
		edited, err := f.Edit([]byte(field.Value))
		if err != nil {
			field.problem = err.Error()
			return true
		}
		field.set(string(edited))
		if err := field.check(); err != nil {
			field.problem = err.Error()
		}
	case "ctrl-u":
		field.set("")
	default:
		return false
	}
	return true
}

// MouseHandler moves with the wheel, and focuses fields and chooses buttons with clicks.
func (f *Form) MouseHandler() func(tview.MouseAction, *tcell.EventMouse, func(tview.Primitive)) (bool,
	tview.Primitive) {
	return mouse(f.Box, func(rows int) { f.move(min(max(rows, -1), 1)) }, func(x, y int, _ bool) {
		left, top, _, _ := f.GetInnerRect()
		for i, b := range f.buttons {
			if y+top == b.y && x+left >= b.x && x+left < b.x+b.w {
				f.focus = f.submitFocus() + i
				f.buttonKey("enter")
				return
			}
		}
		if field, ok := f.places[y+top]; ok {
			f.move(field - f.focus)
		}
	})
}
