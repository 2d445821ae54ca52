package render

import (
	"encoding/json"
	"strings"
	"testing"

	"github.com/goccy/go-yaml"
	"github.com/google/go-cmp/cmp"

	kagziv1 "github.com/kagzi/kagzi/proto/kagzi/v1"
)

func jsonOf(t *testing.T, document any) string {
	t.Helper()
	b, err := JSON(document, "")
	if err != nil {
		t.Fatal(err)
	}
	return string(b)
}

func TestDocument(t *testing.T) {
	t.Run("a JSON payload is embedded byte for byte", func(t *testing.T) {
		p := &kagziv1.Payload{Data: []byte(`{"z":1e400,"a":12345678901234567890,"html":"<&>"}`)}
		if got, want := jsonOf(t, Document(p)), string(p.Data); got != want {
			t.Fatalf("document = %s, want %s", got, want)
		}
	})
	t.Run("other payloads are base64 with their metadata", func(t *testing.T) {
		for name, p := range map[string]*kagziv1.Payload{
			"another type":   {Data: []byte("{}"), Metadata: map[string]string{"content-type": "text/plain"}},
			"a codec":        {Data: []byte("{}"), Metadata: map[string]string{"encoding": "zstd"}},
			"not JSON":       {Data: []byte("{")},
			"no valid UTF-8": {Data: []byte("\"\xff\"")},
		} {
			if got := jsonOf(t, Document(p)); !strings.HasPrefix(got, `{"base64":"`) ||
				!strings.Contains(got, `"metadata":{`) {
				t.Errorf("%s: document = %s", name, got)
			}
		}
	})
	t.Run("unset fields are there as null, empty list and empty map", func(t *testing.T) {
		got := jsonOf(t, Document(&kagziv1.GetStatsResponse{}))
		for _, want := range []string{`"total_workflows":0`, `"workflows_by_status":{}`, `"at":null`} {
			if !strings.Contains(got, want) {
				t.Errorf("document %s lacks %s", got, want)
			}
		}
	})
	t.Run("enum values lose their prefix", func(t *testing.T) {
		got := jsonOf(t, Document(&kagziv1.Step{
			Status: kagziv1.StepStatus_STEP_STATUS_COMPLETED, Kind: kagziv1.StepKind_STEP_KIND_SLEEP}))
		if !strings.Contains(got, `"status":"COMPLETED"`) || !strings.Contains(got, `"kind":"SLEEP"`) {
			t.Fatalf("document = %s", got)
		}
	})
}

func TestEncodings_carry_no_control_character_and_lose_nothing(t *testing.T) {
	for _, s := range append(corpus(), "true", "null", "~", "1e3", "0x10", "- a", "a: b", "#x", "", " ", "2026-11-20",
		"\"", "'", "multi\nline\n", "<&>") {
		document := Object{{"k", s}, {s + "key", []any{s, Object{}}}, {"raw", json.RawMessage(mustQuote(t, s))}}
		want := strings.ToValidUTF8(s, "�")

		b, err := JSON(document, "")
		if err != nil {
			t.Fatal(err)
		}
		assertHarmless(t, s, string(b))
		var fromJSON map[string]any
		if err := json.Unmarshal(b, &fromJSON); err != nil {
			t.Fatalf("%q: %v in %s", s, err, b)
		}
		if diff := cmp.Diff(want, strings.ReplaceAll(fromJSON["k"].(string), "\ufffd", "�")); diff != "" &&
			!strings.Contains(want, "�") {
			t.Errorf("JSON of %q: %s", s, diff)
		}

		y, err := YAML(document)
		if err != nil {
			t.Fatalf("%q: %v", s, err)
		}
		assertHarmless(t, s, strings.ReplaceAll(string(y), "\n", ""))
		var fromYAML map[string]any
		if err := yaml.Unmarshal(y, &fromYAML); err != nil {
			t.Fatalf("%q: %v in\n%s", s, err, string(y))
		}
		if got := fromYAML["k"]; got != fromJSON["k"] {
			t.Errorf("YAML of %q = %q, want %q in\n%s", s, got, fromJSON["k"], string(y))
		}
	}
}

// The flag of Scotland, and a Japanese name with a variation selector, contain escaped characters
// beyond U+FFFF.
func TestYAML_escapes_no_character_in_two_halves(t *testing.T) {
	const flag, name = "🏴\U000e0067\U000e0062\U000e0073\U000e0063\U000e0074\U000e007f", "葛\U000e0100城"
	document := Object{{"flag", flag}, {name, []any{json.RawMessage(mustQuote(t, name))}}}
	b, err := YAML(document)
	if err != nil {
		t.Fatal(err)
	}
	want := `flag: "🏴\U000e0067\U000e0062\U000e0073\U000e0063\U000e0074\U000e007f"` + "\n" + `"葛\U000e0100城":` +
		"\n  - " + `"葛\U000e0100城"` + "\n"
	if diff := cmp.Diff(want, string(b)); diff != "" {
		t.Fatal(diff)
	}
	var read map[string]any
	if err := yaml.Unmarshal(b, &read); err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(map[string]any{"flag": flag, name: []any{name}}, read); diff != "" {
		t.Error(diff)
	}
	if got := jsonOf(t, flag); got != `"🏴\udb40\udc67\udb40\udc62\udb40\udc73\udb40\udc63\udb40\udc74\udb40\udc7f"` {
		t.Errorf("JSON = %s, want it as before", got)
	}
}

func mustQuote(t *testing.T, s string) []byte {
	t.Helper()
	b, err := json.Marshal(s)
	if err != nil {
		t.Fatal(err)
	}
	return b
}

func TestYAML_keeps_the_digits_and_the_order_of_a_payload(t *testing.T) {
	p := &kagziv1.Payload{Data: []byte(`{"z":12345678901234567890,"a":[1.50,null,true,{"b":"x y"}]}`)}
	b, err := YAML(Document(p))
	if err != nil {
		t.Fatal(err)
	}
	want := "z: 12345678901234567890\na:\n  - 1.50\n  - null\n  - true\n  - b: \"x y\"\n"
	if diff := cmp.Diff(want, string(b)); diff != "" {
		t.Fatal(diff)
	}
}

func TestAn_encrypted_payload_shows_its_key_and_size_and_nothing_of_what_is_inside(t *testing.T) {
	p := &kagziv1.Payload{Data: []byte("CIPHERTEXT"),
		Metadata: map[string]string{"content-type": "application/json", "encoding": "binary/encrypted",
			"encryption-key": "orders\x1b[2J"}}
	if line := PayloadLine(p, -1); line != "<encrypted, key=orders\x1b[2J, 10 B>" {
		t.Errorf("one line: %q", line)
	}
	if lines := PayloadLines(p, -1); len(lines) != 1 || lines[0] != `<encrypted, key=orders\x1b[2J, 10 B>` {
		t.Errorf("lines: %q", lines)
	}
	if _, ok := Encrypted(&kagziv1.Payload{Data: []byte("x"), Metadata: map[string]string{"encoding": "gzip"}}); ok {
		t.Error("gzip counts as encrypted")
	}
}
