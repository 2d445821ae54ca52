package view

import (
	"sync"
	"time"

	"github.com/gdamore/tcell/v2"
)

// frameEvery is the least time between two frames that nobody pressed a key for: 15 a second.
const frameEvery = time.Second / 15

// wakeKey is a key that no keyboard has. Queueing it makes the event loop run what was posted and draw a frame, without waiting for it:
// QueueUpdateDraw waits, which hangs for good when the loop has ended meanwhile (tview #1163).
const wakeKey = tcell.KeyF64

// posts is what other goroutines want the UI goroutine to do. Whatever comes within a frame is done together before it is drawn.
type posts struct {
	mu    sync.Mutex
	list  []func()
	woken time.Time     // when the loop was last woken and has not run yet
	kick  chan struct{} // of capacity one
}

func newPosts() *posts { return &posts{kick: make(chan struct{}, 1)} }

// add never blocks and may be called from any goroutine. After the program has ended it does nothing.
func (p *posts) add(f func()) {
	p.mu.Lock()
	p.list = append(p.list, f)
	p.mu.Unlock()
	select {
	case p.kick <- struct{}{}:
	default:
	}
}

// run does what was posted, on the UI goroutine, in the order in which it came.
func (p *posts) run() {
	p.mu.Lock()
	list := p.list
	p.list, p.woken = nil, time.Time{}
	p.mu.Unlock()
	for _, f := range list {
		f()
	}
}

// wakeAgain is after how long a wake-up counts as lost; the loop drops keys while text is being pasted.
const wakeAgain = time.Second

// pump wakes the loop when something was posted, at most once a frame, until stop is closed. A loop that is held up, as while an
// editor runs, is not woken twice, so that nothing piles up.
func (p *posts) pump(stop <-chan struct{}, every time.Duration, wake func()) {
	pause := time.NewTimer(every)
	defer pause.Stop()
	for {
		select {
		case <-stop:
			return
		case <-p.kick:
		}
		p.mu.Lock()
		now := time.Now()
		due := len(p.list) > 0 && now.Sub(p.woken) > wakeAgain
		if due {
			p.woken = now
		}
		p.mu.Unlock()
		if due {
			wake()
		}
		pause.Reset(every)
		select {
		case <-stop:
			return
		case <-pause.C:
		}
		p.rekick()
	}
}

// rekick looks again at what is still waiting, so that a wake-up that was lost is repeated.
func (p *posts) rekick() {
	p.mu.Lock()
	waiting := len(p.list) > 0
	p.mu.Unlock()
	if !waiting {
		return
	}
	select {
	case p.kick <- struct{}{}:
	default:
	}
}
