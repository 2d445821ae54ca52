//go:build !linux

package bench

import "time"

// pause waits for d, or as long as the system's shortest timer.
func pause(d time.Duration) { time.Sleep(d) }
