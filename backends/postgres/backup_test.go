package postgres

import (
	"testing"
	"time"
)

func TestOfSeveralServersOneHasTheTurnToMakeABackup(t *testing.T) {
	url := lentURL(t)
	a, b := openAt(t, url), openAt(t, url)
	ask := func(s *Store, every time.Duration) (time.Duration, func() error) {
		t.Helper()
		wait, giveBack, err := s.BackupTurn(t.Context(), every)
		if err != nil {
			t.Fatal(err)
		}
		return wait, func() error { return giveBack(t.Context()) }
	}
	wait, giveBack := ask(a, time.Hour)
	if wait != 0 {
		t.Fatalf("the first waits %s", wait)
	}
	for _, s := range []*Store{a, b} {
		if wait, _ := ask(s, time.Hour); wait < 59*time.Minute || wait > time.Hour {
			t.Errorf("the next waits %s, want what is left of the hour", wait)
		}
	}
	if err := giveBack(); err != nil {
		t.Fatal(err)
	}
	if wait, _ := ask(b, time.Hour); wait != 0 {
		t.Fatalf("after it was given back the other waits %s", wait)
	}
	if err := giveBack(); err != nil { // it is another's by now
		t.Fatal(err)
	}
	if wait, _ := ask(a, time.Hour); wait == 0 {
		t.Error("a turn that another had was given back")
	}
	if wait, _ := ask(a, time.Microsecond); wait != 0 {
		t.Errorf("an interval later it waits %s", wait)
	}
}
