package auth

import (
	"context"
	"sync"
	"time"
)

const (
	freeFailures = 10 // failures per second and address without a delay
	failureDelay = 250 * time.Millisecond
	maxAddresses = 4096 // addresses with a count of their own per second
	maxDelayed   = 1000 // answers delayed at the same time
)

// unauthenticated counts the calls without a valid key by address. After freeFailures per second it
// delays their answers, which slows down guessing of secrets. It never delays a call with a valid
// key, even from such an address, because others may share it.
type unauthenticated struct {
	mu      sync.Mutex
	second  time.Time // when the count began, by the monotonic clock
	failed  map[string]int
	waiting int
}

// delay counts a failure, and waits if the address has had too many.
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

// enter counts a failure and says whether to delay its answer.
func (s *unauthenticated) enter(host string, now time.Time) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.failed == nil || now.Sub(s.second) >= time.Second {
		s.second, s.failed = now, map[string]int{}
	}
	if _, known := s.failed[host]; !known && len(s.failed) >= maxAddresses {
		host = "" // the addresses above the limit share one count
	}
	s.failed[host]++
	if s.failed[host] <= freeFailures || s.waiting >= maxDelayed {
		return false
	}
	s.waiting++
	return true
}
