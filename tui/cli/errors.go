package cli

import (
	"context"
	"errors"
	"fmt"
	"strings"

	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	kagziv1 "github.com/kagzi/kagzi/proto/kagzi/v1"
	"github.com/kagzi/kagzi/tui"
	"github.com/kagzi/kagzi/tui/cli/internal/spelling"
	"github.com/kagzi/kagzi/tui/filter"
	"github.com/kagzi/kagzi/tui/render"
)

// usageError is a mistake in what was typed, and what to type instead.
type usageError struct {
	err  error
	hint []string
}

func (e *usageError) Error() string { return e.err.Error() }
func (e *usageError) Unwrap() error { return e.err }

func usagef(format string, args ...any) *usageError {
	return &usageError{err: fmt.Errorf(format, args...)}
}

// codeError ends the process with a code when all there is to say has been printed.
type codeError int

func (e codeError) Error() string { return fmt.Sprintf("exit code %d", int(e)) }

// timeoutError says that --timeout is over.
type timeoutError struct {
	limit string // as it was given
	err   error  // what was being done
	hint  []string
}

func (e *timeoutError) Error() string {
	return fmt.Sprintf("gave up after %s (--timeout)", e.limit)
}
func (e *timeoutError) Unwrap() error { return e.err }

// callError is what a server answered, with where it was asked.
type callError struct {
	address   string
	namespace string
	query     string // the filter of -q; empty: there is none
	err       error
	hint      string              // of the command that called
	typed     func(string) string // what was typed for a field of the request; nil where that is not known
}

func (e *callError) Error() string { return e.err.Error() }
func (e *callError) Unwrap() error { return e.err }

// explain is the one place where an error becomes what people read and the exit code.
func explain(err error) (lines []string, code int) {
	var (
		usage *usageError
		quiet codeError
		late  *timeoutError
		call  *callError
		held  *heldError
		own   interface{ ExitCode() int }
	)
	switch {
	case errors.As(err, &quiet):
		return nil, int(quiet)
	case errors.As(err, &usage):
		return append([]string{usage.Error()}, usage.hint...), ExitUsage
	case errors.As(err, &late):
		return append([]string{late.Error()}, late.hint...), ExitError
	case errors.As(err, &call):
		return explainCall(call)
	case errors.As(err, &held) && errors.As(err, &own):
		return []string{err.Error(),
				"ask that server in place of its database, with --address instead of --db; or stop it first"},
			own.ExitCode()
	case errors.As(err, &own) && own.ExitCode() > 0:
		return []string{err.Error()}, own.ExitCode()
	case errors.Is(err, context.Canceled):
		return []string{"interrupted"}, ExitInterrupted
	}
	return []string{err.Error()}, ExitError
}

// callExit gives each gRPC code the exit code that scripts see.
var callExit = map[codes.Code]int{
	codes.NotFound: ExitNotFound, codes.AlreadyExists: ExitConflict, codes.FailedPrecondition: ExitConflict,
	codes.Aborted:     ExitConflict,
	codes.Unavailable: ExitUnavailable, codes.DeadlineExceeded: ExitUnavailable,
	codes.PermissionDenied: ExitPermissionDenied, codes.Unauthenticated: ExitPermissionDenied,
	codes.InvalidArgument: ExitUsage, codes.OutOfRange: ExitUsage, codes.Canceled: ExitInterrupted,
}

func explainCall(e *callError) ([]string, int) {
	s := status.Convert(e.err)
	if own, ok := errors.AsType[interface {
		error
		GRPCStatus() *status.Status
	}](e.err); ok {
		s = own.GRPCStatus() // of an error around it Convert makes the raw text of gRPC
	}
	code, ok := callExit[s.Code()]
	if !ok {
		code = ExitError
	}
	detail := detailOf(s)
	lines := e.lines(s, detail)
	switch s.Code() {
	case codes.Unavailable:
		if detail == nil && !strings.HasPrefix(s.Message(), "server") {
			lines = unreached(e.address, s.Message())
		} else {
			lines = append(lines, "this passes; try again in a moment")
		}
	case codes.NotFound:
		if list := listsOf[detail.GetSubject()]; list != "" && e.namespace != "" {
			lines = append(lines, fmt.Sprintf("looked in namespace %s; see: %s --namespace %s", e.namespace, list,
				e.namespace))
		}
		switch detail.GetSubject() {
		case "step":
			lines = append(lines, "which steps a run has: kagzi workflow show ID")
		case "worker":
			lines = append(lines, "which workers there are: kagzi worker list")
		case "namespace":
			lines = append(lines, "which namespaces there are: kagzi namespace list")
		}
	case codes.DeadlineExceeded:
		lines = []string{fmt.Sprintf("no answer from %s in time; a longer limit is --timeout 1m", e.address)}
	case codes.Unauthenticated:
		lines = append(lines,
			"give a key with --api-key-file FILE, KAGZI_API_KEY or a profile; which one is used now: kagzi profile show",
			"an admin makes keys with: kagzi key create NAME --role client --namespace NAMESPACE; with no admin left, beside the database: kagzi key create NAME --role admin --db default")
	case codes.PermissionDenied:
		lines = append(lines,
			"kagzi doctor says who you are here; an admin makes keys that may do more: kagzi key create --help")
	case codes.Unimplemented:
		lines = []string{
			fmt.Sprintf(
				"the server at %s does not offer this; it may be older than this command, see: kagzi version --server",
				e.address)}
	}
	if e.hint != "" {
		lines = append(lines, e.hint)
	}
	return lines, code
}

// listsOf are the commands that list what a namespace has of a thing.
var listsOf = map[string]string{"run": "kagzi workflow list", "schedule": "kagzi schedule list"}

// lines are the server's message, and below it where in a filter it is about something.
func (e *callError) lines(s *status.Status, detail *kagziv1.ErrorDetail) []string {
	name, place := spelling.InFilter(e.query, detail.GetMetadata()["field"])
	if place < 0 {
		return []string{e.line(s, detail)}
	}
	asked := *e
	asked.typed = func(string) string { return "-q: " + name }
	return append([]string{asked.line(s, detail)}, pointed(e.query, place)...)
}

// line is the server's message with what it is about, unless the message says so itself.
func (e *callError) line(s *status.Status, detail *kagziv1.ErrorDetail) string {
	line := s.Message()
	if line == "" {
		line = s.Code().String()
	}
	if about := strings.TrimSpace(detail.GetSubject() + " " + detail.GetSubjectId()); about != "" &&
		!strings.Contains(line, about) {
		if detail.GetSubjectId() == "" || !strings.Contains(line, detail.GetSubjectId()) {
			line += " (" + about + ")"
		}
	}
	if st := detail.GetMetadata()["status"]; st != "" && !strings.Contains(line, st) {
		line += ", it is " + st
	}
	field := detail.GetMetadata()["field"]
	if field != "" && !strings.Contains(line, field) {
		line = field + ": " + line
	}
	if field != "" && e.typed != nil {
		line = spelling.Retyped(line, field, e.typed)
	}
	return line
}

func detailOf(s *status.Status) *kagziv1.ErrorDetail {
	for _, d := range s.Details() {
		if detail, ok := d.(*kagziv1.ErrorDetail); ok {
			return detail
		}
	}
	return nil
}

// unreached says why a server was not reached, and what to do.
func unreached(address, message string) []string {
	why := tui.WhyUnreached(address, message)
	lines := []string{why.Text, why.Advice}
	if why.Absent {
		lines = []string{why.Text + "; " + why.Advice}
	}
	if why.Reason != "" {
		lines = append(lines, why.Reason)
	}
	return lines
}

// filterError shows where a filter went wrong, with a caret under the place.
func filterError(err error) error {
	var syntax *filter.SyntaxError
	if !errors.As(err, &syntax) {
		return usagef("-q: %w", err)
	}
	usage := usagef("-q: %w", err)
	usage.hint = pointed(syntax.Text, syntax.Offset)
	return usage
}

// pointed is a filter with a caret under a place in it.
func pointed(text string, offset int) []string {
	before, after := render.Safe(text[:offset]), render.Safe(text[offset:])
	return []string{before + after, strings.Repeat(" ", render.Width(before)) + "^"}
}

// hintedUncertain adds a hint to the failure of a call that may nevertheless have had its effect.
func hintedUncertain(err error, hint string) error {
	if uncertain(err) {
		return &callError{err: err, hint: hint}
	}
	return err
}

// uncertain says of a call that failed that it may nevertheless have had its effect.
func uncertain(err error) bool {
	code := status.Code(err)
	return code == codes.DeadlineExceeded || code == codes.Unavailable && taken(err)
}

// taken says of a call that is Unavailable that a server was there for it: what gRPC cannot send
// fails for want of a connection.
func taken(err error) bool {
	return !strings.Contains(status.Convert(err).Message(), "connection error")
}
