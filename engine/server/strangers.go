package server

import (
	"context"
	"sync"
	"time"
)

const (
	strangersFree  = 10 // failures a second that an address has before its answers are late
	strangersDelay = 250 * time.Millisecond
	strangersMost  = 4096 // addresses that are told apart in one second
	strangersHeld  = 1000 // answers that are late at a time
)

// strangers counts the calls without a valid key by the address that they come from. Past a few a second their answers are late, so that
// whoever tries secrets makes no more than a few a second for each call that it can keep open. A call with a valid key is never late,
// also from such an address: others may share it.
type strangers struct {
	mu      sync.Mutex
	second  time.Time // when the count began, by the monotonic clock
	failed  map[string]int
	waiting int
}

// hold counts a failure, and comes back late when the address has had too many.
func (s *strangers) hold(ctx context.Context, host string) {
	if !s.enter(host, time.Now()) {
		return
	}
	late := time.NewTimer(strangersDelay)
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
func (s *strangers) enter(host string, now time.Time) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.failed == nil || now.Sub(s.second) >= time.Second {
		s.second, s.failed = now, map[string]int{}
	}
	if _, known := s.failed[host]; !known && len(s.failed) >= strangersMost {
		host = "" // so many at once share a count
	}
	s.failed[host]++
	if s.failed[host] <= strangersFree || s.waiting >= strangersHeld {
		return false
	}
	s.waiting++
	return true
}
