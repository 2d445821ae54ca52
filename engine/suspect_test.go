package engine

import (
	"fmt"
	"testing"
	"time"
)

var lostAt = noon.Truncate(time.Second)

func lossOf(runs, suspects int) Loss {
	return Loss{Worker: "w1", At: lostAt, HeardAt: lostAt.Add(-30 * time.Second), Runs: runs, Suspects: suspects}
}

func TestAfterLeaseLost(t *testing.T) {
	delays := []time.Duration{0, 1, 2, 4, 8, 16, 32, 64, 128} // seconds after the first to the ninth loss in a row
	for before, delay := range delays {
		got := AfterLeaseLost(LostRun{Losses: before}, lossOf(1, 0), noon)
		if got.Failed || got.Losses != before+1 || got.Suspect.Of != 1 {
			t.Errorf("loss %d: %+v, want it counted, the run a suspect and no end", before+1, got)
		}
		want := noon
		if delay > 0 {
			want = Micros(noon.Add(delay * time.Second))
		}
		if !got.AvailableAt.Equal(want) {
			t.Errorf("loss %d: due at +%s, want +%d s", before+1, got.AvailableAt.Sub(noon), delay)
		}
	}
	if got := AfterLeaseLost(LostRun{Losses: 9}, lossOf(1, 0), noon); !got.Failed || got.Losses != 10 ||
		got.Suspect.Is() {
		t.Errorf("the tenth loss in a row: %+v, want the end", got)
	}
	got := AfterLeaseLost(LostRun{Losses: 9, Progressed: true}, lossOf(1, 0), noon)
	if got.Failed || got.Losses != 1 || !got.AvailableAt.Equal(noon) {
		t.Errorf("a loss after progress: %+v, want the first again, due now", got)
	}
	if f := CrashedFailure(); f.Code != FailureCrashed || !f.NonRetryable {
		t.Errorf("CrashedFailure = %+v, want CRASHED for good", f)
	}
}

func TestAfterLeaseLostBlamesTheOnlySuspect(t *testing.T) {
	suspect := Suspect{Of: 7, Worker: "w0", At: lostAt.Add(-time.Minute)}
	fresh, old := lossOf(0, 0).HeardAt.Add(-time.Minute), SuspectSince(lossOf(0, 0).HeardAt)
	of := func(n int, again bool) Suspect { return Suspect{Of: n, Worker: "w1", At: lostAt, Again: again} }
	for _, c := range []struct {
		name   string
		run    LostRun
		loss   Loss
		losses int
		want   Suspect
	}{
		{"one of several runs", LostRun{Losses: 2}, lossOf(7, 0), 2, of(7, false)},
		{"the only suspect", LostRun{Losses: 2, Suspect: suspect, ClaimedAt: fresh}, lossOf(7, 1), 3, of(1, true)},
		{"a run beside the only suspect", LostRun{Losses: 2}, lossOf(7, 1), 2, of(6, false)},
		{"one of several suspects", LostRun{Losses: 2, Suspect: suspect, ClaimedAt: fresh}, lossOf(9, 3), 2,
			of(3, true)},
		{"a run beside several suspects", LostRun{}, lossOf(4, 3), 0, of(1, false)},
		{"a suspect that was in hand for long enough", LostRun{Losses: 2, Suspect: suspect, ClaimedAt: old},
			lossOf(7, 0), 2,
			of(7, false)},
		{"one of several, after a result", LostRun{Losses: 2, Progressed: true}, lossOf(7, 0), 0, of(7, false)},
	} {
		t.Run(c.name, func(t *testing.T) {
			got := AfterLeaseLost(c.run, c.loss, noon)
			if got.Failed || got.Losses != c.losses || got.Suspect != c.want {
				t.Errorf("AfterLeaseLost = %+v, want %d losses and %+v", got, c.losses, c.want)
			}
		})
	}
}

func TestAfterLeaseLostSpreadsTheRunsOfOneWorker(t *testing.T) {
	seen := map[time.Time]bool{}
	for n := range 100 {
		at := AfterLeaseLost(LostRun{ID: ID{byte(n)}}, lossOf(100, 0), noon).AvailableAt
		if at.Before(Micros(noon)) || !at.Before(noon.Add(LossJitter)) {
			t.Fatalf("run %d is due after %s, want less than %s", n, at.Sub(noon), LossJitter)
		}
		seen[at] = true
	}
	if len(seen) < 90 {
		t.Errorf("100 runs come back at %d times", len(seen))
	}
}

func TestSuspectsMay(t *testing.T) {
	first := Suspect{Of: 7, Worker: "w1", At: lostAt}
	other := Suspect{Of: 4, Worker: "w2", At: lostAt}
	again := Suspect{Of: 5, Worker: "w3", At: lostAt, Again: true}
	lone := Suspect{Of: 1, Worker: "w4", At: lostAt, Again: true}
	for _, c := range []struct {
		held []Suspect
		next Suspect
		want bool
	}{
		{nil, lone, true},
		{[]Suspect{first, first}, first, true},
		{[]Suspect{first, first, first}, first, false},
		{[]Suspect{first, first, first}, other, true},
		{[]Suspect{other, other}, other, false},
		{[]Suspect{again}, first, true},
		{[]Suspect{again, first}, first, false},
		{[]Suspect{first, first}, again, false},
		{[]Suspect{lone}, first, false},
		{[]Suspect{first}, lone, false},
		{[]Suspect{lone}, Suspect{}, true},
	} {
		var hand Suspects
		for _, s := range c.held {
			hand.Add(s)
		}
		if got := !c.next.Is() || hand.May(c.next); got != c.want {
			t.Errorf("with %v in hand, may %v be: %t, want %t", c.held, c.next, got, c.want)
		}
	}
}

// A worker takes all it may, dies by the crashing run after everybody else had no time, and comes
// back: the crashing run is alone after about log2(n) losses and fails after ten more.
func TestACrashingRunIsFoundByHalving(t *testing.T) {
	for _, n := range []int{1, 2, 7, 100, 1000} {
		t.Run(fmt.Sprint(n), func(t *testing.T) {
			type run struct {
				LostRun
			}
			runs := make([]run, n)
			for i := range runs {
				runs[i].ID = ID{byte(i), byte(i >> 8), 1}
			}
			const crashing = 0
			now, losses, innocent := lostAt, 0, 0
			for {
				var hand Suspects
				var held []int
				crashes := false
				for i := range runs { // the crashing one first: the others wait for it and never get any further
					if s := runs[i].Suspect; !s.Is() || hand.May(s) {
						hand.Add(s)
						held = append(held, i)
						crashes = crashes || i == crashing
					}
				}
				now = now.Add(10 * time.Minute)
				l := Loss{Worker: "w", At: now, HeardAt: now, Runs: len(held)}
				for _, i := range held {
					runs[i].ClaimedAt = now.Add(-time.Second)
					if runs[i].Suspect.Is() {
						l.Suspects++
					}
				}
				losses++
				for _, i := range held {
					v := AfterLeaseLost(runs[i].LostRun, l, now)
					if runs[i].Losses, runs[i].Suspect = v.Losses, v.Suspect; i != crashing {
						innocent = max(innocent, v.Losses)
					}
				}
				if runs[crashing].Losses == MaxLeaseLosses {
					break
				}
			}
			halvings := 0
			for m := n; m > 1; m /= 2 {
				halvings++
			}
			if want := halvings + MaxLeaseLosses; losses > want+1 || innocent > 0 {
				t.Errorf("%d losses, and %d counted for others; want about %d and none", losses, innocent, want)
			}
		})
	}
}
