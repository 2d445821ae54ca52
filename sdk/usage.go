package kagzi

import (
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
