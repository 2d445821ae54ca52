package view

import (
	"testing"
	"time"
)

func TestOnlyWorkersThatAreThereAreShownOnDemand(t *testing.T) {
	var w *shop
	onFixture(t, inShop(&w, "workers"), 100, 30, func(r *fixture) {
		r.shows("Workers (6)", "○ offline   mailer-2")
		r.press("a")
		r.shows("Workers (5 of 6)")
		r.lacks("mailer-2")
		r.press("a")
		r.shows("mailer-2")
	})
}

func TestAWorkerIsDrainedAfterAQuestion(t *testing.T) {
	var w *shop
	onFixture(t, inShop(&w, "workers"), 100, 30, func(r *fixture) {
		for range 3 {
			r.press("down")
		}
		r.press("x")
		r.shows("Drain worker reports-1?", "3 runs are held now.", "kagzi worker drain reports-1")
		r.press("esc")
		r.lacks("draining  reports-1")
		r.press("x", "tab", "enter")
		r.pass(2 * time.Second)
		r.shows("◐ draining  reports-1", "drain reports-1: DRAINING")
	})
}

func TestAWorkerThatIsOfflineCannotBeTakenOff(t *testing.T) {
	var w *shop
	onFixture(t, inShop(&w, "worker mailer-2"), 100, 30, func(r *fixture) {
		r.press("X")
		r.shows("it is offline already")
		r.press("x")
		r.shows("it is not online")
	})
}

func TestTheRunsOfAWorkerComeAndGo(t *testing.T) {
	var w *shop
	onFixture(t, inShop(&w, "worker reports-1"), 120, 40, func(r *fixture) {
		r.shows("Holds now (5)", "revenue-backfill")
		r.press("X", "tab", "enter")
		r.pass(2 * time.Second)
		r.shows("○ offline", "Holds now (0)", "No runs held.", "force offline reports-1: OFFLINE, runs released: 5")
	})
}

func TestASilentWorkerIsNamed(t *testing.T) {
	var w *shop
	onFixture(t, inShop(&w, "workers"), 140, 30, func(r *fixture) {
		r.lacks("silent")
		p := r.app.trails.top().(*workersPage)
		workers := p.items.All()
		workers[0].LastHeartbeatAt.Seconds -= 60
		r.shows("has been silent for 1m", "if it stays silent, other workers get its runs")
		r.app.freeze()
		r.lacks("has been silent")
	})
}

func TestEnterOnAWorkersRunOpensIt(t *testing.T) {
	var w *shop
	onFixture(t, inShop(&w, "workers"), 120, 40, func(r *fixture) {
		for range 3 {
			r.press("down")
		}
		r.press("enter")
		r.shows("Worker reports-1")
		r.press("tab", "enter")
		if name := r.app.trails.top().Name(); name != "run" {
			t.Fatalf("enter on a run that has ended opened %q", name)
		}
		r.press("esc")
		r.shows("Worker reports-1")
		r.press("esc")
		r.shows("Workers (6)")
		if id, _ := r.app.trails.top().(*workersPage).tab.Selected(); id != "reports-1" {
			t.Fatalf("back in the list the cursor is on %q, want reports-1", id)
		}
	})
}

func TestDescribeTellsAllOfAWorker(t *testing.T) {
	var w *shop
	onFixture(t, inShop(&w, "worker reports-1"), 80, 30, func(r *fixture) {
		r.press("d")
		r.shows("Capabilities", "tool:duckdb=1.4", "Registered")
		r.press("esc")
		r.lacks("Capabilities")
	})
}
