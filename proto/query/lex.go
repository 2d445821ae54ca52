package query

import (
	"fmt"
	"strconv"
	"strings"
	"unicode/utf8"
)

// Error says where a query is wrong, and what was expected there.
type Error struct {
	Text     string // the whole query
	Offset   int    // in bytes
	Expected string
	Found    string // empty at the end of the text
	Near     string // the name that was probably meant; empty if none is close
}

// Position returns the offset in characters, from 1.
func (e *Error) Position() int { return utf8.RuneCountInString(e.Text[:e.Offset]) + 1 }

func (e *Error) Error() string {
	found := e.Found
	if found == "" {
		found = "the end"
	}
	if e.Near != "" { // first: the expected part is long, and narrow places cut it off
		return fmt.Sprintf("position %d: did you mean %s? expected %s, found %s", e.Position(), e.Near,
			e.Expected, found)
	}
	return fmt.Sprintf("position %d: expected %s, found %s", e.Position(), e.Expected, found)
}

type shape uint8

const (
	end shape = iota
	word
	quoted
	symbol
)

// token is a piece of the text. value is a word, a symbol, or the content of quotes.
type token struct {
	shape   shape
	value   string
	pattern pattern // of a word or quotes
	raw     string
	offset  int
}

// is says whether the token is this word, in any case, or this symbol.
func (t token) is(value string) bool {
	return t.shape != quoted && t.shape != end && strings.EqualFold(t.value, value)
}

// lex cuts a text into tokens; the last one is always end.
func lex(text string) ([]token, error) {
	var tokens []token
	for at := 0; at < len(text); {
		if strings.IndexByte(" \t\r\n", text[at]) >= 0 {
			at++
			continue
		}
		t, err := next(text, at)
		if err != nil {
			return nil, err
		}
		t.offset = at
		tokens = append(tokens, t)
		at += len(t.raw)
	}
	return append(tokens, token{offset: len(text)}), nil
}

func next(text string, at int) (token, error) {
	rest := text[at:]
	switch c := rest[0]; {
	case c == '"' || c == '\'':
		return quotation(text, at)
	case len(rest) > 1 && rest[1] == '=' && strings.IndexByte("<>!", c) >= 0:
		return token{shape: symbol, value: rest[:2], raw: rest[:2]}, nil
	case strings.IndexByte("=<>(),", c) >= 0:
		return token{shape: symbol, value: rest[:1], raw: rest[:1]}, nil
	case inWord(c):
		n := 1
		for n < len(rest) && inWord(rest[n]) {
			n++
		}
		return token{shape: word, value: rest[:n], raw: rest[:n], pattern: strings.Split(rest[:n], "*")}, nil
	}
	r, _ := utf8.DecodeRuneInString(rest)
	return token{}, &Error{Text: text, Offset: at, Expected: "a field, an operator or a value",
		Found: strconv.QuoteRune(r)}
}

// quotation reads a value in quotes, in which a backslash escapes as in Go, and a star.
func quotation(text string, at int) (token, error) {
	quote, rest := text[at], text[at+1:]
	var all, part strings.Builder
	var p pattern
	add := func(s string) {
		all.WriteString(s)
		part.WriteString(s)
	}
	for rest != "" && rest[0] != quote {
		if strings.HasPrefix(rest, `\*`) {
			add("*")
			rest = rest[2:]
			continue
		}
		if rest[0] == '*' {
			all.WriteByte('*')
			p = append(p, part.String())
			part.Reset()
			rest = rest[1:]
			continue
		}
		r, multibyte, tail, err := strconv.UnquoteChar(rest, quote)
		if err != nil {
			return token{}, &Error{Text: text, Offset: len(text) - len(rest),
				Expected: `a valid escape, such as \" or \\`, Found: strconv.QuoteRune(rune(rest[0]))}
		}
		if r < utf8.RuneSelf || !multibyte {
			add(string([]byte{byte(r)}))
		} else {
			add(string(r))
		}
		rest = tail
	}
	if rest == "" {
		return token{}, &Error{Text: text, Offset: len(text), Expected: "the closing " + string(quote)}
	}
	return token{shape: quoted, value: all.String(), pattern: append(p, part.String()),
		raw: text[at : len(text)-len(rest)+1]}, nil
}

// inWord says whether a value may contain c without quotes: names, ids, times, prefixes.
func inWord(c byte) bool {
	return c >= 'a' && c <= 'z' || c >= 'A' && c <= 'Z' || c >= '0' && c <= '9' ||
		strings.IndexByte("._:/-+*", c) >= 0
}
