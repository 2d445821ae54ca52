package async

import "sync"

// maxIdle limits the idle goroutines, and so the memory of their stacks: about 16 KiB each.
const maxIdle = 256

// Pool runs work in goroutines that it reuses. The stack of a new goroutine is small and is copied
// twice during a deep call, which takes a tenth of a busy server's CPU time. The zero value is
// ready for use.
type Pool struct {
	mu sync.Mutex
	// one channel per idle goroutine; the latest is reused first, because its stack is still in the
	// CPU caches
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
