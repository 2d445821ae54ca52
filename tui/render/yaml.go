package render

import (
	"bytes"
	"encoding/json"
	"fmt"
	"strings"
)

// YAML writes a document as YAML in block style. Strings that are not plain words are quoted as
// JSON quotes them, which YAML reads the same way but for escapes of two halves: so no text is
// taken for a number or a date, and no control character gets out.
func YAML(document any) ([]byte, error) {
	var b bytes.Buffer
	if err := writeYAML(&b, document, 0); err != nil {
		return nil, err
	}
	return bytes.TrimPrefix(b.Bytes(), []byte("\n")), nil
}

// writeYAML writes a value behind its key or dash: a scalar on the same line, a collection on the lines below.
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

// atDash says that a list's dash stands at the end of what is written, so that its item goes on behind it.
func atDash(b *bytes.Buffer) bool { return bytes.HasSuffix(b.Bytes(), []byte("- ")) }

// resolved reads a payload; any other value is there already.
func resolved(value any) (any, error) {
	if raw, ok := value.(json.RawMessage); ok {
		return parseJSON(raw)
	}
	return value, nil
}

// collection says that the value goes to the lines below its key.
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
	// a half by itself is no character to YAML, and many refuse the document
	return string(escaped(quoted, `\U%08x`)), err
}

// plainWord says that YAML reads the text unquoted as the string that it is, in version 1.1 as in 1.2.
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
