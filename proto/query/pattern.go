package query

import (
	"slices"
	"strings"
)

// pattern is a value of text: what stands between its stars, each of which stands for any text.
type pattern []string

// literal returns the text of a pattern without stars.
func (p pattern) literal() (text string, ok bool) {
	if len(p) != 1 {
		return "", false
	}
	return p[0], true
}

// beginning returns the pattern of everything that begins with p.
func (p pattern) beginning() pattern { return append(slices.Clone(p), "") }

// within returns the pattern of everything that contains p.
func (p pattern) within() pattern { return append(pattern{""}, p.beginning()...) }

func (p pattern) lower() pattern {
	low := slices.Clone(p)
	for i := range low {
		low[i] = strings.ToLower(low[i])
	}
	return low
}

// matches says whether the whole of s is as the pattern says.
func (p pattern) matches(s string) bool {
	last := len(p) - 1
	if last == 0 {
		return s == p[0]
	}
	s, ok := strings.CutPrefix(s, p[0])
	if !ok {
		return false
	}
	for _, part := range p[1:last] { // the leftmost place leaves the most for the rest
		i := strings.Index(s, part)
		if i < 0 {
			return false
		}
		s = s[i+len(part):]
	}
	return strings.HasSuffix(s, p[last])
}

// Quote returns text as a value in quotes, which means exactly this text.
func Quote(text string) string { return quote(text, `\*`) }

// QuotePattern returns text as a value in quotes, in which each star stands for any text.
func QuotePattern(text string) string { return quote(text, "*") }

func quote(text, star string) string {
	var b strings.Builder
	b.WriteByte('"')
	for _, r := range text {
		switch {
		case r == '*':
			b.WriteString(star)
		case r == '"' || r == '\\':
			b.WriteByte('\\')
			b.WriteRune(r)
		default:
			b.WriteRune(r)
		}
	}
	b.WriteByte('"')
	return b.String()
}
