package filter

import (
	"slices"
	"strings"
	"time"
	"unicode"
	"unicode/utf8"

	"github.com/kagzi/kagzi/proto/near"
	"github.com/kagzi/kagzi/proto/query"
)

// Short is a filter in the form that people type at a prompt:
//
//	status:failed,running type:order* queue:emails id:018f ext:order-17 worker:w1 parent:…
//	schedule:… since:24h until:2026-11-20T10:00 tag.team=pay !type:noise free text
//
// id: matches a prefix of a run id or external id, ext: a whole external id. Values joined by
// commas are alternatives, "*" matches anything, "!" negates a term, and values with blanks or a
// colon need quotes. A text without a key is searched in types, ids, notes and errors, ignoring
// case. The language of package query is accepted too, and kept as it is.
type Short struct {
	Long  string // a filter in the language; Terms is empty then
	Terms []Term
}

// Term is one part of a Short; a run must match all of them.
type Term struct {
	Not    bool
	Key    string   // one of shortKeys; empty: free text
	Tag    string   // the tag's key, if Key is "tag"
	Values []string // alternatives; free text has one
}

// shortKeys lists the keys in the order of completion.
var shortKeys = []string{"status", "type", "queue", "id", "ext", "worker", "parent", "schedule", "since",
	"until", "tag"}

// Words for groups of statuses, in addition to the statuses themselves.
var statusWords = map[string][]string{
	"open":  {"PENDING", "RUNNING", "SLEEPING"},
	"ended": {"COMPLETED", "FAILED", "CANCELLED", "TIMED_OUT", "TERMINATED"},
}

// ParseShort parses either form; blank text is the empty filter. Errors are of type *query.Error.
func ParseShort(text string) (Short, error) {
	_, err := query.Runs.Parse(text, time.Time{})
	switch {
	case err == nil:
		return shortOf(strings.TrimSpace(text)), nil
	case looksLong(text) || !utf8.ValidString(text) || len(text) > query.MaxText:
		return Short{}, err
	}
	r := &shortReader{text: text}
	var s Short
	for {
		r.blanks()
		if r.at == len(text) {
			return s, nil
		}
		term, err := r.term()
		if err != nil {
			return Short{}, err
		}
		s.Terms = append(s.Terms, term)
	}
}

// shortOf keeps a long form, except for a single tag, which both forms write alike.
func shortOf(text string) Short {
	r := &shortReader{text: text}
	if strings.HasPrefix(text, "tag.") && !strings.Contains(text, `\`) {
		if term, err := r.term(); err == nil && r.at == len(text) {
			return Short{Terms: []Term{term}}
		}
	}
	return Short{Long: text}
}

// looksLong reports whether a text begins like the language: a field and an operator, perhaps
// after parentheses and nots.
func looksLong(text string) bool {
	for {
		text = strings.TrimLeft(text, " \t\r\n(")
		word, rest, _ := strings.Cut(text, " ")
		if !strings.EqualFold(word, "not") || rest == "" {
			break
		}
		text = rest
	}
	n := strings.IndexFunc(text, func(r rune) bool {
		return r != '.' && r != '_' && (r < 'a' || r > 'z') && (r < 'A' || r > 'Z') && (r < '0' || r > '9')
	})
	if n <= 0 {
		return false
	}
	field, rest := text[:n], text[n:]
	if strings.HasPrefix(field, "tag.") {
		field = "tag.KEY"
	}
	trimmed := strings.TrimLeft(rest, " \t\r\n")
	if !slices.Contains(query.Runs.Names(), field) || trimmed == "" {
		return false
	}
	if field == "tag.KEY" { // tag.a=b without blanks is the short form
		return trimmed != rest && trimmed[0] == '='
	}
	word, _, _ := strings.Cut(trimmed, " ")
	return strings.IndexByte("=<>!", trimmed[0]) >= 0 || trimmed != rest &&
		(strings.EqualFold(strings.TrimRight(word, "("), "in") || strings.EqualFold(word, "not"))
}

// Empty reports whether the filter matches every run.
func (s Short) Empty() bool { return s.Long == "" && len(s.Terms) == 0 }

// String writes the filter so that ParseShort reads the same one again.
func (s Short) String() string {
	if s.Long != "" {
		return s.Long
	}
	return printTerms(s.Terms)
}

func printTerms(terms []Term) string {
	parts := make([]string, len(terms))
	for i, t := range terms {
		parts[i] = t.String()
	}
	return strings.Join(parts, " ")
}

// String writes one term.
func (t Term) String() string {
	not := ""
	if t.Not {
		not = "!"
	}
	values := make([]string, len(t.Values))
	for i, v := range t.Values {
		values[i] = quoteShort(v, ",")
	}
	switch t.Key {
	case "":
		special := "!:=<>()"
		if text := strings.ToLower(t.Values[0]); slices.Contains([]string{"in", "and", "or", "not"}, text) ||
			strings.HasPrefix(text, "tag.") || strings.HasPrefix(text, "label.") {
			special = t.Values[0] // without quotes it would be a key
		}
		return not + quoteShort(t.Values[0], special)
	case "tag":
		return not + "tag." + quoteShort(t.Tag, "=:") + "=" + strings.Join(values, ",")
	}
	return not + t.Key + ":" + strings.Join(values, ",")
}

// quoteShort quotes a value if it is empty or contains a blank, a quote, or one of the special
// characters.
func quoteShort(s, special string) string {
	if s != "" && !strings.ContainsAny(s, special+`"'\`) && strings.IndexFunc(s, unicode.IsSpace) < 0 {
		return s
	}
	return `"` + strings.NewReplacer(`\`, `\\`, `"`, `\"`).Replace(s) + `"`
}

// shortReader reads terms from left to right.
type shortReader struct {
	text string
	at   int
}

func (r *shortReader) blanks() {
	for r.at < len(r.text) {
		c, size := utf8.DecodeRuneInString(r.text[r.at:])
		if !unicode.IsSpace(c) {
			return
		}
		r.at += size
	}
}

func (r *shortReader) fail(at int, expected string) *query.Error {
	e := &query.Error{Text: r.text, Offset: at, Expected: expected}
	if at < len(r.text) {
		word, _, _ := strings.Cut(r.text[at:], " ")
		e.Found = `"` + word + `"`
	}
	return e
}

func (r *shortReader) term() (Term, error) {
	var t Term
	if r.text[r.at] == '!' {
		t.Not = true
		r.at++
	}
	begin := r.at
	key := r.key()
	if key == "" {
		r.at = begin
		value, err := r.value("")
		if err == nil && value == "" && (r.at == begin) {
			err = r.fail(begin, "a term after !")
		}
		t.Values = []string{value}
		return t, err
	}
	if key == "tag" {
		return r.tag(t, begin)
	}
	if !slices.Contains(shortKeys, key) {
		e := r.fail(begin, "one of "+strings.Join(shortKeys[:len(shortKeys)-1], ":, ")+
			": or tag.KEY=; quote it to search for the text")
		if e.Near = near.Name(key, shortKeys); e.Near != "" {
			e.Near += ":"
		}
		return t, e
	}
	t.Key = key
	return r.values(t)
}

// key reads up to the colon after a key, or the dot of a tag; it returns an empty string if no key
// follows.
func (r *shortReader) key() string {
	rest := r.text[r.at:]
	for _, prefix := range []string{"tag.", "label."} {
		if strings.HasPrefix(rest, prefix) {
			r.at += len(prefix)
			return "tag"
		}
	}
	for i := range len(rest) {
		switch c := rest[i]; {
		case c == ':':
			r.at += i + 1
			return rest[:i]
		case c == '"' || c == '\'' || c == '\\' || c < 'a' || c > 'z':
			return ""
		}
	}
	return ""
}

// tag reads the rest of tag.KEY=VALUE.
func (r *shortReader) tag(t Term, begin int) (Term, error) {
	key, err := r.value("=:")
	if err != nil {
		return t, err
	}
	if key == "" || r.at == len(r.text) || r.text[r.at] != '=' && r.text[r.at] != ':' {
		return t, r.fail(begin, "a tag and its value, as in tag.team=pay")
	}
	r.at++
	t.Key, t.Tag = "tag", key
	return r.values(t)
}

// values reads and checks values joined by commas.
func (r *shortReader) values(t Term) (Term, error) {
	for {
		begin := r.at
		value, err := r.value(",")
		if err != nil {
			return t, err
		}
		if r.at == begin {
			return t, r.fail(begin, "a value")
		}
		if expected := t.check(&value); expected != "" {
			e := r.fail(begin, expected)
			if t.Key == "status" {
				e.Near = strings.ToLower(near.Name(value, append(Statuses(), "open", "ended")))
			}
			return t, e
		}
		t.Values = append(t.Values, value)
		if r.at == len(r.text) || r.text[r.at] != ',' {
			return t, r.checkMoment(t, begin)
		}
		r.at++
	}
}

// checkMoment refuses negated and multiple times.
func (r *shortReader) checkMoment(t Term, at int) error {
	switch {
	case t.Key != "since" && t.Key != "until":
		return nil
	case t.Not:
		return r.fail(at, "no ! in front of "+t.Key+": since and until are opposites")
	case len(t.Values) > 1:
		return r.fail(at, "one moment")
	}
	return nil
}

// check normalises a value, or returns what was expected instead.
func (t Term) check(value *string) (expected string) {
	switch t.Key {
	case "status":
		name := strings.ToLower(strings.ReplaceAll(*value, "-", "_"))
		if _, word := statusWords[name]; !word && !slices.Contains(Statuses(), strings.ToUpper(name)) {
			return "a status (" + strings.ToLower(strings.Join(Statuses(), ", ")) + ", open, ended)"
		}
		*value = name
	case "since", "until":
		if shortMoment(*value) == "" {
			return "a time (24h, 7d, 2026-11-20, 2026-11-20T10:00)"
		}
	}
	return ""
}

// value reads one value up to a blank or one of the given characters; quotes escape them.
func (r *shortReader) value(until string) (string, error) {
	var b strings.Builder
	for r.at < len(r.text) {
		c, size := utf8.DecodeRuneInString(r.text[r.at:])
		switch {
		case c == '"':
			if err := r.quoted(&b); err != nil {
				return "", err
			}
			continue
		case unicode.IsSpace(c) || strings.ContainsRune(until, c):
			return b.String(), nil
		}
		b.WriteRune(c)
		r.at += size
	}
	return b.String(), nil
}

// quoted reads the content of double quotes; a backslash escapes the next character.
func (r *shortReader) quoted(b *strings.Builder) error {
	for i := r.at + 1; i < len(r.text); i++ {
		switch c := r.text[i]; c {
		case '"':
			r.at = i + 1
			return nil
		case '\\':
			if i++; i == len(r.text) {
				return r.fail(i, `the closing "`)
			}
			b.WriteByte(r.text[i])
		default:
			b.WriteByte(c)
		}
	}
	return r.fail(len(r.text), `the closing "`)
}
