package postgres

import (
	"slices"
	"testing"
	"time"

	"github.com/kagzi/kagzi/engine"
)

var orders = queueKey{"default", "orders"}

// looked makes a look that found these heads: pairs of lane and time.
func looked(f *floors, more bool, heads ...int64) *floored {
	l := f.look(orders, false)
	l.end(heads, more)
	return l
}

func TestALookBeginsWhereTheLastOneHasFoundTheHeads(t *testing.T) {
	from := func(l *floored) map[int64]int64 {
		of := map[int64]int64{}
		for i, lane := range l.lanes {
			of[lane] = l.from[i]
		}
		return of
	}
	for _, c := range []struct {
		name string
		do   func(f *floors)
		want map[int64]int64 // floors of the next look
	}{
		{"nothing is known", func(*floors) {}, nil},
		{"there was more than asked for", func(f *floors) {
			looked(f, true, 1, 100, 2, 50)
		}, map[int64]int64{1: 100, 2: 50}},
		{"there was no more", func(f *floors) { looked(f, true, 1, 100); looked(f, false, 1, 110) }, nil},
		{"another lane was looked at", func(f *floors) {
			l := f.look(orders, false)
			looked(f, true, 1, 100)
			l.end([]int64{2, 50}, true)
		}, map[int64]int64{1: 100, 2: 50}},
		{"a run became due before a head", func(f *floors) {
			looked(f, true, 1, 100, 2, 50)
			f.due([]dueRun{{orders, 70}, {queueKey{"default", "invoices"}, 10}, {queueKey{"other", "orders"}, 10}})
		}, map[int64]int64{1: 70, 2: 50}},
		{"one became due while the look was under way", func(f *floors) {
			l := f.look(orders, false)
			f.due([]dueRun{{orders, 70}})
			l.end([]int64{1, 100}, true)
		}, map[int64]int64{1: 70}},
		{"a look found nothing in a lane that had a floor", func(f *floors) {
			looked(f, true, 1, 100)
			looked(f, true)
		}, nil},
	} {
		f := &floors{}
		c.do(f)
		l := f.look(orders, false)
		if got := from(l); len(got) != len(c.want) || l.bounded() != (len(c.want) > 0) {
			t.Errorf("%s: the next look begins at %v, want %v", c.name, got, c.want)
		} else {
			for lane, want := range c.want {
				if got[lane] != want {
					t.Errorf("%s: the next look begins at %v, want %v", c.name, got, c.want)
				}
			}
		}
		if l.end(nil, false); len(f.queues) != 0 {
			t.Errorf("%s: %d queues are remembered when nothing is left in them", c.name, len(f.queues))
		}
	}
}

func TestALookBeginsAtTheBeginningNowAndThen(t *testing.T) {
	f := &floors{}
	looked(f, true, 1, 100)
	for round := range 3 {
		for i := 2; i < wholeLook; i++ { // the looks before and after are whole
			if l := looked(f, true, 1, 100); !l.bounded() {
				t.Fatalf("look %d of round %d begins at the beginning", i, round)
			}
		}
		if l := looked(f, true, 1, 100); l.bounded() {
			t.Fatalf("look %d of round %d does not begin at the beginning", wholeLook, round)
		}
		if l := looked(f, true, 1, 100); !l.bounded() {
			t.Fatalf("after round %d all looks begin at the beginning", round)
		}
	}
	if l := f.look(orders, true); l.bounded() {
		t.Error("a look that is to begin at the beginning does not")
	}
}

// claimFrom claims n runs and returns when each was due.
func claimFrom(t *testing.T, s *Store, n int) (due []int64) {
	t.Helper()
	claimed, err := s.Claim(t.Context(), claimParams(s, "w1", n))
	if err != nil {
		t.Fatal(err)
	}
	for _, task := range claimed.Tasks {
		due = append(due, micros(task.Run.CreatedAt))
	}
	return due
}

// startDue starts one run for each of these times, at which it was made and due.
func startDue(t *testing.T, s *Store, at ...int64) {
	t.Helper()
	starts := make([]engine.StartRun, len(at))
	for i, us := range at {
		starts[i] = newStart(s)
		starts[i].CreatedAt, starts[i].AvailableAt = time.UnixMicro(us), time.UnixMicro(us)
	}
	if _, err := s.StartRuns(t.Context(), engine.StartRunsParams{Runs: starts}); err != nil {
		t.Fatal(err)
	}
}

func TestAClaimPassesNothingThatThisServerMadeDueBeforeTheHead(t *testing.T) {
	s := openAt(t, lentURL(t))
	register(t, s, "w1")
	startDue(t, s, 1010, 1020, 1030, 1040, 1050, 1060)
	if got := claimFrom(t, s, 2); !slices.Equal(got, []int64{1010, 1020}) {
		t.Fatalf("claimed those of %v", got)
	}
	if got := s.floors.queues[orders]; got == nil || len(got.lanes) != 1 {
		t.Fatalf("the floors are %+v, want one lane's", got)
	}
	startDue(t, s, 1005)
	if got := claimFrom(t, s, 2); !slices.Equal(got, []int64{1005, 1030}) {
		t.Fatalf("claimed those of %v", got)
	}
	if got := claimFrom(t, s, 9); !slices.Equal(got, []int64{1040, 1050, 1060}) || len(s.floors.queues) != 0 {
		t.Fatalf("claimed those of %v, and remembers %d queues", got, len(s.floors.queues))
	}
}

// A run that another server makes due is found: when there are no more behind the head, and at the
// latest after wholeLook looks.
func TestClaimFindsRunsOfOtherServerBeforeFloor(t *testing.T) {
	a, b := rivals(t)
	register(t, a, "w1")
	startDue(t, a, 1010, 1020, 1030)
	claimFrom(t, a, 2)
	startDue(t, b, 1001)
	if got := claimFrom(t, a, 2); !slices.Equal(got, []int64{1030, 1001}) {
		t.Fatalf("claimed those of %v, want the two that are left", got)
	}
	late := make([]int64, 2*wholeLook)
	for i := range late {
		late[i] = int64(2000 + i)
	}
	startDue(t, a, late...)
	claimFrom(t, a, 1)
	startDue(t, b, 1001)
	for n := 1; !slices.Contains(claimFrom(t, a, 1), 1001); n++ {
		if n == wholeLook {
			t.Fatalf("not found within %d looks", n)
		}
	}
}
