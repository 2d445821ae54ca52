//go:build !linux && !darwin && !windows

package stats

import "time"

// cpuTime is not known portably; heartbeats report 0.
func cpuTime() time.Duration { return 0 }

// diskAvailable is not known portably; heartbeats report 0.
func diskAvailable() int64 { return 0 }
