package upgrade

import (
	"time"

	"github.com/kagzi/kagzi/backends/storetest/internal/fixture"
	"github.com/kagzi/kagzi/engine"
)

// An upgrade test has two parts. LeaveWork is what a server leaves in its database when it stops in
// the middle of its work; testdata/NNNN_name.sql of each backend holds the rows that the code of
// that schema left. TakeUpWork continues from there.

// LeaveWork fills a new store with runs in every state, and with schedules, signals and keys. It
// does the same each time.
func LeaveWork(t fixture.T, store engine.Store) {
	s := fixture.New(t, store)
	s.LeaveHeld()
	s.LeaveAround()
	s.LeaveDue()
	s.LeaveDueAround()
	s.LeaveKeys()
	s.LeaveHooks()
}

// TakeUpWork continues, an hour later, the work of a database that LeaveWork filled under this
// schema.
func TakeUpWork(t fixture.T, store engine.Store, schema int) {
	s := fixture.New(t, store)
	s.Minted.N = 1000 // above the ids that were minted there
	s.Pass(time.Hour)
	s.FindEnded()
	s.KeepLeases()
	if schema >= 2 {
		s.TakeUpAround()
	}
	s.TakeUpDue()
	if schema >= 2 {
		s.FindAroundEnded()
	}
	if schema >= 3 {
		s.TakeUpKeys()
	}
	if schema >= 19 {
		s.TakeUpHooks()
	}
}
