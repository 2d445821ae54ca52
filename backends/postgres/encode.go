package postgres

import (
	"encoding/json"
	"time"

	"github.com/kagzi/kagzi/backends/internal/storekit"
	"github.com/kagzi/kagzi/engine"
)

// What statements are given, as the columns hold it.

// micros is a time as it is stored.
func micros(t time.Time) int64 { return t.UnixMicro() }

// microsOrNull is the same for a column that may be null.
func microsOrNull(t time.Time) any {
	if t.IsZero() {
		return nil
	}
	return t.UnixMicro()
}

// microsOrZero is the same for arrays, whose statements make null of it.
func microsOrZero(t time.Time) int64 {
	if t.IsZero() {
		return 0
	}
	return t.UnixMicro()
}

func idOrNull(id engine.ID) any {
	if id.IsZero() {
		return nil
	}
	return [16]byte(id)
}

// idArray is ids as a parameter.
func idArray(ids []engine.ID) [][16]byte {
	array := make([][16]byte, len(ids))
	for i, id := range ids {
		array[i] = id
	}
	return array
}

// dataOrNull keeps no bytes as null: nil and empty are the same.
func dataOrNull(data []byte) []byte {
	if len(data) == 0 {
		return nil
	}
	return data
}

// keepText is how long runs are kept by outcome, in microseconds.
func keepText(keep map[engine.RunStatus]time.Duration) string {
	spans := make(map[engine.RunStatus]int64, len(keep))
	for status, d := range keep {
		spans[status] = d.Microseconds()
	}
	return mapText(spans)
}

// mapText is a map as compact JSON with sorted keys, nothing for none.
func mapText[K comparable, V any](m map[K]V) string {
	if texts, ok := any(m).(map[string]string); ok {
		return storekit.MapText(texts)
	}
	if len(m) == 0 {
		return ""
	}
	return jsonText(m)
}

// pointerText is what p points to as compact JSON, nothing for nil.
func pointerText[T any](p *T) string {
	if p == nil {
		return ""
	}
	return jsonText(p)
}

// jsonText writes maps of text, policies and failures, all of which JSON can hold.
func jsonText(v any) string {
	text, err := json.Marshal(v)
	if err != nil {
		panic("json of a plain value: " + err.Error())
	}
	return string(text)
}
