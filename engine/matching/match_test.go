package matching

import (
	"errors"
	"fmt"
	"slices"
	"testing"
	"testing/synctest"
	"time"

	"github.com/kagzi/kagzi/engine"
)

// starting returns a start of a run in a queue.
func starting(r fixture, queue string) *engine.StartRun {
	now := r.store.Now()
	return &engine.StartRun{Run: engine.Run{ID: engine.NewID(now), Namespace: "default", Queue: queue, Type: "t",
		CreatedAt: now, AvailableAt: now}}
}

// task returns the task of a handed-off run.
func task(start *engine.StartRun, k engine.Match) engine.Task {
	return engine.Task{Run: start.Run, Lease: engine.Lease{
		Namespace: start.Namespace, RunID: start.ID, Token: k.Slot().Token}}
}

// nobodyTakes fails the test if Offer returns a match.
func nobodyTakes(t *testing.T, r fixture, why string, start *engine.StartRun) {
	t.Helper()
	if r.Waits(start) {
		t.Errorf("%s: somebody waits for the run", why)
	}
	if k := r.Offer(start); k != nil {
		t.Errorf("%s: %s takes the run", why, k.Slot().WorkerID)
		k.Abort()
	}
}

func TestAHandOffNeedsNoClaim(t *testing.T) {
	inBubble(t, func(t *testing.T, r fixture) {
		n := &notebook{}
		var recorders []*recorder
		for i := range 3 {
			d := r.join(fmt.Sprintf("w%d", i), []string{"q"})
			d.AddCredit(3)
			recorders = append(recorders, d)
		}
		synctest.Wait()
		r.store.claimed()
		r.Observe(n)
		for runs := range 9 {
			for i, d := range recorders {
				if runs == 6 && d.given() != 2 {
					t.Errorf("worker %d got %d of 6 runs, want 2", i, d.given())
				}
			}
			start := starting(r, "q")
			if !r.Waits(start) {
				t.Error("nobody waits for the run, though there is credit")
			}
			k := r.Offer(start)
			if k == nil {
				t.Fatal("nobody takes the run, though there is credit")
			}
			if !k.Now().Equal(r.store.Now()) || len(k.Types()) != 1 || k.Slot().Token.IsZero() {
				t.Errorf("taken at %s of %v under %v", k.Now(), k.Types(), k.Slot().Token)
			}
			k.Commit(task(start, k))
		}
		nobodyTakes(t, r, "the credit is spent", starting(r, "q"))
		wantClaims(t, r, "for runs that were taken", 0)
		if released := r.store.handedBack(); len(released) > 0 {
			t.Errorf("%v are handed back although they were given", released)
		}
		if !slices.Equal(n.runs, []int{1, 1, 1, 1, 1, 1, 1, 1, 1}) || n.took != 0 {
			t.Errorf("heard of %v, in %s, want nine times one, in no time", n.runs, n.took)
		}
	})
}

func TestGroupsTakeRunsInTurn(t *testing.T) {
	inBubble(t, func(t *testing.T, r fixture) {
		var recorders []*recorder
		for i := range 3 {
			d := r.join(fmt.Sprintf("w%d", i), []string{"q"}, func(r *Request) {
				r.Worker.Labels = map[string]string{"host": fmt.Sprint(i)}
			})
			d.AddCredit(9)
			recorders = append(recorders, d)
		}
		synctest.Wait()
		for range 5 {
			start := starting(r, "q")
			start.Requirements = map[string]string{"host": "1"} // others are passed over
			k := r.Offer(start)
			if k == nil {
				t.Fatal("nobody takes a run whose requirements somebody meets")
			}
			k.Commit(task(start, k))
		}
		if recorders[1].given() != 5 {
			t.Errorf("who meets the requirements got %d runs, want 5", recorders[1].given())
		}
		for range 6 {
			start := starting(r, "q")
			k := r.Offer(start)
			k.Commit(task(start, k))
		}
		for i, want := range []int{2, 7, 2} {
			if got := recorders[i].given(); got != want {
				t.Errorf("worker %d got %d runs, want %d", i, got, want)
			}
		}
	})
}

func TestNoHandOffOfARunThatAClaimWouldNotReturn(t *testing.T) {
	for why, c := range map[string]struct {
		sit   func(*Request)
		start func(*engine.StartRun)
	}{
		"another namespace":    {start: func(s *engine.StartRun) { s.Namespace = "other" }},
		"another queue":        {start: func(s *engine.StartRun) { s.Queue = "p" }},
		"another type":         {start: func(s *engine.StartRun) { s.Type = "u" }},
		"a requirement":        {start: func(s *engine.StartRun) { s.Requirements = map[string]string{"gpu": ""} }},
		"it is not due":        {start: func(s *engine.StartRun) { s.AvailableAt = s.CreatedAt.Add(time.Second) }},
		"its time is up":       {start: func(s *engine.StartRun) { s.DeadlineAt = s.CreatedAt }},
		"a limit of the queue": {sit: func(r *Request) { r.Worker.QueueLimit = 100 }},
		"a limit of some type": {sit: func(r *Request) { r.Worker.TypeLimits = map[string]int{"u": 100} }},
	} {
		inBubble(t, func(t *testing.T, r fixture) {
			var change []func(*Request)
			if c.sit != nil {
				change = append(change, c.sit)
			}
			d := r.join("w", []string{"q"}, change...)
			d.AddCredit(1)
			synctest.Wait()
			start := starting(r, "q")
			if c.start != nil {
				c.start(start)
			}
			nobodyTakes(t, r, why, start)
		})
	}
}

func TestNoHandOffWhileAPreferredQueueMayHaveRuns(t *testing.T) {
	inBubble(t, func(t *testing.T, r fixture) {
		looked := false
		r.store.during = func() {
			looked = true
			nobodyTakes(t, r, "while the first queue is looked at", starting(r, "second"))
		}
		d := r.join("w", []string{"first", "second"})
		d.AddCredit(maxClaim + 1)
		synctest.Wait()
		if k := r.Offer(starting(r, "second")); !looked || k == nil {
			t.Errorf("looked: %t, taken afterwards: %t, want both", looked, k != nil)
		}
		r.store.add("first", 1, time.Minute)
		r.notify(engine.NotifyQueue, "first") // whose answer says when that will be due
		now := r.store.Now()
		if d.group.prefers("second", now) || !d.group.prefers("second", now.Add(time.Minute)) ||
			d.group.prefers("first", now.Add(time.Minute)) {
			t.Error("the first queue comes first when its run is due, and only then")
		}
	})
}

func TestAnAbortedHandOffGivesItsCreditBack(t *testing.T) {
	inBubble(t, func(t *testing.T, r fixture) {
		d := r.join("w", []string{"q"})
		d.AddCredit(1)
		synctest.Wait()
		k := r.Offer(starting(r, "q"))
		r.store.add("q", 1, 0)
		r.notify(engine.NotifyQueue, "q")
		if d.given() != 0 {
			t.Fatal("the one credit is used twice")
		}
		r.store.add("q", 1, 0)
		k.Abort()
		synctest.Wait()
		if d.given() != 1 {
			t.Errorf("given %d of the runs that wait, want one for the credit that came back", d.given())
		}
	})
}

func TestAHandedOffRunWithoutAPollerIsReleased(t *testing.T) {
	inBubble(t, func(t *testing.T, r fixture) {
		d := r.join("w", []string{"q"})
		d.AddCredit(1)
		synctest.Wait()
		start := starting(r, "q")
		k := r.Offer(start)
		d.Leave()
		k.Commit(task(start, k))
		synctest.Wait()
		if released := r.store.handedBack(); len(released) != 1 || released[0] != start.ID {
			t.Errorf("released %v, want the run %s of who has left", released, start.ID)
		}
	})
}

func TestAHandOffOfUnknownOutcomeIsReleased(t *testing.T) {
	inBubble(t, func(t *testing.T, r fixture) {
		d := r.join("w", []string{"q"})
		d.AddCredit(1)
		synctest.Wait()
		start := starting(r, "q")
		k := r.Offer(start)
		r.store.held["w"] = []engine.Held{{Lease: task(start, k).Lease}} // it has counted
		k.Unknown(errors.New("gone"))
		nobodyTakes(t, r, "the store does not answer", starting(r, "q"))
		synctest.Wait()
		if released := r.store.handedBack(); len(released) != 0 {
			t.Fatalf("released %v at once, want nothing before the store answers", released)
		}
		time.Sleep(retryAfter + time.Millisecond)
		synctest.Wait()
		if released := r.store.handedBack(); len(released) != 1 || released[0] != start.ID {
			t.Errorf("released %v, want the run %s, which nobody was given", released, start.ID)
		}
		if r.Offer(starting(r, "q")) == nil || r.Offer(starting(r, "q")) != nil {
			t.Error("the credit did not come back, or twice")
		}
	})
}
