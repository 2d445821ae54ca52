package cli

import (
	"context"
	"errors"
	"fmt"
	"strings"

	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	kagziv1 "github.com/kagzi/kagzi/proto/kagzi/v1"
	"github.com/kagzi/kagzi/proto/query"
	"github.com/kagzi/kagzi/tui"
	"github.com/kagzi/kagzi/tui/cli/internal/spelling"
	"github.com/kagzi/kagzi/tui/render"
)

// usageError is a mistake on the command line, with hints what to type instead.
type usageError struct {
	err  error
	hint []string
}

func (e *usageError) Error() string { return e.err.Error() }
func (e *usageError) Unwrap() error { return e.err }

func usagef(format string, args ...any) *usageError {
	return &usageError{err: fmt.Errorf(format, args...)}
}

// codeError ends the process with a code after everything has been printed.
type codeError int

func (e codeError) Error() string { return fmt.Sprintf("exit code %d", int(e)) }

// timeoutError reports that --timeout expired.
type timeoutError struct {
	limit string // as given
	err   error  // what was interrupted
	hint  []string
}

func (e *timeoutError) Error() string {
	return fmt.Sprintf("gave up after %s (--timeout)", e.limit)
}
func (e *timeoutError) Unwrap() error { return e.err }

// callError is an error of a server, with the address that was called.
type callError struct {
	address   string
	namespace string
	query     string // the filter of -q; empty if there is none
	err       error
	hint      string              // from the calling command
	typed     func(string) string // what was typed for a field of the request; nil if unknown
}

func (e *callError) Error() string { return e.err.Error() }
func (e *callError) Unwrap() error { return e.err }

// explain turns an error into lines for the user and an exit code. It is the only place that does.
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
				"use --address instead of --db to ask that server, or stop it first"},
			own.ExitCode()
	case errors.As(err, &own) && own.ExitCode() > 0:
		return []string{err.Error()}, own.ExitCode()
	case errors.Is(err, context.Canceled):
		return []string{"interrupted"}, ExitInterrupted
	}
	return []string{err.Error()}, ExitError
}

// callExit maps gRPC codes to exit codes.
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
		s = own.GRPCStatus() // for a wrapped error, Convert would return gRPC's raw text
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
			lines = append(lines, "this is temporary; try again in a moment")
		}
	case codes.NotFound:
		if list := listsOf[detail.GetSubject()]; list != "" && e.namespace != "" {
			lines = append(lines, fmt.Sprintf("looked in namespace %s; see: %s --namespace %s", e.namespace, list,
				e.namespace))
		}
		switch detail.GetSubject() {
		case "step":
			lines = append(lines, "list the steps of a run: kagzi workflow show ID")
		case "worker":
			lines = append(lines, "list workers: kagzi worker list")
		case "namespace":
			lines = append(lines, "list namespaces: kagzi namespace list")
		}
	case codes.DeadlineExceeded:
		lines = []string{fmt.Sprintf("no answer from %s in time; wait longer with --timeout 1m", e.address)}
	case codes.Unauthenticated:
		lines = append(lines,
			"give a key with --api-key-file FILE, KAGZI_API_KEY or a profile; see which one is used: kagzi profile show",
			"an admin creates keys: kagzi key create NAME --role client --namespace NAMESPACE",
			"no admin left? on the database's host: kagzi key create NAME --role admin --db default")
	case codes.PermissionDenied:
		lines = append(lines,
			"kagzi doctor shows your role; an admin can create a key with more rights: kagzi key create --help")
	case codes.Unimplemented:
		lines = []string{
			fmt.Sprintf(
				"the server at %s does not support this; it may be older than this command: kagzi version --server",
				e.address)}
	}
	if e.hint != "" {
		lines = append(lines, e.hint)
	}
	return lines, code
}

// listsOf names the command that lists a kind of thing.
var listsOf = map[string]string{"run": "kagzi workflow list", "schedule": "kagzi schedule list"}

// lines returns the server's message and, for an error in a filter, a pointer to the place.
func (e *callError) lines(s *status.Status, detail *kagziv1.ErrorDetail) []string {
	name, place := spelling.InFilter(e.query, detail.GetMetadata()["field"])
	if place < 0 {
		return []string{e.line(s, detail)}
	}
	asked := *e
	asked.typed = func(string) string { return "-q: " + name }
	return append([]string{asked.line(s, detail)}, pointed(e.query, place)...)
}

// line returns the server's message, with its subject unless the message names it.
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

// unreached explains why a server was not reached and what to do.
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

// filterError shows where a filter is wrong, with a caret under the place.
func filterError(err error) error {
	var syntax *query.Error
	if !errors.As(err, &syntax) {
		return usagef("-q: %w", err)
	}
	usage := usagef("-q: %w", err)
	usage.hint = pointed(syntax.Text, syntax.Offset)
	return usage
}

// pointed returns a filter with a caret under a place in it.
func pointed(text string, offset int) []string {
	before, after := render.Safe(text[:offset]), render.Safe(text[offset:])
	return []string{before + after, strings.Repeat(" ", render.Width(before)) + "^"}
}

// hintedUncertain adds a hint to the error of a call that may have taken effect.
func hintedUncertain(err error, hint string) error {
	if uncertain(err) {
		return &callError{err: err, hint: hint}
	}
	return err
}

// uncertain reports whether a failed call may have taken effect.
func uncertain(err error) bool {
	code := status.Code(err)
	return code == codes.DeadlineExceeded || code == codes.Unavailable && taken(err)
}

// taken reports whether a call that failed as Unavailable reached a server. Calls that gRPC could
// not send fail with a connection error.
func taken(err error) bool {
	return !strings.Contains(status.Convert(err).Message(), "connection error")
}
