package widget

import (
	"bytes"
	"regexp"
	"strings"
	"unicode"
	"unicode/utf8"
)

// finder searches for a text. Case matters only if the text has upper case.
type finder struct {
	plain []byte // for a bytewise search, if that is enough
	fold  bool   // search in lower-cased data
	other *regexp.Regexp
}

// newFinder returns a finder; nil for an empty text.
func newFinder(text string) *finder {
	text = strings.ToValidUTF8(text, "\uFFFD")
	if text == "" {
		return nil
	}
	f := &finder{plain: []byte(text), fold: !strings.ContainsFunc(text, unicode.IsUpper)}
	if f.fold && !isASCII(text) {
		f.other = regexp.MustCompile("(?i)" + regexp.QuoteMeta(text))
	}
	return f
}

func isASCII(s string) bool {
	for i := range len(s) {
		if s[i] >= utf8.RuneSelf {
			return false
		}
	}
	return true
}

// prepare returns what index searches in: data, or a lower-case copy with the same offsets.
func (f *finder) prepare(data []byte) []byte {
	if !f.fold || f.other != nil {
		return data
	}
	small := make([]byte, len(data))
	for i, b := range data {
		if b >= 'A' && b <= 'Z' {
			b += 'a' - 'A'
		}
		small[i] = b
	}
	return small
}

// index returns the first hit from begin on; from is negative if there is none.
func (f *finder) index(prepared []byte, begin int) (from, to int) {
	if f.other != nil {
		at := f.other.FindIndex(prepared[begin:])
		if at == nil {
			return -1, -1
		}
		return begin + at[0], begin + at[1]
	}
	at := bytes.Index(prepared[begin:], f.plain)
	if at < 0 {
		return -1, -1
	}
	return begin + at, begin + at + len(f.plain)
}

// all returns all hits in a text.
func (f *finder) all(text string) []hit {
	var hits []hit
	prepared := f.prepare([]byte(text))
	for begin := 0; ; {
		from, to := f.index(prepared, begin)
		if from < 0 {
			return hits
		}
		hits = append(hits, hit{from: from, to: to})
		begin = to
	}
}

// around returns the index step positions from current in a list of n, with wrap-around.
func around(current, step, n int) int {
	if n == 0 {
		return 0
	}
	return ((current+step)%n + n) % n
}
