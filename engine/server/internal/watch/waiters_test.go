package watch

import (
	"fmt"
	"testing"

	"github.com/kagzi/kagzi/engine"
)

// ear records which waiters were called.
type ear struct{ heard map[*waiter]int }

func (e ear) ended(w *waiter, _ *engine.Ending) { e.heard[w]++ }

func TestWaitersOfARunLeaveInAnyOrder(t *testing.T) {
	for _, order := range [][]int{{0, 1, 2}, {2, 1, 0}, {1, 0, 2}, {1, 2, 0}, {0, 2, 1}, {2, 0, 1}} {
		t.Run(fmt.Sprint(order), func(t *testing.T) {
			var all waiters
			e := ear{map[*waiter]int{}}
			run, other := engine.ID{1}, &waiter{id: engine.ID{2}, to: e}
			three := []*waiter{{id: run, to: e}, {id: run, to: e}, {id: run, to: e}}
			all.enter(three...)
			all.enter(other)
			for n, i := range order {
				all.leave(three[i])
				all.leave(three[i])
				clear(e.heard)
				all.notify(run, nil)
				for _, gone := range order[:n+1] {
					if e.heard[three[gone]] != 0 {
						t.Errorf("%d was told after it had left", gone)
					}
				}
				if got, want := len(e.heard), 2-n; got != want || all.count() != want+1 {
					t.Errorf("%d were told and %d stay, want %d and %d", got, all.count(), want, want+1)
				}
			}
			clear(e.heard)
			all.notifyAll()
			if len(e.heard) != 1 || e.heard[other] != 1 || len(all.runs) != 1 {
				t.Errorf("told %v of %d runs, want the other one alone", e.heard, len(all.runs))
			}
		})
	}
}
