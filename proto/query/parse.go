package query

import (
	"cmp"
	"slices"
	"strconv"
	"strings"
	"time"
	"unicode/utf8"

	"github.com/kagzi/kagzi/proto/near"
)

// Parse parses a query. Blank text is nil, which selects everything. Relative times count from now.
// Errors are of type *Error.
func (l *List[M]) Parse(text string, now time.Time) (*Query[M], error) {
	if len(text) > MaxText {
		return nil, &Error{Text: text, Offset: 0, Expected: "at most " + strconv.Itoa(MaxText) + " bytes",
			Found: strconv.Itoa(len(text))}
	}
	for i, r := range text {
		if r == utf8.RuneError && !strings.HasPrefix(text[i:], "\ufffd") {
			return nil, &Error{Text: text, Offset: i, Expected: "UTF-8 text", Found: strconv.Quote(text[i : i+1])}
		}
	}
	tokens, err := lex(text)
	if err != nil {
		return nil, err
	}
	p := &parser[M]{list: l, text: text, tokens: tokens, now: now}
	if p.tokens[0].shape == end {
		return nil, nil
	}
	root, err := p.or(0)
	if err == nil && p.tokens[0].shape != end {
		err = p.fail(p.tokens[0], `"and", "or" or the end`)
	}
	if err != nil {
		return nil, err
	}
	return &Query[M]{text: text, root: root}, nil
}

type parser[M any] struct {
	list   *List[M]
	text   string
	tokens []token
	now    time.Time
	terms  int
	end    int // of the last token that was taken
}

// take consumes a token, except the end.
func (p *parser[M]) take() token {
	t := p.tokens[0]
	if t.shape != end {
		p.tokens, p.end = p.tokens[1:], t.offset+len(t.raw)
	}
	return t
}

// unknown is fail about a word that is none of the names.
func (p *parser[M]) unknown(t token, expected string, names []string) error {
	err := p.fail(t, expected)
	if e, ok := err.(*Error); ok && t.shape != end {
		e.Near = near.Name(t.value, names)
	}
	return err
}

func (p *parser[M]) fail(t token, expected string) error {
	e := &Error{Text: p.text, Offset: t.offset, Expected: expected}
	if t.shape != end {
		e.Found = strconv.Quote(t.raw)
		if t.shape == quoted {
			e.Found = t.raw
		}
	}
	return e
}

func (p *parser[M]) or(depth int) (node[M], error)  { return p.joined("or", depth, p.and) }
func (p *parser[M]) and(depth int) (node[M], error) { return p.joined("and", depth, p.not) }

// joined reads one or more parts with a word between them.
func (p *parser[M]) joined(join string, depth int, part func(int) (node[M], error)) (node[M], error) {
	n := node[M]{join: join, from: p.tokens[0].offset}
	for {
		kid, err := part(depth)
		if err != nil {
			return n, err
		}
		n.kids = append(n.kids, kid)
		if !p.tokens[0].is(join) {
			break
		}
		p.take()
	}
	if len(n.kids) == 1 {
		return n.kids[0], nil
	}
	n.to = p.end
	return n, nil
}

func (p *parser[M]) not(depth int) (node[M], error) {
	t := p.tokens[0]
	if depth > maxDepth {
		return node[M]{}, p.fail(t, "at most "+strconv.Itoa(maxDepth)+" parentheses and nots inside each other")
	}
	switch {
	case t.is("not"):
		p.take()
		kid, err := p.not(depth + 1)
		return node[M]{join: "not", kids: []node[M]{kid}, from: t.offset, to: p.end}, err
	case t.is("("):
		p.take()
		n, err := p.or(depth + 1)
		if err == nil && !p.tokens[0].is(")") {
			err = p.fail(p.tokens[0], `"and", "or" or ")"`)
		}
		p.take()
		n.from, n.to = t.offset, p.end
		return n, err
	}
	n, err := p.comparison()
	n.from, n.to = t.offset, p.end
	return n, err
}

func (p *parser[M]) comparison() (node[M], error) {
	t := p.take()
	if p.terms++; p.terms > maxTerms {
		return node[M]{}, p.fail(t, "at most "+strconv.Itoa(maxTerms)+" comparisons")
	}
	n := node[M]{offset: t.offset}
	if t.shape == word {
		n.field, n.key = p.list.field(t.value)
	}
	if n.field == nil {
		return n, p.unknown(t, "a field of "+p.list.Name+": "+strings.Join(p.list.Names(), ", "), p.list.Names())
	}
	if strings.HasSuffix(n.field.Name, ".") && n.key == "" { // tag."a key"
		k := p.tokens[0]
		if k.shape != quoted {
			return n, p.fail(k, "a key after "+n.field.Name)
		}
		n.key = p.take().value
	}
	at := p.take()
	if n.op = strings.ToLower(at.value); at.is("not") && p.tokens[0].is("in") {
		p.take()
		n.op = "not in"
	}
	if ops := operators[n.field.kind]; at.shape == quoted || !slices.Contains(ops, n.op) {
		return n, p.fail(at, "an operator of "+n.field.Shown()+": "+strings.Join(ops, ", "))
	}
	values, err := p.values(&n)
	if err != nil {
		return n, err
	}
	return n, p.compile(&n, values)
}

// field finds the field that a word names, and the key after it.
func (l *List[M]) field(name string) (*Field[M], string) {
	for i := range l.Fields {
		f := &l.Fields[i]
		if f.Name == name {
			return f, ""
		}
		if key, found := strings.CutPrefix(name, f.Name); found && strings.HasSuffix(f.Name, ".") {
			return f, key
		}
	}
	return nil, ""
}

// values reads one value or, after in, several in parentheses.
func (p *parser[M]) values(n *node[M]) ([]token, error) {
	expected := "a value (" + n.field.Takes() + ")"
	one := func() (token, error) {
		t := p.take()
		if t.shape != word && t.shape != quoted {
			return t, p.fail(t, expected)
		}
		return t, nil
	}
	if n.op != "in" && n.op != "not in" {
		t, err := one()
		return []token{t}, err
	}
	if t := p.take(); !t.is("(") {
		return nil, p.fail(t, `"(" and values`)
	}
	var values []token
	for {
		t, err := one()
		if err != nil {
			return nil, err
		}
		values = append(values, t)
		switch t := p.take(); {
		case t.is(")"):
			return values, nil
		case !t.is(","):
			return nil, p.fail(t, `"," or ")"`)
		}
	}
}

// compile checks the values and sets what the comparison holds for.
func (p *parser[M]) compile(n *node[M], values []token) error {
	f := n.field
	switch f.kind {
	case text:
		return p.compileText(n, values)
	case number:
		return p.compileNumber(n, values)
	case moment:
		return p.compileTime(n, values[0])
	case span:
		return p.compileSpan(n, values[0])
	case flag:
		op := n.op
		want, err := strconv.ParseBool(values[0].value)
		if err != nil {
			return p.fail(values[0], "true or false")
		}
		n.holds = func(m M) bool { return (f.flag(m) == want) == (op == "=") }
	}
	return nil
}

func (p *parser[M]) compileText(n *node[M], values []token) error {
	f := n.field
	for _, t := range values {
		value := t.pattern
		switch {
		case len(f.Words) > 0:
			name := strings.ToUpper(strings.ReplaceAll(t.value, "-", "_"))
			if !slices.Contains(f.Words, name) {
				return p.unknown(t, "one of "+strings.Join(f.Words, ", "), f.Words)
			}
			value = pattern{name}
		case f.none && t.is("none"):
			value = pattern{""}
		case f.full && t.value == "":
			return p.fail(t, "a value that is not empty"+f.orNone())
		}
		if f.fold {
			value = value.lower()
		}
		n.texts = append(n.texts, value)
	}
	return nil
}

// orNone says that a field may be compared with none.
func (f *Field[M]) orNone() string {
	if f.none {
		return ", or none"
	}
	return ""
}

func (p *parser[M]) compileNumber(n *node[M], values []token) error {
	var list []float64
	for _, t := range values {
		v, err := strconv.ParseFloat(t.value, 64)
		if err != nil || v != v {
			return p.fail(t, "a number")
		}
		list = append(list, v)
	}
	f, op := n.field, n.op
	switch op {
	case "in", "not in":
		n.holds = func(m M) bool { return slices.Contains(list, f.number(m)) == (op == "in") }
	default:
		n.holds = func(m M) bool { return compares(op, cmp.Compare(f.number(m), list[0])) }
	}
	return nil
}

func (p *parser[M]) compileTime(n *node[M], t token) error {
	f, op := n.field, n.op
	if op == "=" || op == "!=" {
		if !t.is("none") {
			return p.fail(t, "none, or one of <, <=, >, >= with a time")
		}
		n.none = true
		n.holds = func(m M) bool { return f.time(m).IsZero() == (op == "=") }
		return nil
	}
	at, err := ParseTime(t.value, p.now)
	if err != nil {
		return p.fail(t, "a time such as 2026-11-20T12:00:00Z, 2026-11-20 or -24h")
	}
	n.at, n.past = at, relative(t.value)
	n.holds = func(m M) bool { return !f.time(m).IsZero() && compares(op, f.time(m).Compare(at)) }
	return nil
}

func (p *parser[M]) compileSpan(n *node[M], t token) error {
	f, op, now := n.field, n.op, p.now
	if op == "=" || op == "!=" {
		if !t.is("none") {
			return p.fail(t, "none, or one of <, <=, >, >= with a duration")
		}
		n.none = true
		n.holds = func(m M) bool {
			_, has := f.span(m, now)
			return has != (op == "=")
		}
		return nil
	}
	d, err := ParseDuration(t.value)
	if err != nil || d < 0 {
		return p.fail(t, "a duration such as 90s, 1h30m or 7d")
	}
	n.holds = func(m M) bool {
		got, has := f.span(m, now)
		return has && compares(op, cmp.Compare(got, d))
	}
	return nil
}
