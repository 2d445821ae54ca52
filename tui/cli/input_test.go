package cli

import (
	"encoding/json"
	"errors"
	"testing"
	"unicode/utf8"
)

func FuzzCheckJSON(f *testing.F) {
	for _, s := range []string{`{"a":}`, "", "\xff", "[1,\n2", "{\"é\" 1}", "é"} {
		f.Add([]byte(s))
	}
	f.Fuzz(func(t *testing.T, data []byte) {
		err := checkJSON("--input", data)
		if valid := json.Valid(data) && utf8.Valid(data); valid != (err == nil) {
			t.Fatalf("%q: valid %v, err %v", data, valid, err)
		}
		var usage *usageError
		if err != nil && !errors.As(err, &usage) {
			t.Fatalf("%q: %v is no usage error", data, err)
		}
	})
}
