package kagzi

import (
	"encoding/json"
	"math"
	"reflect"
	"testing"
)

type label string

func TestUnchangedByJSON(t *testing.T) {
	t.Run("what is not read back is what would be read back", func(t *testing.T) {
		values := []any{
			"", "plain", "<&>\u2028\x00\"\\", "\U0001f600", true, false, int8(math.MinInt8), int64(math.MinInt64), uint64(math.MaxUint64), 1<<53 + 1,
			math.Copysign(0, -1), math.MaxFloat64, math.SmallestNonzeroFloat64, 0.1, 1e21, float32(0.1), float32(math.MaxFloat32), float32(math.SmallestNonzeroFloat32),
		}
		for _, v := range values {
			if !unchangedByJSON(v) {
				t.Errorf("%T %v is read back", v, v)
			}
			data, err := json.Marshal(v)
			if err != nil {
				t.Fatal(err)
			}
			back := reflect.New(reflect.TypeOf(v))
			if err := json.Unmarshal(data, back.Interface()); err != nil {
				t.Fatal(err)
			}
			if got := back.Elem().Interface(); got != v || math.Signbit(asFloat(got)) != math.Signbit(asFloat(v)) {
				t.Errorf("%T %v is read back as %v", v, v, got)
			}
		}
	})
	t.Run("what JSON may change is read back", func(t *testing.T) {
		for _, v := range []any{"\xff", "\xed\xa0\x80", label("x"), []byte("x"), []string(nil), map[string]int{}, struct{ a int }{1}, new(int), nil} {
			if unchangedByJSON(v) {
				t.Errorf("%T %v is not read back", v, v)
			}
		}
	})
}

func asFloat(v any) float64 {
	f, _ := v.(float64)
	return f
}
