package kagzi

import (
	"fmt"
	"strconv"
	"strings"
	"unicode"
	"unicode/utf8"

	kagziv1 "github.com/kagzi/kagzi/proto/kagzi/v1"
)

// Divergence is the first place at which a run's code and its record part. The texts may hold what users wrote; Error escapes them.
type Divergence struct {
	RunID        string
	WorkflowType string
	Step         string // name of the recorded step, or of the one that the code came to beyond the record; "" at the run's input and end
	Expected     string // what is recorded there
	Got          string // what the code did
	Stack        string // of a panic of the code, else ""
}

func (d *Divergence) Error() string {
	at := ""
	if d.Step != "" {
		at = " at step " + printable(d.Step)
	}
	return fmt.Sprintf("run %s of type %s diverges%s: expected %s, got %s",
		printable(d.RunID), printable(d.WorkflowType), at, printable(d.Expected), printable(d.Got))
}

// printable is text that a terminal shows as it stands, on one line.
func printable(text string) string {
	var b strings.Builder
	for len(text) > 0 {
		r, n := utf8.DecodeRuneInString(text)
		if unicode.IsPrint(r) && (r != utf8.RuneError || n > 1) {
			b.WriteRune(r)
		} else {
			quoted := strconv.Quote(text[:n])
			b.WriteString(quoted[1 : len(quoted)-1])
		}
		text = text[n:]
	}
	return b.String()
}

// kindNondeterministic is the error type of a run whose code is not the code that began it.
const kindNondeterministic = "nondeterministic"

// mismatch is a record of another kind than the code has at its place.
type mismatch struct {
	step           string
	recorded, code kagziv1.StepKind
}

func (m *mismatch) Error() string {
	return fmt.Sprintf("step %s is recorded as %s, and the code now has a %s there: it is not the code that began this run",
		m.step, kindName(m.recorded), kindName(m.code))
}

func (m *mismatch) ErrorType() string { return kindNondeterministic }

// unreadable is a recorded payload that the code cannot read.
type unreadable struct {
	what string // "recorded result of step NAME", "input of workflow type NAME"
	step string // "" for the input
	err  error
}

func (u *unreadable) Error() string { return u.what + ": " + u.err.Error() }
func (u *unreadable) Unwrap() error { return u.err }

func unreadableResult(step string, err error) error {
	return &unreadable{what: "recorded result of step " + step, step: step, err: err}
}
