package postgres

import (
	"context"
	_ "embed"
	"sync"
	"time"

	"github.com/kagzi/kagzi/engine"
)

// lateAfter is how long a write may be under way before it is suspected that the database takes none. The write that shows it has healthTimeout,
// and trouble is to show within 5 s.
const lateAfter = 2 * time.Second

// suspicions are of a database that answers what it is asked, and may not take writes all the same: its disk is full or stands still, or the
// standby is gone that its commits wait for. The zero value has none.
type suspicions struct {
	mu     sync.Mutex
	begun  map[uint64]time.Time // of the writes under way
	next   uint64
	failed bool // the last write that came to its end did so for want of the database
}

// write notes that a write begins, and with what it returns how it ended.
func (p *suspicions) write() (ended func(error)) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.begun == nil {
		p.begun = map[uint64]time.Time{}
	}
	number := p.next
	p.next++
	p.begun[number] = time.Now()
	return func(err error) {
		p.mu.Lock()
		defer p.mu.Unlock()
		delete(p.begun, number)
		if err == nil {
			p.failed = false
			return
		}
		switch engine.KindOf(translate("write", err)) {
		case engine.KindUnavailable, engine.KindExhausted:
			p.failed = true
		}
	}
}

// any says that only a write can show whether writes are taken.
func (p *suspicions) any() bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	for _, begun := range p.begun {
		if time.Since(begun) >= lateAfter {
			return true
		}
	}
	return p.failed
}

//go:embed sql/take_room.sql
var takeRoomSQL string

//go:embed sql/drop_room.sql
var dropRoomSQL string

// tryToWrite asks the database by a write that leaves nothing behind.
func (s *Store) tryToWrite(ctx context.Context) error {
	ended := s.suspicions.write()
	batch := s.newBatch()
	batch.Queue(takeRoomSQL)
	batch.Queue(dropRoomSQL)
	err := s.pool.SendBatch(ctx, batch).Close()
	ended(err)
	return translate("try to write", err)
}
