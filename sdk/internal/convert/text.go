package convert

import (
	"strconv"
	"strings"
	"unicode"
	"unicode/utf8"
)

// Limits, in bytes, of what is recorded of an error; CutMark ends a text that was cut.
const (
	MaxErrorText = 16 << 10
	MaxErrorType = 255
	CutMark      = " … [cut]"
)

// CleanText makes text storable everywhere: valid UTF-8 without NUL, at most limit bytes with a mark where it was cut.
func CleanText(text string, limit int) string {
	text = strings.ToValidUTF8(text, "\uFFFD")
	text = strings.ReplaceAll(text, "\x00", "\uFFFD")
	if len(text) <= limit {
		return text
	}
	end := limit - len(CutMark)
	for end > 0 && !utf8.RuneStart(text[end]) {
		end--
	}
	return text[:end] + CutMark
}

// Printable escapes text so that a terminal prints it as is, on one line.
func Printable(text string) string {
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
