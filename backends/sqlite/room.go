package sqlite

import (
	"sync"
	"time"
)

// lowWater is how many bytes must be free for new runs; what is less is for those that are there to come to their end.
const lowWater = 256 << 20

// room looks at the free space of the database's disk, at most once a second.
type room struct {
	path string
	free func(string) (uint64, error) // nil: freeBytes

	mu     sync.Mutex
	looked time.Time
	short  bool
}

// lacksRoom says that no new run may come from outside. A store for looking only has a better reason to refuse one.
func (s *Store) lacksRoom() bool { return !s.looking() && s.room.low() }

// low says that there is too little room for new runs. A disk that does not tell has room.
func (r *room) low() bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	if now := time.Now(); r.looked.IsZero() || now.Sub(r.looked) >= time.Second {
		free := r.free
		if free == nil {
			free = freeBytes
		}
		left, err := free(r.path)
		r.looked, r.short = now, err == nil && left < lowWater
	}
	return r.short
}
