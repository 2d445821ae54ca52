package kagzi

import (
	"errors"
	"fmt"
	"runtime/debug"
	"strings"
	"unicode/utf8"

	kagziv1 "github.com/kagzi/kagzi/proto/kagzi/v1"
)

// How an error, or a panic, becomes what is recorded.

// coded is an error of the SDK's own making.
type coded struct {
	code  kagziv1.ErrorCode
	kind  string
	text  string
	stack string
}

func (e *coded) Error() string     { return e.text }
func (e *coded) ErrorType() string { return e.kind }

func panicError(value any) *coded {
	return &coded{kind: "panic", text: panicText(value), stack: panicStack(string(debug.Stack()))}
}

// panicText prints what the code panicked with. Package fmt bears a method of it that panics, but not one whose panic cannot be printed either:
// that one would end the whole process, and with it every other run of the worker.
func panicText(value any) (text string) {
	defer func() {
		if recover() != nil {
			text = fmt.Sprintf("panic: a %T, whose methods panic", value)
		}
	}()
	return fmt.Sprintf("panic: %v", value)
}

// panicStack begins a stack where the code panicked, without the frames of what recovered from it.
func panicStack(stack string) string {
	title, frames, _ := strings.Cut(stack, "\n")
	if _, panicking, found := strings.Cut(frames, "\npanic("); found {
		if lines := strings.SplitN(panicking, "\n", 3); len(lines) == 3 {
			return title + "\n" + lines[2]
		}
	}
	return stack
}

// panicked is the error of a step's or a workflow's code that panics, which the log tells of at once: it is most likely a mistake in the code,
// and else only whoever looks at the run would see it. The stack is recorded with the run.
func (w *Worker) panicked(value any, where ...any) *coded {
	err := panicError(value)
	w.log.Error("panic of the code", append(where, "error", cleanText(err.text, maxErrorText))...)
	return err
}

// panicked is that of the run's workflow code. Replays report theirs themselves.
func (e *execution) panicked(value any) *coded {
	if e.replay != nil {
		return panicError(value)
	}
	return e.w.panicked(value, "run", e.info.RunID, "type", e.info.WorkflowType)
}

const (
	maxErrorText = 16 << 10
	maxErrorType = 255
	cutMark      = " … [cut]"
)

// errorDetail is the form in which an error is recorded.
func errorDetail(err error) *kagziv1.ErrorDetail {
	d := &kagziv1.ErrorDetail{Message: cleanText(err.Error(), maxErrorText)}
	var (
		final nonRetryable
		after retryAfter
		typed Typed
		own   *coded
		step  *StepError
		next  *continuation
	)
	if errors.As(err, &final) || errors.As(err, &next) {
		d.NonRetryable = true
	}
	if errors.As(err, &after) && after.delay > 0 {
		d.RetryAfterMs = max(1, after.delay.Milliseconds())
	}
	if errors.As(err, &typed) {
		d.Type = cleanText(typed.ErrorType(), maxErrorType)
	}
	if errors.As(err, &own) {
		d.Code, d.Stack = own.code, cleanText(own.stack, maxErrorText)
	}
	if errors.As(err, &step) {
		d.NonRetryable = d.NonRetryable || step.NonRetryable
		if d.Code == kagziv1.ErrorCode_ERROR_CODE_UNSPECIFIED && step.Code != CodeCrashed { // only the server says that a worker was lost
			d.Code = step.Code.wire()
		}
	}
	if errors.Is(err, ErrCancelled) {
		d.Code, d.NonRetryable = kagziv1.ErrorCode_ERROR_CODE_CANCELLED, true
	}
	return d
}

// askError calls the methods of an error of the author's, whose panic is one of the code as long as that is on the stack: those of a
// nil pointer in an error mostly do.
func askError(err error) {
	if err != nil {
		errorDetail(err)
	}
}

// cleanText makes text storable everywhere: valid UTF-8 without NUL, at most limit bytes with a mark where it was cut.
func cleanText(text string, limit int) string {
	text = strings.ToValidUTF8(text, "\uFFFD")
	text = strings.ReplaceAll(text, "\x00", "\uFFFD")
	if len(text) <= limit {
		return text
	}
	end := limit - len(cutMark)
	for end > 0 && !utf8.RuneStart(text[end]) {
		end--
	}
	return text[:end] + cutMark
}
