package auth

import (
	"context"
	"sync"
	"time"
)

const (
	freeFailures = 10 // failures a second that an address has before its answers are late
	failureDelay = 250 * time.Millisecond
	maxAddresses = 4096 // addresses that are told apart in one second
	maxDelayed   = 1000 // answers that are late at a time
)

// unauthenticated counts the calls without a valid key by the address that they come from. Past a
// few a second their answers are late, so that whoever tries secrets makes no more than a few a
// second for each call that it can keep open. A call with a valid key is never late, also from such
// an address: others may share it.
type unauthenticated struct {
	mu      sync.Mutex
	second  time.Time // when the count began, by the monotonic clock
	failed  map[string]int
	waiting int
}

// delay counts a failure, and comes back late when the address has had too many.
func (s *unauthenticated) delay(ctx context.Context, host string) {
	if !s.enter(host, time.Now()) {
		return
	}
	late := time.NewTimer(failureDelay)
	defer late.Stop()
	select {
	case <-late.C:
	case <-ctx.Done():
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	s.waiting--
}

// enter counts a failure and says whether its answer is to be late.
func (s *unauthenticated) enter(host string, now time.Time) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.failed == nil || now.Sub(s.second) >= time.Second {
		s.second, s.failed = now, map[string]int{}
	}
	if _, known := s.failed[host]; !known && len(s.failed) >= maxAddresses {
		host = "" // so many at once share a count
	}
	s.failed[host]++
	if s.failed[host] <= freeFailures || s.waiting >= maxDelayed {
		return false
	}
	s.waiting++
	return true
}
