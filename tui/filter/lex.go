package filter

import (
	"fmt"
	"strconv"
	"strings"
	"unicode/utf8"

	"github.com/kagzi/kagzi/tui/render"
)

// SyntaxError says where a filter is wrong and what was expected there.
type SyntaxError struct {
	Text     string // the whole filter
	Offset   int    // in bytes, of the error
	Expected string
	Found    string // empty at the end of the text
	Near     string // the most likely intended name; empty if none is close
}

func (e *SyntaxError) Error() string {
	found := "the end"
	if e.Found != "" {
		found = e.Found
	}
	if e.Near != "" { // first: the expected part is long, and narrow places cut it off
		return fmt.Sprintf("position %d: did you mean %s? expected %s, found %s", e.Position(), e.Near,
			e.Expected, found)
	}
	return fmt.Sprintf("position %d: expected %s, found %s", e.Position(), e.Expected, found)
}

// near returns the name closest to a mistyped word; empty if none is close. A short word is close
// to almost any name, so it has to match better.
func near(word string, names []string) string {
	found, best := "", min(3, (len(word)+1)/2)
	for _, name := range names {
		if d := render.Distance(strings.ToLower(word), strings.ToLower(name)); d < best {
			found, best = name, d
		}
	}
	return found
}

// Position returns the offset in characters, from 1.
func (e *SyntaxError) Position() int { return utf8.RuneCountInString(e.Text[:e.Offset]) + 1 }

type kind uint8

const (
	end kind = iota
	word
	quoted
	symbol
)

// token is a piece of the text. value is the text of a word or symbol, or the content of quotes.
type token struct {
	kind   kind
	value  string
	raw    string
	offset int
}

// lex cuts the text into tokens; the last one is always end.
func lex(text string) ([]token, error) {
	var tokens []token
	for at := 0; at < len(text); {
		c := text[at]
		if c == ' ' || c == '\t' || c == '\n' || c == '\r' {
			at++
			continue
		}
		t, err := next(text, at)
		if err != nil {
			return nil, err
		}
		t.offset, t.raw = at, text[at:at+len(t.raw)]
		tokens = append(tokens, t)
		at += len(t.raw)
	}
	return append(tokens, token{kind: end, offset: len(text)}), nil
}

func next(text string, at int) (token, error) {
	rest := text[at:]
	switch c := rest[0]; {
	case c == '"' || c == '\'':
		return quotedToken(text, at)
	case strings.HasPrefix(rest, ">=") || strings.HasPrefix(rest, "<="):
		return token{kind: symbol, value: rest[:2], raw: rest[:2]}, nil
	case strings.IndexByte("=<>(),", c) >= 0:
		return token{kind: symbol, value: rest[:1], raw: rest[:1]}, nil
	case wordByte(c):
		n := 1
		for n < len(rest) && wordByte(rest[n]) {
			n++
		}
		return token{kind: word, value: rest[:n], raw: rest[:n]}, nil
	}
	r, _ := utf8.DecodeRuneInString(rest)
	return token{}, &SyntaxError{Text: text, Offset: at, Expected: "a field, an operator or a value",
		Found: strconv.QuoteRune(r)}
}

func quotedToken(text string, at int) (token, error) {
	quote, rest := text[at], text[at+1:]
	var b strings.Builder
	for rest != "" && rest[0] != quote {
		r, multibyte, tail, err := strconv.UnquoteChar(rest, quote)
		if err != nil {
			return token{}, &SyntaxError{Text: text, Offset: len(text) - len(rest),
				Expected: `a valid escape, such as \" or \\`, Found: strconv.QuoteRune(rune(rest[0]))}
		}
		if r < utf8.RuneSelf || !multibyte {
			b.WriteByte(byte(r))
		} else {
			b.WriteString(string(r))
		}
		rest = tail
	}
	if rest == "" {
		return token{}, &SyntaxError{Text: text, Offset: len(text), Expected: "the closing " + string(quote)}
	}
	return token{kind: quoted, value: b.String(), raw: text[at : len(text)-len(rest)+1]}, nil
}

// wordByte reports whether a value may contain c without quotes: names, ids, times.
func wordByte(c byte) bool {
	return c >= 'a' && c <= 'z' || c >= 'A' && c <= 'Z' || c >= '0' && c <= '9' || strings.IndexByte("._:/-+", c) >= 0
}
