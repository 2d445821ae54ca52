//go:build !linux && !windows

package stats

import "runtime/metrics"

// residentBytes returns the memory that the Go runtime has from the system. It is close to the
// resident set, which macOS tells only to callers of its C libraries.
func residentBytes() int64 {
	s := []metrics.Sample{{Name: "/memory/classes/total:bytes"}}
	metrics.Read(s)
	if s[0].Value.Kind() != metrics.KindUint64 {
		return 0
	}
	return int64(s[0].Value.Uint64())
}
