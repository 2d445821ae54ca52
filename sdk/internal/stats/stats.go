// Package stats collects what a worker reports in its heartbeats besides its leases.
package stats

import (
	"sync"
	"time"

	kagziv1 "github.com/kagzi/kagzi/proto/kagzi/v1"
)

// usage samples the resources of the process; 0 where the platform does not tell.
type usage struct {
	since time.Time
	at    time.Time
	cpu   time.Duration
}

func (u *usage) sample() *kagziv1.WorkerStats {
	now, cpu := time.Now(), cpuTime()
	if u.since.IsZero() {
		u.since, u.at, u.cpu = now, now, cpu
	}
	s := &kagziv1.WorkerStats{
		MemoryBytes:        residentBytes(),
		DiskAvailableBytes: diskAvailable(),
		UptimeSeconds:      int64(now.Sub(u.since).Seconds()),
	}
	if wall := now.Sub(u.at); wall > 0 {
		s.CpuPercent = 100 * float64(cpu-u.cpu) / float64(wall)
	}
	u.at, u.cpu = now, cpu
	return s
}

// Counters collects the figures of heartbeats.
type Counters struct {
	mu                sync.Mutex
	completed, failed int32 // not reported yet
	runs              int64
	spent             time.Duration
	usage             usage
}

// Finished counts a run that its code completed or failed. A run that is retried or was cancelled
// counts as neither.
func (c *Counters) Finished(status kagziv1.WorkflowStatus, took time.Duration) {
	c.mu.Lock()
	defer c.mu.Unlock()
	switch status {
	case kagziv1.WorkflowStatus_WORKFLOW_STATUS_COMPLETED:
		c.completed++
	case kagziv1.WorkflowStatus_WORKFLOW_STATUS_FAILED:
		c.failed++
	}
	c.runs++
	c.spent += took
}

// Report returns the figures to report now. The next report does not include them again, even if it
// is sent before this one is answered.
func (c *Counters) Report() (completed, failed int32, s *kagziv1.WorkerStats) {
	c.mu.Lock()
	defer c.mu.Unlock()
	s = c.usage.sample()
	if c.runs > 0 {
		s.AverageRunMs = float64(c.spent.Microseconds()) / 1000 / float64(c.runs)
	}
	completed, failed = c.completed, c.failed
	c.completed, c.failed = 0, 0
	return completed, failed, s
}

// Pending reports whether there are unreported figures.
func (c *Counters) Pending() bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.completed > 0 || c.failed > 0
}

// Unreported takes back figures that the server did not accept.
func (c *Counters) Unreported(completed, failed int32) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.completed += completed
	c.failed += failed
}
