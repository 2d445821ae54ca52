package render

import (
	"bytes"
	"encoding/json"
	"fmt"
	"strings"
)

// YAML writes a document as YAML in block style. Strings that are not plain words are quoted as in
// JSON, which YAML reads the same way except for surrogate pairs. So no text is read as a number or
// a date, and no control character is written.
func YAML(document any) ([]byte, error) {
	var b bytes.Buffer
	if err := writeYAML(&b, document, 0); err != nil {
		return nil, err
	}
	return bytes.TrimPrefix(b.Bytes(), []byte("\n")), nil
}

// writeYAML writes a value after its key or dash: a scalar on the same line, a collection on the
// lines below.
func writeYAML(b *bytes.Buffer, value any, depth int) error {
	value, err := resolved(value)
	if err != nil {
		return err
	}
	switch v := value.(type) {
	case Object:
		if len(v) > 0 {
			return writeMapping(b, v, depth)
		}
		b.WriteString("{}\n")
	case []any:
		if len(v) > 0 {
			return writeSequence(b, v, depth)
		}
		b.WriteString("[]\n")
	case json.Number:
		b.WriteString(v.String() + "\n")
	case string:
		text, err := yamlString(v)
		if err != nil {
			return err
		}
		b.WriteString(text + "\n")
	default:
		text, err := JSON(v, "")
		if err != nil {
			return err
		}
		b.Write(append(text, '\n'))
	}
	return nil
}

func writeMapping(b *bytes.Buffer, object Object, depth int) error {
	if !atDash(b) {
		b.WriteByte('\n')
	}
	for _, f := range object {
		name, err := yamlString(f.Name)
		if err != nil {
			return err
		}
		if !atDash(b) {
			b.WriteString(strings.Repeat("  ", depth))
		}
		b.WriteString(name + ":")
		value, err := resolved(f.Value)
		if err != nil {
			return fmt.Errorf("%s: %w", f.Name, err)
		}
		if !collection(value) {
			b.WriteByte(' ')
		}
		if err := writeYAML(b, value, depth+1); err != nil {
			return fmt.Errorf("%s: %w", f.Name, err)
		}
	}
	return nil
}

func writeSequence(b *bytes.Buffer, list []any, depth int) error {
	if !atDash(b) {
		b.WriteByte('\n')
	}
	for _, item := range list {
		if !atDash(b) {
			b.WriteString(strings.Repeat("  ", depth))
		}
		b.WriteString("- ")
		if err := writeYAML(b, item, depth+1); err != nil {
			return err
		}
	}
	return nil
}

// atDash reports whether the output ends with a list's dash, so that its item follows on the same
// line.
func atDash(b *bytes.Buffer) bool { return bytes.HasSuffix(b.Bytes(), []byte("- ")) }

// resolved parses a payload and returns any other value unchanged.
func resolved(value any) (any, error) {
	if raw, ok := value.(json.RawMessage); ok {
		return parseJSON(raw)
	}
	return value, nil
}

// collection reports whether the value goes below its key.
func collection(value any) bool {
	switch v := value.(type) {
	case Object:
		return len(v) > 0
	case []any:
		return len(v) > 0
	}
	return false
}

func yamlString(s string) (string, error) {
	if plainWord(s) {
		return s, nil
	}
	quoted, err := encode(s)
	// YAML has no surrogate pairs, and many parsers refuse the document
	return string(escaped(quoted, `\U%08x`)), err
}

// plainWord reports whether YAML 1.1 and 1.2 read the unquoted text as the same string.
func plainWord(s string) bool {
	switch strings.ToLower(s) {
	case "", "y", "n", "yes", "no", "on", "off", "true", "false", "null":
		return false
	}
	for i := range len(s) {
		c := s[i] | 0x20
		if letter := c >= 'a' && c <= 'z'; !letter && (i == 0 || !strings.ContainsRune("0123456789_-./", rune(s[i]))) {
			return false
		}
	}
	return true
}
