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
	if err := giveBack(); err != nil { // another server has it by now
		t.Fatal(err)
	}
	if wait, _ := ask(a, time.Hour); wait == 0 {
		t.Error("a turn that another had was given back")
	}
	if wait, _ := ask(a, time.Microsecond); wait != 0 {
		t.Errorf("an interval later it waits %s", wait)
	}
}

func TestBackupTurnFromWrongClockIsIgnored(t *testing.T) {
	url := lentURL(t)
	s, admin := openAt(t, url), adminConnection(t, url)
	if wait, _, err := s.BackupTurn(t.Context(), time.Hour); err != nil || wait != 0 {
		t.Fatalf("the first waits %s (%v)", wait, err)
	}
	for _, c := range []struct{ ahead, least, most time.Duration }{
		{ahead: 5 * 365 * 24 * time.Hour},
		{ahead: time.Minute, least: time.Hour, most: time.Hour + time.Minute}, // a clock that was set back a little
	} {
		at := micros(s.Now().Add(c.ahead))
		if tag, err := admin.Exec(t.Context(), "update standing set at = $1 where name = $2", at,
			backupTurn); err != nil || tag.RowsAffected() != 1 {
			t.Fatalf("set the turn ahead: %v (%v)", tag, err)
		}
		if wait, _, err := s.BackupTurn(t.Context(), time.Hour); err != nil || wait < c.least || wait > c.most {
			t.Errorf("after a turn %s ahead it waits %s (%v), want %s to %s", c.ahead, wait, err, c.least, c.most)
		}
	}
}
