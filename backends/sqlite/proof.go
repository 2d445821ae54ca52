package sqlite

import (
	"context"
	"errors"
	"os"
	"sync"
	"time"
)

const (
	// proofPause is how long after a write that failed, or a proof that did, the next proof is made.
	proofPause = time.Second
	// proofBytes is the room that a disk must have to take writes again.
	proofBytes = 1 << 20
)

// proof finds out whether a disk that failed a write takes writes again. Who is told that a store is unwell sends it none, and then no write
// tells that the trouble is over. It is made when somebody asks, and not waited for.
type proof struct {
	pause time.Duration

	mu   sync.Mutex
	last time.Time     // when a write failed, or a proof came to its end
	over chan struct{} // closed when the proof under way is over; nil: none is
}

// failed notes that a write has failed.
func (p *proof) failed() {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.last = time.Now()
}

// begin begins a proof if none is under way and it is time for one.
func (p *proof) begin(prove func()) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.over != nil || time.Since(p.last) < p.pause {
		return
	}
	over := make(chan struct{})
	p.over = over
	go func() {
		prove()
		p.mu.Lock()
		p.last, p.over = time.Now(), nil
		p.mu.Unlock()
		close(over)
	}()
}

// wait waits for the proof under way, if one is. No other must begin.
func (p *proof) wait() {
	p.mu.Lock()
	over := p.over
	p.mu.Unlock()
	if over != nil {
		<-over
	}
}

// prove writes where the database lies: first what needs room, and then to the database itself, which ends the trouble.
func (s *Store) prove() {
	if err := takesRoom(s.path + "-proof"); err != nil {
		return
	}
	_, _ = write(context.Background(), s, "prove", 0, func(t *tx) (none struct{}, err error) { // the writer notes what comes of it
		if err := t.Stand("proof", "made", s.Now()); err != nil {
			return none, err
		}
		return none, t.Stand("proof", "", time.Time{})
	})
}

// takesRoom says whether the disk takes a file of proofBytes, which is deleted again.
func takesRoom(path string) (err error) {
	if err := os.Remove(path); err != nil && !errors.Is(err, os.ErrNotExist) {
		return err
	}
	f, err := os.OpenFile(path, os.O_CREATE|os.O_EXCL|os.O_WRONLY, 0o600)
	if err != nil {
		return err
	}
	_, err = f.Write(make([]byte, proofBytes))
	if err == nil {
		err = f.Sync()
	}
	return errors.Join(err, f.Close(), os.Remove(path))
}
