package simulate

import (
	"bytes"
	"fmt"
	"io"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"
)

// progress prints how many seeds are done during a long run. go test shows it with -v; a test
// binary always.
type progress struct {
	of           int // number of seeds
	done, failed atomic.Int64
}

// progressPeriod is long enough that a usual run prints nothing.
const progressPeriod = 5 * time.Second

// seed counts a finished seed.
func (p *progress) seed(good bool) {
	p.done.Add(1)
	if !good {
		p.failed.Add(1)
	}
}

// tell prints a line every few seconds until the returned function is called.
func (p *progress) tell(w io.Writer) (stop func()) {
	began, enough, over := time.Now(), make(chan struct{}), make(chan struct{})
	go func() {
		defer close(over)
		tick := time.NewTicker(progressPeriod)
		defer tick.Stop()
		for {
			select {
			case <-tick.C:
				fmt.Fprintln(w, p.line(time.Since(began)))
			case <-enough:
				return
			}
		}
	}()
	return func() {
		close(enough)
		<-over
	}
}

func (p *progress) line(took time.Duration) string {
	done := p.done.Load()
	rate := float64(done) / took.Seconds()
	line := fmt.Sprintf("%d of %d seeds in %s, %.1f a second, %d failed", done, p.of, took.Round(time.Second), rate,
		p.failed.Load())
	if done == 0 {
		return line
	}
	left := time.Duration(float64(p.of-int(done)) / rate * float64(time.Second))
	return line + ", " + left.Round(time.Second).String() + " to go"
}

func TestProgressIsToldEveryFewSeconds(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var told bytes.Buffer
		p := &progress{of: 100}
		stop := p.tell(&told)
		time.Sleep(6 * time.Second)
		for n := range 20 {
			p.seed(n != 7)
		}
		time.Sleep(6 * time.Second)
		stop()
		time.Sleep(time.Minute)
		const want = "0 of 100 seeds in 5s, 0.0 a second, 0 failed\n20 of 100 seeds in 10s, 2.0 a second, 1 failed, 40s to go\n"
		if got := told.String(); got != want {
			t.Errorf("told:\n%swant:\n%s", got, want)
		}
	})
}
