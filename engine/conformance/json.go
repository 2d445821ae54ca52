package conformance

import (
	"bytes"
	"encoding/json"
	"math/big"
	"strconv"
	"strings"
)

// sameJSON reports whether two texts are the same JSON value. Numbers are compared exactly.
func sameJSON(a, b []byte) bool {
	x, errX := canonical(a)
	y, errY := canonical(b)
	return errX == nil && errY == nil && x == y
}

// canonical returns the one text of a JSON value: keys in order, numbers as fractions.
func canonical(data []byte) (string, error) {
	if len(bytes.TrimSpace(data)) == 0 {
		return "", nil
	}
	d := json.NewDecoder(bytes.NewReader(data))
	d.UseNumber()
	var v any
	if err := d.Decode(&v); err != nil {
		return "", err
	}
	if d.More() {
		return "", errTrailing
	}
	text, err := json.Marshal(exact(v))
	return string(text), err
}

var errTrailing = &json.SyntaxError{}

// maxExponent limits the exponents that are computed.
const maxExponent = 400

// exact replaces numbers by texts that are the same for equal numbers.
func exact(v any) any {
	switch v := v.(type) {
	case json.Number:
		return map[string]any{"number": exactNumber(v.String())}
	case []any:
		for i := range v {
			v[i] = exact(v[i])
		}
	case map[string]any:
		for k := range v {
			v[k] = exact(v[k])
		}
	}
	return v
}

func exactNumber(text string) string {
	if _, exponent, found := strings.Cut(strings.ToLower(text), "e"); found {
		if n, err := strconv.Atoi(exponent); err != nil || n > maxExponent || n < -maxExponent {
			return text
		}
	}
	r, ok := new(big.Rat).SetString(text)
	if !ok {
		return text
	}
	return r.RatString()
}
