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

func TestAHundredWaitingPollersShareOneClaim(t *testing.T) {
	inBubble(t, func(t *testing.T, r fixture) {
		var recorders []*recorder
		for i := range 100 {
			d := r.join(fmt.Sprintf("w%d", i), []string{"q"})
			d.AddCredit(1)
			recorders = append(recorders, d)
		}
		synctest.Wait()
		r.store.claimed()

		r.store.add("q", 1, 0)
		r.notify(engine.NotifyQueue, "q")
		if n := len(r.store.claims); n != 1 {
			t.Errorf("one run for a hundred pollers took %d claims, want 1", n)
		}
		if n := len(r.store.claims[0].Slots); n != 100 {
			t.Errorf("the claim had %d slots, want 100", n)
		}
		given := 0
		for _, d := range recorders {
			given += d.given()
		}
		if given != 1 {
			t.Errorf("the run was given %d times, want once", given)
		}
	})
}

func TestANotificationOfClaimedRunsCausesNoClaim(t *testing.T) {
	inBubble(t, func(t *testing.T, r fixture) {
		r.join("w", []string{"q"}).AddCredit(1)
		synctest.Wait()
		r.store.claimed()
		r.Notify(engine.Notification{Kind: engine.NotifyQueue, Namespace: "default", Name: "q", Claimed: true})
		wantClaims(t, r, "when the runs of a notification are taken", 0)
		r.notify(engine.NotifyQueue, "q")
		wantClaims(t, r, "when they are not", 1)
	})
}

func TestWithoutCreditThereIsNoClaim(t *testing.T) {
	inBubble(t, func(t *testing.T, r fixture) {
		d := r.join("w", []string{"q"})
		r.store.add("q", 3, 0)
		r.notify(engine.NotifyQueue, "q")
		r.notify(engine.NotifyAll, "")
		d.Look()
		time.Sleep(time.Hour)
		wantClaims(t, r, "without credit", 0)
		d.AddCredit(1)
		wantClaims(t, r, "with credit", 1)
		r.notify(engine.NotifyQueue, "q")
		wantClaims(t, r, "when the credit is spent", 0)
		if d.given() != 1 {
			t.Errorf("given %d runs for a credit of 1", d.given())
		}
	})
}

func TestAnIdleHourCostsNoQuery(t *testing.T) {
	inBubble(t, func(t *testing.T, r fixture) {
		for i := range 10 {
			r.join(fmt.Sprintf("w%d", i), []string{"q", "p"}).AddCredit(100)
		}
		synctest.Wait()
		r.store.claimed()
		time.Sleep(time.Hour)
		wantClaims(t, r, "an hour in which nothing was due", 0)
	})
}

func TestANotificationClaimsAtOnce(t *testing.T) {
	inBubble(t, func(t *testing.T, r fixture) {
		d := r.join("w", []string{"q"})
		d.AddCredit(5)
		time.Sleep(10 * time.Minute)
		notified := time.Now()
		r.store.add("q", 1, 0)
		r.notify(engine.NotifyQueue, "q")
		if d.given() != 1 || !d.times[0].Equal(notified) {
			t.Fatalf("given %d runs, at %v, want one at %s", d.given(), d.times, notified)
		}
	})
}

func TestANotificationOfAnotherQueueOrNamespaceIsIgnored(t *testing.T) {
	inBubble(t, func(t *testing.T, r fixture) {
		r.join("w", []string{"q"}).AddCredit(1)
		synctest.Wait()
		r.store.claimed()
		r.notify(engine.NotifyQueue, "other")
		r.Notify(engine.Notification{Kind: engine.NotifyQueue, Namespace: "other", Name: "q"})
		r.notify(engine.NotifyRun, "q")
		r.notify(engine.NotifyWorker, "w")
		r.notify(engine.NotifyTimer, "")
		wantClaims(t, r, "notifications about other things", 0)
		r.notify(engine.NotifyAll, "")
		wantClaims(t, r, "a notification about everything", 1)
	})
}

func TestTheNextDueMomentIsMetExactly(t *testing.T) {
	inBubble(t, func(t *testing.T, r fixture) {
		r.store.add("q", 1, 1234*time.Millisecond)
		r.store.add("q", 1, time.Hour)
		began := time.Now()
		d := r.join("w", []string{"q"})
		d.AddCredit(2)
		wantClaims(t, r, "at the start", 1)
		time.Sleep(2 * time.Second)
		wantClaims(t, r, "when the first was due", 1)
		time.Sleep(2 * time.Hour)
		wantClaims(t, r, "when the second was due", 1)
		if d.given() != 2 {
			t.Fatalf("given %d runs, want 2", d.given())
		}
		for i, want := range []time.Duration{1234 * time.Millisecond, time.Hour} {
			if late := d.times[i].Sub(began) - want; late < 0 || late > time.Microsecond {
				t.Errorf("run %d came %s late", i, late)
			}
		}
	})
}

func TestTheEarliestOfSeveralQueuesIsMetExactly(t *testing.T) {
	for _, queues := range [][]string{{"soon", "later", "never"}, {"later", "soon", "never"},
		{"never", "later", "soon"}} {
		inBubble(t, func(t *testing.T, r fixture) {
			r.store.add("soon", 1, time.Minute)
			r.store.add("later", 1, time.Hour)
			began := time.Now()
			d := r.join("w", queues)
			d.AddCredit(3)
			time.Sleep(2 * time.Hour)
			synctest.Wait()
			if d.given() != 2 {
				t.Fatalf("given %d runs of %q, want 2", d.given(), queues)
			}
			for i, want := range []time.Duration{time.Minute, time.Hour} {
				if late := d.times[i].Sub(began) - want; late < 0 || late > time.Microsecond {
					t.Errorf("run %d of %q came %s late", i, queues, late)
				}
			}
		})
	}
}

func TestNoTimerRunsForAGroupWithoutCredit(t *testing.T) {
	inBubble(t, func(t *testing.T, r fixture) {
		d := r.join("w", []string{"q"})
		d.AddCredit(1)
		r.store.add("q", 1, 0)
		r.store.add("q", 1, time.Minute)
		r.notify(engine.NotifyQueue, "q")
		r.store.claimed()
		time.Sleep(time.Hour)
		wantClaims(t, r, "a run became due that nobody can take", 0)
		d.AddCredit(1)
		wantClaims(t, r, "somebody can", 1)
	})
}

func TestQueuesAreServedInOrderOfPreference(t *testing.T) {
	inBubble(t, func(t *testing.T, r fixture) {
		for _, q := range []string{"low", "high", "middle"} {
			r.store.add(q, 2, 0)
		}
		d := r.join("w", []string{"high", "middle", "low"})
		for range 6 {
			d.AddCredit(1)
			synctest.Wait()
		}
		want := []string{"high", "high", "middle", "middle", "low", "low"}
		if got := d.queues(); !slices.Equal(got, want) {
			t.Errorf("served from %v, want %v", got, want)
		}
		d.AddCredit(1)
		synctest.Wait()
		r.store.add("low", 1, 0)
		r.notify(engine.NotifyQueue, "low")
		if d.given() != 7 {
			t.Error("a run of the last queue is not given although the others are empty")
		}
	})
}

func TestABacklogIsSpreadEvenly(t *testing.T) {
	inBubble(t, func(t *testing.T, r fixture) {
		r.store.add("q", 200, 0)
		var recorders []*recorder
		for i := range 4 {
			recorders = append(recorders, r.join(fmt.Sprintf("w%d", i), []string{"q"}))
		}
		// All the credit is there before the first claim.
		group := recorders[0].group
		group.mu.Lock()
		for _, d := range recorders {
			group.addCreditLocked(d.Poller, 100)
		}
		group.mu.Unlock()
		group.wake()
		synctest.Wait()
		for i, d := range recorders {
			if d.given() != 50 {
				t.Errorf("worker %d got %d of 200 runs, want 50", i, d.given())
			}
		}
		for _, c := range r.store.claims {
			if len(c.Slots) > maxClaim {
				t.Errorf("a claim of %d slots, want at most %d", len(c.Slots), maxClaim)
			}
		}
	})
}

func TestSingleRunsGoRoundTheWorkers(t *testing.T) {
	inBubble(t, func(t *testing.T, r fixture) {
		busy := r.join("busy", []string{"q"}) // no credit
		var recorders []*recorder
		for i := range 3 {
			d := r.join(fmt.Sprintf("w%d", i), []string{"q"})
			d.AddCredit(10)
			recorders = append(recorders, d)
		}
		synctest.Wait()
		for range 9 {
			r.store.add("q", 1, 0)
			r.notify(engine.NotifyQueue, "q")
		}
		for i, d := range recorders {
			if d.given() != 3 {
				t.Errorf("worker %d got %d of 9 runs, want 3", i, d.given())
			}
		}
		if busy.given() != 0 {
			t.Error("a worker without credit got a run")
		}
	})
}

func TestALimitedQueueIsLookedAtWhenASlotIsFree(t *testing.T) {
	inBubble(t, func(t *testing.T, r fixture) {
		r.store.limits["q"] = 1
		r.store.add("q", 3, 0)
		d := r.join("w", []string{"q"})
		d.AddCredit(5)
		synctest.Wait()
		if d.given() != 1 {
			t.Fatalf("given %d runs, want 1: the limit", d.given())
		}
		r.store.claimed()
		time.Sleep(time.Hour)
		wantClaims(t, r, "while the limit holds", 0)

		r.store.running["q"] = 0
		r.notify(engine.NotifySlot, "q")
		if d.given() != 2 {
			t.Errorf("given %d runs after a slot was freed, want 2", d.given())
		}
	})
}

func TestAFreeSlotWithoutALimitCausesNoClaim(t *testing.T) {
	inBubble(t, func(t *testing.T, r fixture) {
		r.join("w", []string{"q"}).AddCredit(5)
		r.join("limited", []string{"q"}, func(request *Request) { request.Worker.QueueLimit = 9 }).AddCredit(5)
		synctest.Wait()
		r.store.claimed()
		r.notify(engine.NotifySlot, "q")
		wantClaims(t, r, "a slot of a queue without limit, or with slots to spare", 0)
	})
}

func TestOfflineWorkersLoseTheirCreditAndOthersAreServed(t *testing.T) {
	inBubble(t, func(t *testing.T, r fixture) {
		r.store.offline["dead"] = true
		r.store.add("q", 2, 0)
		dead, alive := r.join("dead", []string{"q"}), r.join("alive", []string{"q"})
		dead.AddCredit(3)
		alive.AddCredit(2)
		synctest.Wait()
		if dead.given() != 0 || dead.refused != 1 {
			t.Errorf("the offline worker: %d runs, refused %d times, want 0 and 1", dead.given(), dead.refused)
		}
		if alive.given() != 2 {
			t.Errorf("the other got %d runs, want 2", alive.given())
		}
		r.store.claimed()
		dead.AddCredit(1)
		r.store.add("q", 1, 0)
		r.notify(engine.NotifyQueue, "q")
		wantClaims(t, r, "for a worker that was refused", 0)
		dead.Leave()
		alive.Leave()
		if len(r.groups) != 0 || len(r.queues) != 0 {
			t.Errorf("%d groups and %d queues are left, want none", len(r.groups), len(r.queues))
		}
	})
}

func TestARunThatAnOfflineWorkerDidNotGetGoesToTheNext(t *testing.T) {
	inBubble(t, func(t *testing.T, r fixture) {
		r.store.offline["dead"] = true
		r.store.add("q", 1, 0)
		dead, alive := r.join("dead", []string{"q"}), r.join("alive", []string{"q"})
		dead.AddCredit(3)
		synctest.Wait()
		alive.AddCredit(1) // no further notification
		synctest.Wait()
		if alive.given() != 1 {
			t.Errorf("given %d runs, want the one that the offline worker could not have", alive.given())
		}
	})
}

func TestPollersLeaveAGroupWhileOthersStay(t *testing.T) {
	inBubble(t, func(t *testing.T, r fixture) {
		arrives := func(d *recorder, kind engine.NotificationKind, when string) {
			t.Helper()
			before := d.given()
			d.AddCredit(1)
			synctest.Wait()
			r.store.add("q", 1, 0)
			r.notify(kind, "q")
			if d.given() != before+1 {
				t.Errorf("%s: given %d runs, want 1", when, d.given()-before)
			}
		}
		first, stays := r.join("first", []string{"q"}), r.join("stays", []string{"q"})
		first.Leave()
		arrives(stays, engine.NotifyQueue, "after another has left")
		stays.Leave()
		next := r.join("next", []string{"q"})
		stays.Leave() // as a session that ends after its worker's goodbye
		arrives(next, engine.NotifyAll, "after one who had left before left again")
		if beside := r.join("beside", []string{"q"}); beside.group != next.group {
			t.Error("two alike sit at two groups")
		}
	})
}

func TestWorkersWithDifferentRequestsAreInDifferentGroups(t *testing.T) {
	inBubble(t, func(t *testing.T, r fixture) {
		base := r.join("a", []string{"q"})
		same := r.join("b", []string{"q"})
		if base.group != same.group {
			t.Error("two alike sit at two groups")
		}
		for name, change := range map[string]func(*Request){
			"another namespace":        func(r *Request) { r.Worker.Namespace = "other" },
			"other types":              func(r *Request) { r.Types = []string{"u"} },
			"more types":               func(r *Request) { r.Types = []string{"t", "u"} },
			"a label":                  func(r *Request) { r.Worker.Labels = map[string]string{"k": "v"} },
			"a capability":             func(r *Request) { r.Worker.Capabilities = map[string]string{"k": "w"} },
			"a limit of the queue":     func(r *Request) { r.Worker.QueueLimit = 1 },
			"a limit of a type":        func(r *Request) { r.Worker.TypeLimits = map[string]int{"t": 1} },
			"another limit of a type":  func(r *Request) { r.Worker.TypeLimits = map[string]int{"t": 2} },
			"a queue more":             func(r *Request) { r.Queues = []string{"q", "p"} },
			"another order of queues":  func(r *Request) { r.Queues = []string{"p", "q"} },
			"names that look like two": func(r *Request) { r.Queues = []string{`q""p`} },
			"a queue as its type":      func(r *Request) { r.Queues, r.Types = []string{"q", "t"}, nil },
		} {
			if d := r.join("c", []string{"q"}, change); d.group == base.group {
				t.Errorf("%s sits at the same group", name)
			}
		}
		sorted := r.join("d", []string{"q"}, func(r *Request) { r.Types = []string{"t", "u"} })
		turned := r.join("e", []string{"q"}, func(r *Request) { r.Types = []string{"u", "t"} })
		if sorted.group != turned.group {
			t.Error("the order of types decides over the group")
		}
		labels := map[string]string{}
		for i := range 20 {
			labels[fmt.Sprint("k", i)] = "v"
		}
		labelled := func(r *Request) { r.Worker.Labels = labels }
		if r.join("f", []string{"q"}, labelled).group != r.join("g", []string{"q"}, labelled).group {
			t.Error("the order of labels decides over the group")
		}
	})
}

func TestAClaimHasTheParametersOfItsWorkers(t *testing.T) {
	inBubble(t, func(t *testing.T, r fixture) {
		d := r.join("w", []string{"q"}, func(r *Request) {
			r.Worker.Labels = map[string]string{"zone": "a"}
			r.Worker.QueueLimit = 7
			r.Worker.TypeLimits = map[string]int{"t": 3}
		})
		d.AddCredit(1)
		synctest.Wait()
		p := r.store.claims[0]
		if p.Namespace != "default" || p.Queue != "q" || !slices.Equal(p.Types, []string{"t"}) || p.QueueLimit != 7 ||
			p.TypeLimits["t"] != 3 || !slices.Equal(p.Offers, []engine.Offer{{Key: "zone", Value: "a"}}) ||
			p.HistoryBytes != engine.HistoryBytes || !p.Now.Equal(r.store.Now()) {
			t.Errorf("the claim was %+v", p)
		}
		if p.Slots[0].WorkerID != "w" || p.Slots[0].Token.IsZero() {
			t.Errorf("the slot was %+v", p.Slots[0])
		}
	})
}

func TestPollersThatJoinBeforeRunAreServed(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		store := newFakeStore()
		store.add("q", 1, 0)
		r := fixture{New(store, slog.New(slog.DiscardHandler)), store}
		d := r.join("w", []string{"q"})
		d.AddCredit(1)
		synctest.Wait()
		if len(store.claims) != 0 || r.Offer(starting(r, "q")) != nil {
			t.Error("somebody claims or takes a run although nobody runs the matcher")
		}
		ctx, stop := context.WithCancel(t.Context())
		done := make(chan error, 1)
		go func() { done <- r.Run(ctx) }()
		synctest.Wait()
		if d.given() != 1 {
			t.Error("the poller gets nothing")
		}
		d.AddCredit(1)
		synctest.Wait()
		start := starting(r, "q")
		taken := r.Offer(start)
		d.Leave()
		stop()
		<-done
		taken.Commit(task(start, taken))
		if synctest.Wait(); len(store.handedBack()) != 0 {
			t.Error("a matcher that has stopped writes")
		}
		late := r.join("late", []string{"q"})
		late.AddCredit(1)
		store.add("q", 1, 0)
		r.notify(engine.NotifyQueue, "q")
		if late.given() != 0 || r.Offer(starting(r, "q")) != nil {
			t.Error("a matcher that has stopped gives out runs")
		}
		late.Leave()
	})
}
