//go:build !linux

package stats

import (
	"runtime/metrics"
	"time"
)

// cpuTime is not known portably; heartbeats report 0.
func cpuTime() time.Duration { return 0 }

// residentBytes returns the memory that the Go runtime has from the system, which is close.
func residentBytes() int64 {
	s := []metrics.Sample{{Name: "/memory/classes/total:bytes"}}
	metrics.Read(s)
	if s[0].Value.Kind() != metrics.KindUint64 {
		return 0
	}
	return int64(s[0].Value.Uint64())
}

// diskAvailable is not known portably; heartbeats report 0.
func diskAvailable() int64 { return 0 }
