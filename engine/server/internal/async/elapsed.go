package async

import (
	"sync/atomic"
	"time"
)

// Elapsed says whether that many seconds have passed since last, a Unix time, and sets last to now
// if so. If last is in the future, because the clock was set back, the time counts as passed.
func Elapsed(last *atomic.Int64, seconds int64) bool {
	before, now := last.Load(), time.Now().Unix()
	return (now-before >= seconds || now < before) && last.CompareAndSwap(before, now)
}
