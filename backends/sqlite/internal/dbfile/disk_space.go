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
	// Changed is called when the disk falls below LowWater, and when it has more again. nil: nothing
	Changed func(left uint64, low bool)

	now   func() time.Time // nil: time.Now
	mu    sync.Mutex
	asked time.Time
	left  uint64
	known bool
	low   bool
}

// Low reports whether the disk has too little space for new runs; false if the free space is
// unknown.
func (d *DiskSpace) Low() bool {
	_, low, _ := d.Left()
	return low
}

// Left returns how many bytes are free, whether that is too little for new runs, and whether the
// disk tells.
func (d *DiskSpace) Left() (left uint64, low, known bool) {
	d.mu.Lock()
	defer d.mu.Unlock()
	clock := d.now
	if clock == nil {
		clock = time.Now
	}
	if now := clock(); d.asked.IsZero() || now.Sub(d.asked) >= time.Second {
		free := d.Free
		if free == nil {
			free = FreeBytes
		}
		left, err := free(d.Dir)
		was := d.low
		d.asked, d.left, d.known = now, left, err == nil
		if d.low = d.known && left < LowWater; d.low != was && d.Changed != nil {
			d.Changed(left, d.low)
		}
	}
	return d.left, d.low, d.known
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
