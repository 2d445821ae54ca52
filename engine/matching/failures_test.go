package matching

import (
	"reflect"
	"slices"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/kagzi/kagzi/engine"
)

func TestAFailedClaimIsTriedAgainAfterASecond(t *testing.T) {
	inBubble(t, func(t *testing.T, r fixture) {
		r.store.add("q", 1, 0)
		r.store.fail = 3
		d := r.join("w", []string{"q"})
		d.AddCredit(1)
		synctest.Wait()
		for range 100 {
			r.notify(engine.NotifyQueue, "q") // notifications do not shorten the pause
		}
		wantClaims(t, r, "at first", 1)
		began := time.Now()
		time.Sleep(time.Minute)
		wantClaims(t, r, "afterwards", 3)
		if d.given() != 1 {
			t.Fatalf("given %d runs, want 1", d.given())
		}
		if took := d.times[0].Sub(began); took != 3*time.Second {
			t.Errorf("the run came after %s, want 3 s", took)
		}
	})
}

func TestAFailingQueueDoesNotBlockOthers(t *testing.T) {
	inBubble(t, func(t *testing.T, r fixture) {
		r.store.bad = "bad"
		r.store.add("good", 250, 0)
		r.store.add("good", 1, 30*time.Second)
		d := r.join("w", []string{"bad", "good"})
		d.AddCredit(1000)
		began := time.Now()
		time.Sleep(time.Minute)
		synctest.Wait()
		if d.given() != 251 {
			t.Fatalf("given %d runs, want 251", d.given())
		}
		if took := d.times[249].Sub(began); took != 0 {
			t.Errorf("the backlog of the other queue took %s, want no time", took)
		}
		if late := d.times[250].Sub(began) - 30*time.Second; late > time.Millisecond {
			t.Errorf("what was due later came %s late, want it at its moment", late)
		}
		time.Sleep(time.Second / 2) // into the pause
		r.store.add("good", 1, 0)
		r.notify(engine.NotifyQueue, "good")
		if d.given() != 252 {
			t.Error("what is due during the pause of the queue that cannot be claimed from waits for its end")
		}
		if n := r.store.claimed(); n > 61*3 {
			t.Errorf("%d claims in a minute, want few", n)
		}
		r.store.mu.Lock()
		r.store.bad = ""
		r.store.waiting["bad"] = []time.Time{time.Now()}
		r.store.mu.Unlock()
		time.Sleep(2 * time.Second)
		synctest.Wait()
		if d.given() != 253 {
			t.Errorf("given %d runs when the queue could be claimed from again, want 253", d.given())
		}
	})
}

func TestAQueueComesFirstAgainAfterOneFailedClaim(t *testing.T) {
	inBubble(t, func(t *testing.T, r fixture) {
		r.store.add("preferred", 1, 0)
		r.store.add("other", 1000, 0)
		r.store.fail = 1
		d := r.join("w", []string{"preferred", "other"})
		began := time.Now()
		for range 1000 { // more waits in the other one than there are slots for
			d.AddCredit(1)
			time.Sleep(10 * time.Millisecond)
		}
		synctest.Wait()
		for i, task := range d.tasks {
			if took := d.times[i].Sub(began); task.Run.Queue == "preferred" && took > 7*time.Second {
				t.Errorf("the run of the preferred queue is given after %s, want some seconds after the failed claim",
					took)
			}
		}
		if n := len(r.store.waiting["preferred"]); n > 0 {
			t.Errorf("%d runs of the preferred queue wait on, while the other's are given", n)
		}
	})
}

func TestAQueueComesLastForAWhileAfterAFailedClaim(t *testing.T) {
	inBubble(t, func(t *testing.T, r fixture) {
		r.store.add("preferred", 9, 0)
		r.store.add("other", 9, 0)
		r.store.fail = 1
		d := r.join("w", []string{"preferred", "other"})
		d.AddCredit(1)
		for _, wait := range []time.Duration{2 * time.Second, 5 * time.Second} {
			// the pause is over, and then the while
			time.Sleep(wait)
			d.AddCredit(1)
		}
		synctest.Wait()
		if got, want := d.queues(), []string{"other", "other", "preferred"}; !slices.Equal(got, want) {
			t.Errorf("served from %q, want %q", got, want)
		}
	})
}

// notebook is an Observer that records its calls.
type notebook struct {
	mu     sync.Mutex
	runs   []int
	failed int
	took   time.Duration
	ended  []engine.Expired
}

func (n *notebook) RunsExpired(e engine.Expired) {
	n.mu.Lock()
	defer n.mu.Unlock()
	n.ended = append(n.ended, e)
}

func (n *notebook) Claimed(took time.Duration, runs int, err error) {
	n.mu.Lock()
	defer n.mu.Unlock()
	n.runs, n.took = append(n.runs, runs), n.took+took
	if err != nil {
		n.failed++
	}
}

func TestTheObserverIsCalledForEveryClaim(t *testing.T) {
	inBubble(t, func(t *testing.T, r fixture) {
		n := &notebook{}
		r.Observe(n)
		r.store.add("q", 3, 0)
		r.store.fail, r.store.during = 1, func() { time.Sleep(20 * time.Millisecond) }
		r.join("w", []string{"q"}).AddCredit(2)
		time.Sleep(time.Minute)
		n.mu.Lock()
		defer n.mu.Unlock()
		if !slices.Equal(n.runs, []int{0, 2}) || n.failed != 1 || n.took != 20*time.Millisecond {
			t.Errorf("heard of %v, %d failed, in %s, want 0 and 2, 1 failed, in 20ms", n.runs, n.failed, n.took)
		}
	})
}

func TestAnExpiredRunIsNotDelivered(t *testing.T) {
	inBubble(t, func(t *testing.T, r fixture) {
		n := &notebook{}
		r.Observe(n)
		r.store.add("late", 2, 0)
		r.store.add("q", 2, time.Second)
		r.store.deadline["late"], r.store.deadline["q"] = time.Now(), time.Now().Add(time.Second+time.Microsecond)
		r.store.ends = []engine.Expired{{Runs: maxClaim, TimedOut: make([]engine.ID, maxClaim)},
			{Runs: 1, Cancelled: make([]engine.ID, 1)}}
		d := r.join("w", []string{"late", "q"})
		d.AddCredit(2)
		time.Sleep(time.Second)
		synctest.Wait()
		if got := d.queues(); !slices.Equal(got, []string{"q", "q"}) {
			t.Errorf("runs of %v were given, want those whose time was not up, by the same credit", got)
		}
		if n.mu.Lock(); !reflect.DeepEqual(n.ended, r.store.ends) || r.store.ended != 2 {
			t.Errorf("heard of the end of %v in %d steps, want %v", n.ended, r.store.ended, r.store.ends)
		}
		n.mu.Unlock()
		r.store.add("late", 1, 0)
		d.AddCredit(1)
		r.notify(engine.NotifyQueue, "late") // their end fails: the coordinator comes
		if r.store.ended != 3 || len(r.store.handedBack()) > 0 || d.given() != 2 {
			t.Errorf("%d steps, %v handed back, %d given, want 3, none and 2", r.store.ended,
				r.store.handedBack(), d.given())
		}
	})
}
