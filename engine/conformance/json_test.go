package conformance

import (
	"encoding/json"
	"os"
	"testing"
)

func TestPayloadsAreComparedAsTheVectorsSay(t *testing.T) {
	data, err := os.ReadFile("../../proto/vectors/payloads.json")
	if err != nil {
		t.Fatal(err)
	}
	var v struct {
		Groups  [][]string
		Invalid []string
	}
	if err := json.Unmarshal(data, &v); err != nil {
		t.Fatal(err)
	}
	for i, group := range v.Groups {
		for j, other := range v.Groups {
			for _, a := range group {
				for _, b := range other {
					if got := sameJSON([]byte(a), []byte(b)); got != (i == j) {
						t.Errorf("%s and %s: equal %t", a, b, got)
					}
				}
			}
		}
	}
	for _, text := range v.Invalid {
		if sameJSON([]byte(text), []byte(text)) {
			t.Errorf("%s is taken for JSON", text)
		}
	}
	if sameJSON([]byte("1e999999999"), []byte("1e999999998")) || !sameJSON([]byte("1e999999999"), []byte("1e999999999")) {
		t.Error("numbers that cannot be computed are compared by their texts")
	}
}
