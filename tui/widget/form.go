package widget

import (
	"encoding/json"
	"errors"
	"slices"
	"strconv"
	"strings"

	"github.com/gdamore/tcell/v2"
	"github.com/rivo/tview"

	"github.com/kagzi/kagzi/tui/filter"
	"github.com/kagzi/kagzi/tui/render"
	"github.com/kagzi/kagzi/tui/theme"
)

// FieldKind is what can be entered in a field.
type FieldKind uint8

const (
	TextField     FieldKind = iota
	NumberField             // a whole number
	DurationField           // "90s", "1h30m", "7d"; not below zero
	ChoiceField             // one of Choices
	CheckField              // "true" or "false"
	JSONField               // JSON over many lines, edited in the person's editor
)

// Field is a field of a Form.
type Field struct {
	Name     string // what its value is known by
	Label    string
	Kind     FieldKind
	Value    string // at first
	Choices  []string
	Required bool // it may not be empty
	// Check says what is wrong with a value that its kind allows, Note is a line below the field
	// about it while it is typed, Complete gives texts that begin with it, the first of which the
	// right arrow takes. Each may be nil.
	Check    func(value string) error
	Note     func(value string) []render.Cell
	Complete func(text string) []string
}

// Form is fields in a box, with buttons below.
type Form struct {
	*tview.Box
	look    func() *theme.Theme
	title   string
	fields  []*formField
	focus   int // field; behind the last: the buttons
	offset  int // rows scrolled out above
	problem string
	buttons [2]buttonPlace // at the last draw
	places  map[int]int    // of the fields by the rows of the screen

	// SubmitLabel is on the button; default "OK". Submit is called with all values by their names
	// once each is valid; Cancel when the person gives up. Edit lets the person change JSON
	// elsewhere; without it JSON can be pasted only.
	SubmitLabel string
	Submit      func(values map[string]string)
	Cancel      func()
	Edit        func(current []byte) ([]byte, error)
}

// formField is a field as it is being filled in.
type formField struct {
	Field
	input   input
	ghost   string
	problem string
	note    []Line // set from outside
}

// NewForm makes a form with the focus on its first field.
func NewForm(look func() *theme.Theme, title string, fields []Field) *Form {
	f := &Form{Box: tview.NewBox(), look: look, title: title, SubmitLabel: "OK"}
	for _, field := range fields {
		added := &formField{Field: field}
		if field.Kind == ChoiceField && !slices.Contains(field.Choices, field.Value) && len(field.Choices) > 0 {
			added.Value = field.Choices[0]
		}
		added.input.set(added.Value)
		f.fields = append(f.fields, added)
	}
	return f
}

// field is the field with a name, or nil.
func (f *Form) field(name string) *formField {
	for _, field := range f.fields {
		if field.Name == name {
			return field
		}
	}
	return nil
}

// Value is what a field holds; empty when there is none with that name.
func (f *Form) Value(name string) string {
	if field := f.field(name); field != nil {
		return field.value()
	}
	return ""
}

// SetValue replaces what a field holds.
func (f *Form) SetValue(name, value string) {
	if field := f.field(name); field != nil {
		field.set(value)
	}
}

// Values are all of them by the names of their fields.
func (f *Form) Values() map[string]string {
	values := map[string]string{}
	for _, field := range f.fields {
		values[field.Name] = field.value()
	}
	return values
}

// SetNote shows lines below a field until others are set: what its value would mean.
func (f *Form) SetNote(name string, lines []Line) {
	if field := f.field(name); field != nil {
		field.note = lines
	}
}

// SetError says below a field what is wrong with it until it changes, and goes there; with no such
// field, above the buttons.
func (f *Form) SetError(name, problem string) {
	for i, field := range f.fields {
		if field.Name == name {
			field.problem, f.focus = problem, i
			return
		}
	}
	f.problem = problem
}

// value is what the field holds.
func (f *formField) value() string {
	if f.Kind == ChoiceField || f.Kind == CheckField || f.Kind == JSONField {
		return f.Value
	}
	return f.input.text
}

func (f *formField) set(value string) {
	f.Value, f.problem = value, ""
	f.input.set(value)
	f.guess()
}

// guess looks for what could complete the text.
func (f *formField) guess() { f.ghost = f.input.rest(f.Complete) }

var (
	errRequired = errors.New("this is needed")
	errNumber   = errors.New("this must be a whole number")
	errDuration = errors.New("this must be a duration such as 90s, 1h30m or 7d")
)

// check says what is wrong with the field's value.
func (f *formField) check() error {
	value := f.value()
	if strings.TrimSpace(value) == "" {
		if f.Required {
			return errRequired
		}
		return nil
	}
	switch f.Kind {
	case NumberField:
		if _, err := strconv.ParseInt(value, 10, 64); err != nil {
			return errNumber
		}
	case DurationField:
		if d, err := filter.ParseDuration(value); err != nil || d < 0 {
			return errDuration
		}
	case JSONField:
		if !json.Valid([]byte(value)) {
			return errors.New("not JSON: " + invalid([]byte(value)))
		}
	}
	if f.Check != nil {
		return f.Check(value)
	}
	return nil
}

// submit hands the values over if all are valid, or goes to the first that is not.
func (f *Form) submit() {
	wrong := -1
	f.problem = ""
	for i, field := range f.fields {
		field.problem = ""
		if err := field.check(); err != nil {
			field.problem = err.Error()
			if wrong < 0 {
				wrong = i
			}
		}
	}
	if wrong >= 0 {
		f.focus = wrong
		return
	}
	if f.Submit != nil {
		f.Submit(f.Values())
	}
}

func (f *Form) cancel() {
	if f.Cancel != nil {
		f.Cancel()
	}
}

// InputHandler fills in.
func (f *Form) InputHandler() func(*tcell.EventKey, func(tview.Primitive)) {
	return f.WrapInputHandler(func(event *tcell.EventKey, _ func(tview.Primitive)) { f.Key(event) })
}

// PasteHandler puts what was pasted into the field that has the focus.
func (f *Form) PasteHandler() func(string, func(tview.Primitive)) {
	return f.WrapPasteHandler(func(text string, _ func(tview.Primitive)) { f.Paste(text) })
}

// Paste puts text into the field that has the focus: instead of what is there in one for JSON, else at the cursor.
func (f *Form) Paste(text string) {
	if f.focus >= len(f.fields) {
		return
	}
	switch field := f.fields[f.focus]; field.Kind {
	case JSONField:
		field.set(text)
	case TextField, NumberField, DurationField:
		field.input.insert(text)
		field.typed(true)
	}
}
