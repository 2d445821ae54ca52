package async

import (
	"sync/atomic"
	"time"
)

// Elapsed says whether so many seconds have passed since the moment that last holds, and makes it
// this moment if so. A moment that lies ahead is of a clock that was set back since, and counts as
// long ago.
func Elapsed(last *atomic.Int64, seconds int64) bool {
	before, now := last.Load(), time.Now().Unix()
	return (now-before >= seconds || now < before) && last.CompareAndSwap(before, now)
}
