package filter

import (
	"slices"
	"strconv"
	"strings"
	"unicode/utf8"
)

// Parse parses a filter. Blank text is the empty filter. Errors are of type *SyntaxError.
func Parse(text string) (Filter, error) {
	for i, r := range text {
		if r == utf8.RuneError && !strings.HasPrefix(text[i:], "\ufffd") {
			return nil, &SyntaxError{Text: text, Offset: i, Expected: "UTF-8 text", Found: strconv.Quote(text[i : i+1])}
		}
	}
	tokens, err := lex(text)
	if err != nil {
		return nil, err
	}
	p := &parser{text: text, tokens: tokens}
	if p.peek().kind == end {
		return nil, nil
	}
	var f Filter
	for {
		at := p.peek().offset
		c, err := p.condition()
		if err != nil {
			return nil, err
		}
		if clash := f.clash(c); clash != "" {
			return nil, &SyntaxError{Text: text, Offset: at, Expected: "each condition once", Found: clash}
		}
		f = append(f, c)
		t := p.take()
		switch {
		case t.kind == end:
			return f, nil
		case t.kind != word || !strings.EqualFold(t.value, "and"):
			return nil, p.unexpected(t, `"and" or the end`)
		}
	}
}

// Place returns the byte offset of a field's condition; negative if there is none or the text
// cannot be parsed.
func Place(text string, field Field) int {
	tokens, err := lex(text)
	if err != nil {
		return -1
	}
	p := &parser{text: text, tokens: tokens}
	for p.peek().kind != end {
		at := p.peek().offset
		c, err := p.condition()
		if err != nil {
			return -1
		}
		if c.Field == field {
			return at
		}
		p.take()
	}
	return -1
}

type parser struct {
	text   string
	tokens []token
}

func (p *parser) peek() token { return p.tokens[0] }

// take consumes a token, except the end.
func (p *parser) take() token {
	t := p.tokens[0]
	if t.kind != end {
		p.tokens = p.tokens[1:]
	}
	return t
}

func (p *parser) unexpected(t token, expected string) error { return p.unknown(t, expected, nil) }

// unknown returns the error about a word that is not one of the names.
func (p *parser) unknown(t token, expected string, names []string) error {
	found := ""
	if t.kind != end {
		found = strconv.Quote(t.raw)
	}
	return &SyntaxError{Text: p.text, Offset: t.offset, Expected: expected, Found: found, Near: near(t.value, names)}
}

func (p *parser) condition() (Condition, error) {
	field, key, err := p.field()
	if err != nil {
		return Condition{}, err
	}
	c := Condition{Field: field, Key: key}
	t := p.take()
	c.Op = Op(strings.ToLower(t.value))
	if ops := opsOf(field); t.kind == quoted || !slices.Contains(ops, c.Op) {
		return Condition{}, p.unexpected(t, oneOf(ops)+" after "+string(field))
	}
	if c.Op == In {
		c.Values, err = p.list(field)
	} else {
		c.Values = make([]string, 1)
		c.Values[0], err = p.value(field)
	}
	return c, err
}

func (p *parser) field() (Field, string, error) {
	t := p.take()
	if t.kind != word {
		return "", "", p.unexpected(t, "a field ("+fieldNames()+")")
	}
	if key, ok := strings.CutPrefix(t.value, string(Tag)+"."); ok {
		next := p.peek()
		if key == "" && next.kind == quoted && next.offset == t.offset+len(t.raw) {
			key = p.take().value
		}
		if key == "" {
			return "", "", p.unexpected(next, "a tag's key, as in tag.customer")
		}
		return Tag, key, nil
	}
	field := Field(t.value)
	if field == Tag || opsOf(field) == nil {
		return "", "", p.unknown(t, "a field ("+fieldNames()+")", strings.Split(fieldNames(), ", "))
	}
	return field, "", nil
}

func (p *parser) list(field Field) ([]string, error) {
	if t := p.take(); t.value != "(" || t.kind != symbol {
		return nil, p.unexpected(t, `"(" after in`)
	}
	var values []string
	for {
		v, err := p.value(field)
		if err != nil {
			return nil, err
		}
		values = append(values, v)
		switch t := p.take(); {
		case t.kind == symbol && t.value == ")":
			return values, nil
		case t.kind != symbol || t.value != ",":
			return nil, p.unexpected(t, `"," or ")"`)
		}
	}
}

func (p *parser) value(field Field) (string, error) {
	t := p.take()
	if t.kind != word && t.kind != quoted {
		return "", p.unexpected(t, expectedValue(field))
	}
	switch field {
	case Status:
		name := strings.ToUpper(t.value)
		if _, ok := statusOf(name); !ok {
			return "", p.unknown(t, expectedValue(field), statusNames())
		}
		return name, nil
	case Created:
		if _, err := parseMoment(t.value); err != nil {
			return "", p.unexpected(t, expectedValue(field))
		}
	}
	return t.value, nil
}

func expectedValue(field Field) string {
	switch field {
	case Status:
		return "a status (" + strings.Join(statusNames(), ", ") + ")"
	case Created:
		return "a time (2026-11-20T12:00:00Z, 2026-11-20 or -24h)"
	}
	return "a value in quotes"
}

// clash returns the text of a conflict with an earlier condition on the same field, or an empty
// string. Tags with different keys do not conflict, nor do two sides of created.
func (f Filter) clash(c Condition) string {
	for _, old := range f {
		switch {
		case old.Field != c.Field || old.Key != c.Key:
		case c.Field == Created && old.Op[0] != c.Op[0]:
		default:
			return "a second condition on " + strings.TrimSuffix(string(c.Field)+"."+c.Key, ".")
		}
	}
	return ""
}

func oneOf(ops []Op) string {
	names := make([]string, len(ops))
	for i, op := range ops {
		names[i] = strconv.Quote(string(op))
	}
	if len(names) == 1 {
		return names[0]
	}
	return strings.Join(names[:len(names)-1], ", ") + " or " + names[len(names)-1]
}

func fieldNames() string {
	names := make([]string, len(fields))
	for i, f := range fields {
		names[i] = string(f.name)
		if f.name == Tag {
			names[i] += ".KEY"
		}
	}
	return strings.Join(names, ", ")
}
