package dbfile

import (
	"fmt"
	"sync"
	"time"
)

// LowWater is the free space in bytes that new runs require. Below it, existing runs can still end.
const LowWater = 256 << 20

// DiskSpace watches the free space of a disk. It asks at most once a second.
type DiskSpace struct {
	Dir  string
	Free func(string) (uint64, error) // nil: FreeBytes

	mu    sync.Mutex
	asked time.Time
	short bool
}

// Low reports whether the disk has too little space for new runs; false if the free space is
// unknown.
func (d *DiskSpace) Low() bool {
	d.mu.Lock()
	defer d.mu.Unlock()
	if now := time.Now(); d.asked.IsZero() || now.Sub(d.asked) >= time.Second {
		free := d.Free
		if free == nil {
			free = FreeBytes
		}
		left, err := free(d.Dir)
		d.asked, d.short = now, err == nil && left < LowWater
	}
	return d.short
}

// BytesText formats a size for people.
func BytesText(n int64) string {
	if n < 1<<10 {
		return fmt.Sprintf("%d B", n)
	}
	size := float64(n)
	for _, unit := range []string{"KiB", "MiB", "GiB"} {
		if size /= 1 << 10; size < 1000 {
			return fmt.Sprintf("%.1f %s", size, unit)
		}
	}
	return fmt.Sprintf("%.1f TiB", size/(1<<10))
}
