package async

import "sync"

// maxIdle limits the idle goroutines, and with them the stacks that are kept: about 16 KiB each.
const maxIdle = 256

// Pool runs work in goroutines that it reuses. A new goroutine starts with a small stack, and a
// deep call has that copied to a larger one twice, frame by frame: a tenth of the processor time of
// a busy server. The zero value is ready for use.
type Pool struct {
	mu sync.Mutex
	// one channel per idle goroutine; the latest is reused first, since its stack is still in the processor's caches
	idle   []chan func()
	closed bool
}

// Go starts the work at once and does not wait for it.
func (p *Pool) Go(work func()) {
	p.mu.Lock()
	if n := len(p.idle); n > 0 {
		next := p.idle[n-1]
		p.idle = p.idle[:n-1]
		p.mu.Unlock()
		next <- work
		return
	}
	p.mu.Unlock()
	go p.run(work)
}

func (p *Pool) run(work func()) {
	next := make(chan func(), 1)
	for work != nil {
		work()
		if !p.park(next) {
			return
		}
		work = <-next
	}
}

// park registers an idle goroutine; false: the goroutine ends instead.
func (p *Pool) park(next chan func()) bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.closed || len(p.idle) == maxIdle {
		return false
	}
	p.idle = append(p.idle, next)
	return true
}

// Close ends the idle goroutines; busy ones end with their work. Go still works afterwards.
func (p *Pool) Close() {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.closed = true
	for _, next := range p.idle {
		close(next)
	}
	p.idle = nil
}
