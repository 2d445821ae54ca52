package kagzi

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"reflect"
	"regexp"
	"strings"

	kagziv1 "github.com/kagzi/kagzi/proto/kagzi/v1"
	"github.com/kagzi/kagzi/sdk/internal/convert"
)

// Divergence is the first difference between a run's code and its record. Its texts may contain
// user data; Error escapes them.
type Divergence struct {
	RunID        string
	WorkflowType string
	// Step is the recorded step, or the code's extra step; "" at the run's input and end.
	Step     string
	Expected string // what is recorded
	Got      string // what the code did
	Stack    string // of a panic, else ""
	// Owed are the recorded calls that the code owes and has not made, and Made are the code's calls
	// that are not recorded: at most 100 of each, in order, such as "step charge in branch 2".
	Owed, Made []string
}

func (d *Divergence) Error() string {
	at := ""
	if d.Step != "" {
		at = " at step " + convert.Printable(d.Step)
	}
	return fmt.Sprintf("run %s of type %s diverges%s: expected %s, got %s",
		convert.Printable(d.RunID), convert.Printable(d.WorkflowType), at, convert.Printable(d.Expected),
		convert.Printable(d.Got))
}

// lists names, in two lines, what only the record has and what only the code has; empty if both have the
// same calls.
func (d *Divergence) lists() string {
	if len(d.Owed)+len(d.Made) == 0 {
		return ""
	}
	return fmt.Sprintf("\n  recorded, but not made: %s\n  made, but not recorded: %s", listed(d.Owed), listed(d.Made))
}

func listed(names []string) string {
	if len(names) == 0 {
		return "none"
	}
	return convert.Printable(strings.Join(names, ", "))
}

// namesOf names calls for a Divergence.
func namesOf(calls []*kagziv1.Call) (names []string) {
	for _, c := range calls {
		names = append(names, callName(c))
	}
	return names
}

// kindNondeterministic is the error type of a run that other code started.
const kindNondeterministic = "nondeterministic"

// mismatch is a recorded call whose kind, child type or signal differs from that of the code's call of
// the same name.
type mismatch struct{ recorded, code *kagziv1.Call }

func (m *mismatch) Error() string {
	return fmt.Sprintf("recorded is %s, but the code now makes %s: this is not the code that the run started with",
		callName(m.recorded), callName(m.code))
}

func (m *mismatch) ErrorType() string { return kindNondeterministic }

// unreadable is a recorded payload that the code cannot decode.
type unreadable struct {
	what string // "recorded result of step NAME", "input of workflow type NAME"
	step string // "" for the input
	err  error
}

func (u *unreadable) Error() string { return u.what + ": " + u.err.Error() }
func (u *unreadable) Unwrap() error { return u.err }

// ErrorType makes the run fail with the type of PROTOCOL.md, 23.4.
func (u *unreadable) ErrorType() string { return "unreadable" }

func unreadableResult(step string, err error) error {
	return &unreadable{what: "recorded result of step " + step, step: step, err: err}
}

const maxPreview = 200 // bytes of a payload or an error in a report

// compareEnds compares how the code and the run ended, if code ended the run.
func (r *replay) compareEnds() *Divergence {
	w := r.record.run
	completed, next := w.GetStatus() == kagziv1.WorkflowStatus_WORKFLOW_STATUS_COMPLETED, w.ContinuedAsRunId != nil
	if !completed && !r.record.codeFailed() {
		return nil
	}
	same := r.returned && completed == (r.failure == nil) && next == r.next
	switch {
	case same && completed && !next:
		same = r.sameOutput(w.GetOutput())
	case same && !completed:
		same = sameFailure(errorDetail(r.failure), w.GetError())
	}
	if same {
		return nil
	}
	expected := "the run to have failed: " + preview([]byte(w.GetError().GetMessage()))
	switch {
	case next:
		expected = "the run to have continued as new"
	case completed:
		expected = "the run to have completed with " + r.preview(w.GetOutput())
	}
	if !r.returned {
		return r.diverged(r.firstOpen(), expected, r.instead())
	}
	return r.diverged("", expected, r.end())
}

// firstOpen returns the first call that has no result.
func (r *replay) firstOpen() string {
	for _, c := range r.calls {
		if !hasResult(r.e.history[c.GetName()]) {
			return c.GetName()
		}
	}
	return ""
}

func (r *replay) end() string {
	switch {
	case r.failure != nil:
		return "the run failed: " + preview([]byte(r.failure.Error()))
	case r.next:
		return "the run continued as new"
	}
	return "the run completed with " + r.preview(r.output)
}

func (r *replay) sameOutput(recorded *kagziv1.Payload) bool {
	a, errA := r.plain(recorded)
	b, errB := r.plain(r.output)
	if errA != nil || errB != nil || bytes.Equal(a, b) {
		return errA == nil && errB == nil
	}
	var av, bv any
	return json.Unmarshal(a, &av) == nil && json.Unmarshal(b, &bv) == nil && reflect.DeepEqual(av, bv)
}

// plain returns a payload's JSON, decoded by the codec. A panic of the codec is caught, because it
// would leave the execution locked.
func (r *replay) plain(p *kagziv1.Payload) (data []byte, err error) {
	defer func() {
		if value := recover(); value != nil {
			err = fmt.Errorf("codec: %w", panicError(value))
		}
	}()
	if p == nil {
		return nil, nil
	}
	data, err = unpack(r.codec, p, PayloadInfo{Kind: PayloadOutput, RunID: r.e.info.RunID})
	return bytes.TrimSpace(data), err
}

func (r *replay) preview(p *kagziv1.Payload) string {
	data, err := r.plain(p)
	if err != nil {
		return "an output that cannot be decoded: " + preview([]byte(err.Error()))
	}
	if len(data) == 0 {
		return "no output"
	}
	return preview(data)
}

func preview(data []byte) string {
	if len(data) > maxPreview {
		return strings.ToValidUTF8(string(data[:maxPreview]), "") + "…"
	}
	return string(data)
}

// sameFailure compares errors by type and message; of panics, whose text may contain addresses,
// only the type.
func sameFailure(got, recorded *kagziv1.ErrorDetail) bool {
	return got.GetType() == recorded.GetType() &&
		(got.GetType() == "panic" || withoutChildNames(got.GetMessage()) == withoutChildNames(recorded.GetMessage()))
}

// childNames is how the error of a child run names it. Errors that earlier versions of the SDK
// recorded have only the run's id.
var childNames = regexp.MustCompile(`child \S+ of type \S+ \((?:external id \S+, )?(run \S+)\)`)

func withoutChildNames(text string) string { return childNames.ReplaceAllString(text, "$1") }

func (r *replay) diverged(step, expected, got string) *Divergence {
	d := &Divergence{RunID: r.e.info.RunID, WorkflowType: r.e.info.WorkflowType, Step: step,
		Expected: expected, Got: got, Owed: namesOf(r.e.owed()), Made: namesOf(r.made())}
	var own *coded
	if errors.As(r.failure, &own) {
		d.Stack = own.stack
	}
	return d
}
