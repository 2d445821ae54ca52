package render

import (
	"bytes"
	"encoding/json"
	"fmt"
	"strings"
	"unicode/utf16"
)

// MarshalJSON keeps the order of the fields.
func (o Object) MarshalJSON() ([]byte, error) {
	var b bytes.Buffer
	b.WriteByte('{')
	for i, f := range o {
		if i > 0 {
			b.WriteByte(',')
		}
		name, err := encode(f.Name)
		if err != nil {
			return nil, err
		}
		value, err := encode(f.Value)
		if err != nil {
			return nil, fmt.Errorf("%s: %w", f.Name, err)
		}
		b.Write(name)
		b.WriteByte(':')
		b.Write(value)
	}
	b.WriteByte('}')
	return b.Bytes(), nil
}

// JSON writes a document on one line, or on many with an indent. HTML is not escaped; characters
// that a terminal might interpret are written as \u escapes, which programs read as the same text.
func JSON(document any, indent string) ([]byte, error) {
	b, err := encode(document)
	if err != nil {
		return nil, err
	}
	var out bytes.Buffer
	if indent == "" {
		err = json.Compact(&out, b)
	} else {
		err = json.Indent(&out, b, "", indent)
	}
	if err != nil {
		return nil, err
	}
	return escaped(out.Bytes(), ""), nil
}

// encode is json.Marshal without HTML escapes.
func encode(v any) ([]byte, error) {
	var b bytes.Buffer
	e := json.NewEncoder(&b)
	e.SetEscapeHTML(false)
	if err := e.Encode(v); err != nil {
		return nil, err
	}
	return bytes.TrimSuffix(b.Bytes(), []byte("\n")), nil
}

// escaped escapes unsafe characters above ASCII's controls, which valid JSON has only inside
// strings. wide is the format for characters of more than four digits; empty: JSON's surrogate
// pairs.
func escaped(b []byte, wide string) []byte {
	text := string(b)
	if !strings.ContainsFunc(text, unsafeInJSON) {
		return b
	}
	var out bytes.Buffer
	for _, r := range text {
		switch {
		case !unsafeInJSON(r):
			out.WriteRune(r)
		case r > 0xffff && wide != "":
			fmt.Fprintf(&out, wide, r)
		case r > 0xffff:
			high, low := utf16.EncodeRune(r)
			fmt.Fprintf(&out, `\u%04x\u%04x`, high, low)
		default:
			fmt.Fprintf(&out, `\u%04x`, r)
		}
	}
	return out.Bytes()
}

func unsafeInJSON(r rune) bool { return r >= 0x7f && unsafe(r) }

// parseJSON parses a payload into a document, keeping the order of fields and the digits of
// numbers.
func parseJSON(b []byte) (any, error) {
	d := json.NewDecoder(bytes.NewReader(b))
	d.UseNumber()
	return parseValue(d)
}

func parseValue(d *json.Decoder) (any, error) {
	token, err := d.Token()
	if err != nil {
		return nil, err
	}
	switch token {
	case json.Delim('{'):
		object := Object{}
		for d.More() {
			name, err := d.Token()
			if err != nil {
				return nil, err
			}
			value, err := parseValue(d)
			if err != nil {
				return nil, err
			}
			object = append(object, Field{name.(string), value})
		}
		_, err = d.Token()
		return object, err
	case json.Delim('['):
		list := []any{}
		for d.More() {
			value, err := parseValue(d)
			if err != nil {
				return nil, err
			}
			list = append(list, value)
		}
		_, err = d.Token()
		return list, err
	}
	return token, nil
}
