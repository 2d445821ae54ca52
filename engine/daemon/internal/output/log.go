// Package output writes log lines and text without control characters.
package output

import (
	"bytes"
	"fmt"
	"io"
	"log/slog"
	"strconv"
	"strings"
	"unicode"
	"unicode/utf16"
	"unicode/utf8"
)

// NewLog returns a logger that escapes control characters in names and errors set by users.
func NewLog(w io.Writer, level slog.Leveler, format string) *slog.Logger {
	options := &slog.HandlerOptions{Level: level}
	if format == "json" {
		return slog.New(slog.NewJSONHandler(escaper{w}, options))
	}
	return slog.New(slog.NewTextHandler(escaper{w}, options))
}

// escaper escapes non-printable characters in log lines with JSON escapes, which are valid in Go's
// quoted strings too. The text handler lets DEL through; the JSON handler also C1 and bidirectional
// controls.
type escaper struct{ w io.Writer }

// Write takes one complete line.
func (e escaper) Write(line []byte) (int, error) {
	out := line
	if bytes.ContainsFunc(line, unprintable) {
		out = make([]byte, 0, len(line)+64)
		for rest := line; len(rest) > 0; {
			r, size := utf8.DecodeRune(rest)
			out = appendEscaped(out, r, rest[:size])
			rest = rest[size:]
		}
	}
	if _, err := e.w.Write(out); err != nil {
		return 0, err
	}
	return len(line), nil
}

func appendEscaped(out []byte, r rune, encoded []byte) []byte {
	switch {
	case !unprintable(r):
		return append(out, encoded...)
	case r > 0xffff:
		high, low := utf16.EncodeRune(r)
		return fmt.Appendf(out, `\u%04x\u%04x`, high, low)
	}
	return fmt.Appendf(out, `\u%04x`, r)
}

func unprintable(r rune) bool { return r != '\n' && !unicode.IsPrint(r) }

// Plain returns text that is safe for one line of a terminal.
func Plain(text string) string {
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
