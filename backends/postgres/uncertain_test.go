package postgres

import (
	"context"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/kagzi/kagzi/backends/postgres/pgtest"
	"github.com/kagzi/kagzi/backends/storetest"
	"github.com/kagzi/kagzi/engine"
)

// uncertain is a store that reads the database's clock again whenever it is asked for the time, as
// different servers do. Some answers are up to 50 ms late: the second, by which a case sets its
// first timer, but not the third, by which the case judges it.
type uncertain struct {
	*Store
	mu    sync.Mutex
	reads int
}

var lateness = []time.Duration{0, 50 * time.Millisecond, 0, 25 * time.Millisecond, 0, 5 * time.Millisecond}

func openUncertain(tb testing.TB) engine.Store {
	u := &uncertain{Store: openIn(tb, pgtest.Lend(tb, Migrate)).(*Store)}
	measure := u.clock.measure
	u.clock.measure = func(ctx context.Context) (time.Time, error) {
		now, err := measure(ctx)
		time.Sleep(lateness[u.reads%len(lateness)])
		return now, err
	}
	return u
}

func (u *uncertain) Now() time.Time {
	u.mu.Lock()
	defer u.mu.Unlock()
	u.clock.reading.Store(nil) // as another server would
	if err := u.clock.read(context.Background()); err != nil {
		panic(err)
	}
	u.reads++
	return u.clock.now()
}

func TestStoreWithLateReadingsOfTheClock(t *testing.T) { storetest.Run(t, openUncertain, "clock") }

// TestTheUncertaintyOfTheClock sets timers by any reading and judges them by any later one.
func TestTheUncertaintyOfTheClock(t *testing.T) {
	for _, kept := range []bool{true, false} {
		synctest.Test(t, func(t *testing.T) {
			var late time.Duration
			c := clock{measure: func(context.Context) (time.Time, error) {
				now := time.Now().Add(time.Hour)
				time.Sleep(late)
				return now, nil
			}}
			var timers []time.Time // by the database's clock
			var set []time.Time    // by this machine's clock
			const d = time.Second
			for i := range 60 {
				if late = lateness[i%len(lateness)] * time.Duration(i%7) / 7; !kept {
					c.reading.Store(nil)
				}
				if err := c.read(t.Context()); err != nil {
					t.Fatal(err)
				}
				now := c.now()
				for j := range timers {
					if passed := time.Since(set[j]); !now.Before(timers[j]) && passed < d {
						t.Fatalf("a timer of %s is over after %s", d, passed)
					}
				}
				timers, set = append(timers, now.Add(c.uncertainty()+d)), append(set, time.Now())
				if ahead := time.Until(now) - time.Hour; ahead > 0 || ahead < -c.uncertainty() {
					t.Fatalf("the clock is %s ahead of the database's, want at most %s behind it", ahead,
						c.uncertainty())
				}
				time.Sleep(37 * time.Millisecond)
			}
		})
	}
}

// TestTimerMarginOfCallInProgress reads the clock again between a call's Now and
// its Uncertainty.
func TestTimerMarginOfCallInProgress(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		late := 50 * time.Millisecond
		c := clock{measure: func(context.Context) (time.Time, error) {
			now := time.Now()
			time.Sleep(late)
			return now, nil
		}}
		if err := c.read(t.Context()); err != nil {
			t.Fatal(err)
		}
		now, begun := c.now(), time.Now()
		late = 0
		if err := c.read(t.Context()); err != nil {
			t.Fatal(err)
		}
		if sure := now.Add(c.uncertainty()); sure.Before(begun) {
			t.Errorf("the timer is set %s early", begun.Sub(sure))
		}
	})
}
