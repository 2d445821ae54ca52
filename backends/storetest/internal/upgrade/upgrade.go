package upgrade

import (
	"time"

	"github.com/kagzi/kagzi/backends/storetest/internal/fixture"
	"github.com/kagzi/kagzi/engine"
)

// An upgrade is a story in two parts. LeaveWork is what a server leaves in its database when it
// stops in the middle of its work; testdata/NNNN_name.sql of each backend is what the code of that
// schema made of it. TakeUpWork goes on from there.

// LeaveWork fills a fresh store with runs in every state and with what stands around them. It does the same each time.
func LeaveWork(t fixture.T, store engine.Store) {
	s := fixture.New(t, store)
	s.LeaveHeld()
	s.LeaveAround()
	s.LeaveDue()
	s.LeaveDueAround()
	s.LeaveKeys()
}

// TakeUpWork goes on, an hour later, with the work of a database that LeaveWork filled under this schema.
func TakeUpWork(t fixture.T, store engine.Store, schema int) {
	s := fixture.New(t, store)
	s.Minted.N = 1000 // beyond what was minted there
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
}
