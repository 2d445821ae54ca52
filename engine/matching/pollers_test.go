package matching

import (
	"context"
	"fmt"
	"log/slog"
	"slices"
	"testing"
	"testing/synctest"
	"time"

	"github.com/kagzi/kagzi/engine"
)

func TestTheLongestWaitingPollerIsServedNext(t *testing.T) {
	inBubble(t, func(t *testing.T, r fixture) {
		var recorders []*recorder
		for i := range maxClaim + 50 { // more than one claim asks for
			d := r.join(fmt.Sprintf("w%d", i), []string{"q"})
			d.AddCredit(2)
			recorders = append(recorders, d)
		}
		synctest.Wait()
		for n := range 2 * len(recorders) {
			r.store.add("q", 1, 0)
			r.notify(engine.NotifyQueue, "q")
			if d := recorders[n%len(recorders)]; d.given() != n/len(recorders)+1 {
				t.Fatalf("after %d runs worker %s has been given %d", n+1, d.request.Worker.ID, d.given())
			}
		}
	})
}

func TestATaskForAPollerThatLeftIsReleased(t *testing.T) {
	inBubble(t, func(t *testing.T, r fixture) {
		r.store.add("q", 2, 0)
		left, gone, stays := r.join("left", []string{"q"}), r.join("gone", []string{"q"}),
			r.join("stays", []string{"q"})
		gone.gone = true
		r.store.during = func() { left.Leave() }
		group := left.group
		group.mu.Lock()
		group.addCreditLocked(left.Poller, 1)
		group.addCreditLocked(gone.Poller, 1)
		group.mu.Unlock()
		group.wake()
		synctest.Wait()
		if n := len(r.store.released); n != 2 {
			t.Errorf("%d runs were released, want the one of who left and the one of who refused", n)
		}
		if left.given()+gone.given()+stays.given() != 0 {
			t.Error("somebody was given a run")
		}
	})
}

func TestAClaimOfUnknownOutcomeIsReleased(t *testing.T) {
	inBubble(t, func(t *testing.T, r fixture) {
		before := engine.Lease{RunID: engine.NewID(r.store.Now()), Token: engine.NewToken()}
		r.store.held["w"] = []engine.Held{{Lease: before}} // in the worker's hands, and to stay there
		r.store.add("q", 2, 0)
		r.store.mute, r.store.deaf = 1, 1
		d := r.join("w", []string{"q"})
		d.AddCredit(2)
		synctest.Wait()
		if released := r.store.handedBack(); len(released) != 0 || d.given() != 0 {
			t.Fatalf("released %v and given %d at once, want neither before the store answers", released, d.given())
		}
		time.Sleep(2*time.Second + time.Millisecond) // the pause, a question that fails, and another pause
		synctest.Wait()
		held, _ := r.store.HeldBy(t.Context(), "w")
		released := r.store.handedBack()
		if len(released) != 2 || !slices.Contains(released, held[1].Lease.RunID) ||
			!slices.Contains(released, held[2].Lease.RunID) {
			t.Fatalf("released %v, want what nobody was given, %v, and each once", released, held[1:])
		}
		wantClaims(t, r, "before and after the question that failed", 2)
		r.store.add("q", 1, 0)
		if r.notify(engine.NotifyQueue, "q"); d.given() != 1 {
			t.Fatalf("given %d runs, want the one that came afterwards", d.given())
		}
	})
}

func TestUnknownClaimsAreReleasedBeforeTheirGroupEnds(t *testing.T) {
	for wait, want := range map[time.Duration]int{
		retryAfter / 2: 0, // the store is left alone: a heartbeat frees the run
		2 * retryAfter: 1,
	} {
		inBubble(t, func(t *testing.T, r fixture) {
			r.store.add("q", 1, 0)
			r.store.mute = 1
			d, other := r.join("w", []string{"q"}), r.join("without credit", []string{"q"})
			r.store.during = func() { d.Leave() }
			d.AddCredit(1)
			time.Sleep(wait)
			if n := len(r.store.handedBack()); n != 0 {
				t.Errorf("%d runs are handed back while nobody has credit", n)
			}
			other.Leave()
			synctest.Wait()
			if n := len(r.store.handedBack()); n != want {
				t.Errorf("%d runs are handed back when the last poller is left %s after the claim that failed, want %d",
					n, wait, want)
			}
		})
	}
}

func TestRunWaitsForTheClaimInProgress(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		store := newFakeStore()
		r := fixture{New(store, slog.New(slog.DiscardHandler)), store}
		ctx, stop := context.WithCancel(t.Context())
		over := make(chan struct{})
		go func() {
			defer close(over)
			_ = r.Run(ctx)
		}()
		ended := func() bool {
			synctest.Wait()
			select {
			case <-over:
				return true
			default:
				return false
			}
		}
		d := r.join("w", []string{"q"})
		store.add("q", 1, 0)
		answer := make(chan struct{})
		store.during = func() { <-answer }
		d.AddCredit(1)
		synctest.Wait()
		stop()
		d.Leave()
		if ended() {
			t.Error("Run ended while a claim was under way, whose runs nobody would have handed back")
		}
		close(answer)
		if !ended() || len(store.handedBack()) != 1 {
			t.Errorf("Run ended: %t, with %d runs handed back, want the one that was claimed for who had left", ended(),
				len(store.handedBack()))
		}
	})
}

func TestAnEmptyClaimGivesCreditBackAfterAPollerLeft(t *testing.T) {
	inBubble(t, func(t *testing.T, r fixture) {
		left, stays := r.join("left", []string{"q"}), r.join("stays", []string{"q"})
		left.AddCredit(1)
		synctest.Wait()
		r.store.during = func() { left.Leave() }
		stays.AddCredit(1)
		r.notify(engine.NotifyQueue, "q") // a claim for both
		r.store.add("q", 2, 0)
		r.notify(engine.NotifyQueue, "q")
		if left.given() != 0 || stays.given() != 1 {
			t.Errorf("who left was given %d runs and who stayed %d, want 0 and 1", left.given(), stays.given())
		}
	})
}

func TestTheLastPollerCanLeaveDuringItsClaim(t *testing.T) {
	inBubble(t, func(t *testing.T, r fixture) {
		r.store.add("q", 1, 0)
		d := r.join("w", []string{"q"})
		r.store.during = func() { d.Leave() }
		d.AddCredit(1)
		synctest.Wait()
		if d.given() != 0 || len(r.store.released) != 1 {
			t.Errorf("given %d, released %d, want 0 and 1", d.given(), len(r.store.released))
		}
		again := r.join("w", []string{"q"})
		again.AddCredit(1)
		r.store.add("q", 1, 0)
		r.notify(engine.NotifyQueue, "q")
		if again.given() != 1 {
			t.Error("a worker that comes back gets nothing")
		}
	})
}

func TestANotificationDuringAClaimIsNotLost(t *testing.T) {
	inBubble(t, func(t *testing.T, r fixture) {
		d := r.join("w", []string{"q"})
		d.AddCredit(1)
		synctest.Wait()
		r.store.during = func() {
			// The claim has read the queue already, as far as anybody knows.
			r.Notify(engine.Notification{Kind: engine.NotifyQueue, Namespace: "default", Name: "q"})
		}
		r.store.claimed()
		r.notify(engine.NotifyQueue, "q")
		wantClaims(t, r, "a notification within a claim", 2)
	})
}

func TestASlotThatIsFreedDuringAClaimIsNotLost(t *testing.T) {
	for name, c := range map[string]struct{ limit, claims int }{
		"with a limit":   {1, 2}, // what the claim counted may be the lease that has just ended
		"without limits": {0, 1},
	} {
		inBubble(t, func(t *testing.T, r fixture) {
			d := r.join("w", []string{"q"}, func(request *Request) { request.Worker.QueueLimit = c.limit })
			d.AddCredit(1)
			synctest.Wait()
			r.store.during = func() {
				r.Notify(engine.Notification{Kind: engine.NotifySlot, Namespace: "default", Name: "q"})
			}
			r.store.claimed()
			r.notify(engine.NotifyQueue, "q")
			wantClaims(t, r, "a freed slot within a claim "+name, c.claims)
		})
	}
}

func TestLookIsThrottledAndNeedsCredit(t *testing.T) {
	inBubble(t, func(t *testing.T, r fixture) {
		var recorders []*recorder
		for i := range 20 {
			d := r.join(fmt.Sprintf("w%d", i), []string{"q"})
			d.AddCredit(1)
			recorders = append(recorders, d)
		}
		synctest.Wait()
		r.store.claimed()
		for range 12 { // a minute of heartbeats, two to a lookEvery
			for _, d := range recorders {
				d.Look()
				d.Look()
			}
			synctest.Wait()
			time.Sleep(lookEvery / 2)
		}
		wantClaims(t, r, "a minute of heartbeats of twenty workers", 6)

		r.store.add("q", 1, 0) // whose notification is lost
		recorders[3].Look()
		synctest.Wait()
		given := 0
		for _, d := range recorders {
			given += d.given()
		}
		if given != 1 {
			t.Errorf("a run whose notification was lost is given %d times after a look, want once", given)
		}
	})
}
