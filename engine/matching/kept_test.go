package matching

import (
	"testing"
	"testing/synctest"
	"time"

	"github.com/kagzi/kagzi/engine"
)

func keeping(n int) func(*Request) { return func(r *Request) { r.Keeps = n } }

func runID(n byte) engine.ID { return engine.ID{15: n} }

func lease(n byte) engine.Lease {
	return engine.Lease{RunID: runID(n), Token: engine.Token{n}}
}

// keptIn returns what the group of a poller tells its next claim about a run.
func keptIn(d *recorder, n byte) engine.KeptRun {
	of, _ := d.group.keptFor("q")
	if of == nil {
		return engine.KeptRun{}
	}
	return of(runID(n))
}

func TestAClaimKnowsWhatTheWorkersKeep(t *testing.T) {
	inBubble(t, func(t *testing.T, r fixture) {
		a, none := r.join("a", []string{"q"}, keeping(2)), r.join("b", []string{"q"})
		none.Keep(lease(9))
		want := func(when string, n byte, worker string) {
			t.Helper()
			k := keptIn(none, n)
			if k.WorkerID != worker || worker != "" && k.Token != (engine.Token{n}) {
				t.Errorf("%s, run %d is kept by %q under %v, want %q", when, n, k.WorkerID, k.Token, worker)
			}
		}
		want("when no worker keeps runs", 9, "")
		for n := byte(1); n <= 3; n++ {
			a.Keep(lease(n))
		}
		want("when a worker keeps two", 1, "")
		want("when a worker keeps two", 2, "a")
		want("when a worker keeps two", 3, "a")
		a.Keep(lease(2)) // parked again
		a.Keep(lease(4))
		want("when it parked another one", 3, "")
		want("when it parked another one", 2, "a")
		r.kept.claimed(runID(2))
		want("when it was claimed", 2, "")
		time.Sleep(keepTime - time.Second)
		want("after nearly ten minutes", 4, "a")
		time.Sleep(time.Second)
		want("after ten minutes", 4, "")
		a.Keep(lease(5))
		a.Leave()
		want("when the worker is gone", 5, "")
		a.Keep(lease(6))
		want("when the worker is gone", 6, "")
		if len(r.kept.runs) != 0 {
			t.Errorf("%d runs of workers that are gone are kept in mind", len(r.kept.runs))
		}
	})
}

func TestARunIsLeftToAWorkerOfAnotherGroupThatHasRoom(t *testing.T) {
	inBubble(t, func(t *testing.T, r fixture) {
		a := r.join("a", []string{"q"}, keeping(2), func(r *Request) { r.Types = []string{"t", "u"} })
		b, same := r.join("b", []string{"q"}), r.join("c", []string{"q"}, keeping(2))
		a.Keep(lease(1))
		same.Keep(lease(2))
		if keptIn(b, 1).Room {
			t.Error("a worker without credit has room")
		}
		a.AddCredit(1)
		synctest.Wait()
		if !keptIn(b, 1).Room {
			t.Error("a worker with credit has no room")
		}
		same.AddCredit(1)
		if keptIn(b, 2).Room {
			t.Error("a claim leaves a run to a worker of its own group, which has no slot in it")
		}
	})
}

func TestAClaimPrefersWorkersOnlyIfThereAreSeveral(t *testing.T) {
	inBubble(t, func(t *testing.T, r fixture) {
		a := r.join("a", []string{"q"}, keeping(2))
		if of, prefer := a.group.keptFor("q"); of != nil || prefer {
			t.Error("a claim asks who keeps runs when nobody does")
		}
		a.Keep(lease(1))
		if of, prefer := a.group.keptFor("q"); of == nil || prefer {
			t.Errorf("with one worker a claim knows of kept runs: %t, and prefers it: %t", of != nil, prefer)
		}
		r.join("b", []string{"q"})
		if _, prefer := a.group.keptFor("q"); !prefer {
			t.Error("with two workers a claim prefers none")
		}
	})
}
