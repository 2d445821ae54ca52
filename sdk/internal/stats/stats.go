// Package stats counts what a worker reports in its heartbeats beside the leases.
package stats

import (
	"sync"
	"time"

	kagziv1 "github.com/kagzi/kagzi/proto/kagzi/v1"
)

// usage samples what the process uses; as well as the platform tells, and 0 where it does not.
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

// Counters are what heartbeats report beside the leases.
type Counters struct {
	mu                sync.Mutex
	completed, failed int32 // that no report counts yet
	runs              int64
	spent             time.Duration
	usage             usage
}

// Finished counts what has become of a run by what its code returned. One that is tried again, or
// was cancelled, has neither completed nor failed.
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

// Report is what is to be counted by the server now. The next report, which may go out before this
// one is answered, does not count it again.
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

// Pending says that there is something that no report counts yet.
func (c *Counters) Pending() bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.completed > 0 || c.failed > 0
}

// Unreported takes back what the server has not counted.
func (c *Counters) Unreported(completed, failed int32) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.completed += completed
	c.failed += failed
}
