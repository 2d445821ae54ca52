package sqlite

import (
	"encoding/hex"
	"encoding/json"
	"time"

	"github.com/kagzi/kagzi/backends/internal/storekit"
	"github.com/kagzi/kagzi/engine"
)

// The values below are made of strings, numbers and booleans, which JSON always can hold; NaN and infinities, which it
// cannot, are refused or absent before.

func encode(v any) string {
	text, err := json.Marshal(v)
	if err != nil {
		panic("sqlite: " + err.Error())
	}
	return string(text)
}

// encodeMap is canonical: the keys are sorted.
func encodeMap[V any](m map[string]V) string {
	if texts, ok := any(m).(map[string]string); ok {
		return storekit.MapText(texts)
	}
	if len(m) == 0 {
		return ""
	}
	return encode(m)
}

func encodeFailure(f *engine.Failure) string {
	if f == nil {
		return ""
	}
	return encode(f)
}

// encodeKeep is decodeKeep's counterpart.
func encodeKeep(keep map[engine.RunStatus]time.Duration) string {
	if len(keep) == 0 {
		return ""
	}
	micros := make(map[engine.RunStatus]int64, len(keep))
	for status, d := range keep {
		micros[status] = d.Microseconds()
	}
	return encode(micros)
}

func encodePolicy(p *engine.RetryPolicy) string {
	if p == nil {
		return ""
	}
	return encode(p)
}

// encodeIDs is encodeHex of ids, for statements about several rows.
func encodeIDs(ids []engine.ID) string {
	list := make([][]byte, len(ids))
	for i := range ids {
		list[i] = ids[i][:]
	}
	return encodeHex(list)
}

// encodeHex is a JSON list of hexadecimal digits.
func encodeHex(blobs [][]byte) string {
	list := make([]byte, 0, 2+len(blobs)*67)
	list = append(list, '[')
	for i, b := range blobs {
		if i > 0 {
			list = append(list, ',')
		}
		list = append(list, '"')
		list = hex.AppendEncode(list, b)
		list = append(list, '"')
	}
	return string(append(list, ']'))
}

func encodeList(list []string) string {
	if len(list) == 0 {
		return ""
	}
	return encode(list)
}

func encodeStatuses(list []engine.RunStatus) string {
	if len(list) == 0 {
		return ""
	}
	numbers := make([]int, len(list)) // a list of bytes would become base64
	for i, status := range list {
		numbers[i] = int(status)
	}
	return encode(numbers)
}
