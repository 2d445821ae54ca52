package storekit

import (
	"encoding/json"
	"maps"
	"testing"
)

func FuzzMapText(f *testing.F) {
	for _, s := range []string{"", "encoding", `"`, `\`, `":"`, `"}`, "<a & b>", "\x00\x1f\x7f", "ä\u2028", "\xff",
		`a":"b","c`, "{}"} {
		f.Add(s, "json", s)
		f.Add("encoding", s, `{"encoding":"`+s+`"}`)
		f.Add(s, s, `{"`+s+`":"`+s+`"}`)
	}
	f.Fuzz(func(t *testing.T, key, value, any string) {
		for _, m := range []map[string]string{nil, {}, {key: value}, {key: value, value: key}} {
			text := MapText(m)
			want, err := json.Marshal(m)
			if err != nil {
				t.Fatal(err)
			}
			if len(m) == 0 {
				want = nil
			}
			if text != string(want) {
				t.Errorf("%q is %s, want %s", m, text, want)
			}
			same(t, text)
		}
		same(t, any)
	})
}

// same compares ReadMapText with encoding/json.
func same(t *testing.T, text string) {
	t.Helper()
	var want map[string]string
	refused := text != "" && json.Unmarshal([]byte(text), &want) != nil
	got, err := ReadMapText(text)
	if (err != nil) != refused || !refused && !maps.Equal(got, want) {
		t.Errorf("%q was read as %q (%v), want %q", text, got, err, want)
	}
}

func BenchmarkMapText(b *testing.B) {
	m := map[string]string{"encoding": "json"}
	b.Run("write", func(b *testing.B) {
		for b.Loop() {
			MapText(m)
		}
	})
	b.Run("write by encoding/json", func(b *testing.B) {
		for b.Loop() {
			_, _ = json.Marshal(m)
		}
	})
	b.Run("read", func(b *testing.B) {
		for b.Loop() {
			_, _ = ReadMapText(`{"encoding":"json"}`)
		}
	})
	b.Run("read by encoding/json", func(b *testing.B) {
		for b.Loop() {
			var m map[string]string
			_ = json.Unmarshal([]byte(`{"encoding":"json"}`), &m)
		}
	})
}
