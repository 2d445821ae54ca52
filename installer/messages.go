package installer

import (
	"errors"
	"fmt"
	"strconv"
	"strings"
	"unicode"
)

// Exit codes of `kagzi service`, in addition to 0 and 1. Those of status match the service
// managers' own commands.
const (
	exitStopped      = 3 // status: installed and not running
	exitNotInstalled = 4 // status
	exitNotFound     = 5 // other commands, when the service is not installed
	exitConflict     = 6 // installed, with other settings
	exitUnavailable  = 7 // no usable service manager
	exitPermission   = 8
	exitUsage        = 64
)

// exitError is an error with an exit code.
type exitError struct {
	code int
	err  error
}

func (e *exitError) Error() string { return e.err.Error() }
func (e *exitError) Unwrap() error { return e.err }

// ExitCode returns the exit code of the process.
func (e *exitError) ExitCode() int { return e.code }

func refuse(code int, format string, args ...any) error {
	return &exitError{code: code, err: fmt.Errorf(format, args...)}
}

// codeOf returns an error's exit code, or 1.
func codeOf(err error) int {
	if coded, ok := errors.AsType[interface {
		error
		ExitCode() int
	}](err); ok {
		return coded.ExitCode()
	}
	return 1
}

// plain escapes non-printable characters, so that text fits on one line of a terminal.
func plain(text string) string {
	var b strings.Builder
	for _, r := range text {
		if unicode.IsPrint(r) {
			b.WriteRune(r)
		} else {
			b.WriteString(strings.Trim(strconv.QuoteRune(r), "'"))
		}
	}
	return b.String()
}

// plainLines applies plain to each line of text and keeps tabs.
func plainLines(text string) string {
	lines := strings.Split(text, "\n")
	for i, line := range lines {
		cells := strings.Split(line, "\t")
		for j := range cells {
			cells[j] = plain(cells[j])
		}
		lines[i] = strings.Join(cells, "\t")
	}
	return strings.Join(lines, "\n")
}
