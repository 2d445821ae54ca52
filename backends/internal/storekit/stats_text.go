package storekit

import (
	"encoding/json"
	"math"
	"strconv"

	"github.com/kagzi/kagzi/engine"
)

// StatsText encodes a worker's own measurements as JSON that encoding/json reads. It leaves out
// zeros and values that are not numbers; "" means none. It is hand-written because heartbeats are
// nearly all the writes of thousands of idle workers.
func StatsText(s *engine.WorkerStats) string {
	if s == nil {
		return ""
	}
	text := append(make([]byte, 0, 160), '{')
	member := func(name string) {
		if len(text) > 1 {
			text = append(text, ',')
		}
		text = append(append(append(text, '"'), name...), `":`...)
	}
	whole := func(name string, n int64) {
		if n != 0 {
			member(name)
			text = strconv.AppendInt(text, n, 10)
		}
	}
	measured := func(name string, n float64) {
		if n != 0 && !math.IsNaN(n) && !math.IsInf(n, 0) {
			member(name)
			text = strconv.AppendFloat(text, n, 'g', -1, 64)
		}
	}
	measured("cpu_percent", s.CPUPercent)
	whole("memory_bytes", s.MemoryBytes)
	whole("disk_available_bytes", s.DiskAvailableBytes)
	whole("uptime_seconds", s.UptimeSeconds)
	measured("average_run_ms", s.AverageRunMS)
	if len(s.Blocked) > 0 { // rare
		if blocked, err := json.Marshal(s.Blocked); err == nil {
			member("blocked")
			text = append(text, blocked...)
		}
	}
	return string(append(text, '}'))
}
