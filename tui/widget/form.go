package widget

import (
	"encoding/json"
	"errors"
	"slices"
	"strconv"
	"strings"

	"github.com/rivo/tview"

	"github.com/kagzi/kagzi/proto/query"
	"github.com/kagzi/kagzi/tui/render"
	"github.com/kagzi/kagzi/tui/theme"
)

// FieldKind is the kind of value of a field.
type FieldKind uint8

const (
	TextField     FieldKind = iota
	NumberField             // a whole number
	DurationField           // "90s", "1h30m", "7d"; not negative
	ChoiceField             // one of Choices
	CheckField              // "true" or "false"
	JSONField               // JSON on many lines
)

// Field is a field of a Form.
type Field struct {
	Name     string // key of its value
	Label    string
	Kind     FieldKind
	Value    string // initial value
	Choices  []string
	Required bool // must not be empty
	// Check returns an error for a value that its kind allows. Note returns a line to show below
	// the field for the current value. Complete returns texts that begin with the value; the right
	// arrow accepts the first. Each may be nil.
	Check    func(value string) error
	Note     func(value string) []render.Cell
	Complete func(text string) []string
}

// Form shows fields in a box, with buttons below. In tview's Form each field would be an item of our
// own, because those of tview have no notes and problems below them; only the stacking of rows would
// be tview's, and its buttons scroll out of sight.
type Form struct {
	*tview.Box
	look    func() *theme.Theme
	title   string
	fields  []*formField
	focus   int // field; after the last: the buttons
	offset  int // rows scrolled out at the top
	problem string
	buttons buttons
	places  map[int]int // field by screen row, at the last draw

	// SubmitLabel is the text of the submit button; default "OK". Submit is called with all values
	// by name once each is valid, Cancel when the form is cancelled. Edit opens JSON in an editor;
	// nil: there is none.
	SubmitLabel string
	Submit      func(values map[string]string)
	Cancel      func()
	Edit        func(current []byte) ([]byte, error)
}

// formField is a field with its current value: in typed, or for a choice and a check in Value.
type formField struct {
	Field
	typed   *entry
	problem string
	note    []Line // set by SetNote
}

// NewForm returns a form with the focus on its first field.
func NewForm(look func() *theme.Theme, title string, fields []Field) *Form {
	f := &Form{Box: tview.NewBox(), look: look, title: title, SubmitLabel: "OK"}
	for _, field := range fields {
		added := &formField{Field: field}
		switch field.Kind {
		case ChoiceField:
			if !slices.Contains(field.Choices, field.Value) && len(field.Choices) > 0 {
				added.Value = field.Choices[0]
			}
		case CheckField:
		default:
			added.typed = newEntry(field.Kind == JSONField)
			added.typed.set(field.Value)
			added.typed.complete = field.Complete
		}
		f.fields = append(f.fields, added)
	}
	return f
}

// field returns the field with a name, or nil.
func (f *Form) field(name string) *formField {
	for _, field := range f.fields {
		if field.Name == name {
			return field
		}
	}
	return nil
}

// Value returns a field's value; empty if there is no such field.
func (f *Form) Value(name string) string {
	if field := f.field(name); field != nil {
		return field.value()
	}
	return ""
}

// Values returns all values by field name.
func (f *Form) Values() map[string]string {
	values := map[string]string{}
	for _, field := range f.fields {
		values[field.Name] = field.value()
	}
	return values
}

// SetNote shows lines below a field until the next SetNote, such as a preview of its value.
func (f *Form) SetNote(name string, lines []Line) {
	if field := f.field(name); field != nil {
		field.note = lines
	}
}

// SetError shows a problem below a field until its value changes, and focuses the field. Without
// such a field it is shown above the buttons.
func (f *Form) SetError(name, problem string) {
	for i, field := range f.fields {
		if field.Name == name {
			field.problem, f.focus = problem, i
			return
		}
	}
	f.problem = problem
}

// value returns the field's value.
func (f *formField) value() string {
	if f.typed == nil {
		return f.Value
	}
	return f.typed.text()
}

func (f *formField) set(value string) {
	f.problem = ""
	if f.typed == nil {
		f.Value = value
	} else {
		f.typed.set(value)
	}
}

var (
	errRequired = errors.New("a value is required")
	errNumber   = errors.New("want a whole number")
	errDuration = errors.New("want a duration such as 90s, 1h30m or 7d")
)

// check returns what is wrong with the field's value.
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
		if d, err := query.ParseDuration(value); err != nil || d < 0 {
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

// submit calls Submit if all values are valid, or focuses the first invalid field.
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
