// Package render turns messages into text: columns and cells for lists, documents for programs. The
// screens and the command line share it. Callers pass the time in, and it prints nothing itself.
package render

import (
	"fmt"
	"strings"
	"unicode"
	"unicode/utf8"

	"golang.org/x/text/width"
)

// maxCombining limits combining marks in a row; no script needs more, and piles of them overflow
// their line.
const maxCombining = 4

// Safe makes user text safe for one line of a terminal: the result holds only printable characters.
// Invalid UTF-8 becomes U+FFFD. Control characters (C0 with newline and tab, DEL, C1), line
// separators, bidirectional controls and zero-width characters become visible escapes such as \x1b
// and \u202e. Safe is idempotent.
func Safe(s string) string {
	if plain(s) {
		return s
	}
	var b strings.Builder
	b.Grow(len(s) + 16)
	marks := 0
	for _, r := range s {
		if unicode.In(r, unicode.Mn, unicode.Me) {
			marks++
		} else {
			marks = 0
		}
		if unsafe(r) || marks > maxCombining {
			b.WriteString(escape(r))
		} else {
			b.WriteRune(r) // range turned invalid bytes into U+FFFD
		}
	}
	return b.String()
}

// SafeLines is Safe for text with lines, such as a stack: it splits at newlines, turns tabs into
// four blanks and makes each line safe.
func SafeLines(s string) []string {
	s = strings.ReplaceAll(strings.TrimRight(s, "\r\n"), "\r\n", "\n")
	lines := strings.Split(strings.ReplaceAll(s, "\t", "    "), "\n")
	for i, line := range lines {
		lines[i] = Safe(line)
	}
	return lines
}

func plain(s string) bool {
	for i := range len(s) {
		if s[i] < 0x20 || s[i] > 0x7e {
			return false
		}
	}
	return true
}

// unsafe reports whether a terminal might interpret the character, hide it, or reorder its
// neighbours.
func unsafe(r rune) bool {
	switch {
	case unicode.IsControl(r): // C0, DEL, C1
		return true
	case unicode.In(r, unicode.Cf, unicode.Zl, unicode.Zp, unicode.Cs, unicode.Co):
		// bidi, zero width, tags, separators, private use
		return true
	case unicode.Is(unicode.Variation_Selector, r), unicode.Is(unicode.Other_Default_Ignorable_Code_Point, r):
		return true
	case r == ' ':
		return false
	}
	return !unicode.IsPrint(r) && !unicode.Is(unicode.Zs, r) // unassigned code points
}

func escape(r rune) string {
	switch {
	case r == '\n':
		return `\n`
	case r == '\r':
		return `\r`
	case r == '\t':
		return `\t`
	case r <= 0xff:
		return fmt.Sprintf(`\x%02x`, r)
	case r <= 0xffff:
		return fmt.Sprintf(`\u%04x`, r)
	}
	return fmt.Sprintf(`\U%08x`, r)
}

// Width returns the number of terminal cells of a safe text: two for wide East Asian characters and
// emoji, none for combining marks.
func Width(s string) int {
	if plain(s) {
		return len(s)
	}
	n := 0
	for _, r := range s {
		n += runeWidth(r)
	}
	return n
}

func runeWidth(r rune) int {
	if unicode.In(r, unicode.Mn, unicode.Me) {
		return 0
	}
	switch width.LookupRune(r).Kind() {
	case width.EastAsianWide, width.EastAsianFullwidth:
		return 2
	}
	return 1
}

// Truncate cuts safe text to at most cells terminal cells, with "…" if it is longer.
func Truncate(s string, cells int) string {
	if Width(s) <= cells {
		return s
	}
	if cells <= 0 {
		return ""
	}
	n := 0
	for i, r := range s {
		w := runeWidth(r)
		if n+w > cells-1 {
			return s[:i] + "…"
		}
		n += w
	}
	return s
}

// cut shortens raw text to at most limit bytes at a character boundary, so that a huge value is not
// scanned for one line.
func cut(s string, limit int) (string, bool) {
	if len(s) <= limit {
		return s, false
	}
	for limit > 0 && !utf8.RuneStart(s[limit]) {
		limit--
	}
	return s[:limit], true
}
