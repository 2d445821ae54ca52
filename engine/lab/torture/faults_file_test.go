//go:build linux

package main

import (
	"os"
	"path/filepath"
	"testing"

	"github.com/kagzi/kagzi/engine/lab/torture/fixture"

	"github.com/kagzi/kagzi/engine/lab/torture/history"
)

func TestAServerWhoseFileWasMovedMustStopByItself(t *testing.T) {
	start := func(at int64, o history.Outcome) history.Event {
		return history.Event{Op: history.Start, Outcome: o, Invoked: at}
	}
	before, after := start(9, history.OK), start(11, history.OK)
	for name, test := range map[string]struct {
		events []history.Event
		over   bool
		exit   fixture.Ending
		ok     bool
	}{
		"the documented end": {[]history.Event{before, start(11, history.Unknown)}, true,
			fixture.ExitDisk, true},
		"the documented end after another acknowledgement": {
			[]history.Event{before, after}, true, fixture.ExitDisk, false},
		"by a panic":        {[]history.Event{before}, true, 2, false},
		"a graceful end":    {[]history.Event{before}, true, 0, false},
		"it still runs":     {[]history.Event{before}, false, fixture.ExitDisk, false},
		"nothing was there": {nil, true, fixture.ExitDisk, false},
	} {
		if got, ok := lost(test.events, 10, test.over, func() fixture.Ending { return test.exit }); ok != test.ok {
			t.Errorf("%s: %s, ok %t, want %t", name, got, ok, test.ok)
		}
	}
}

func TestPrivateFiles(t *testing.T) {
	for name, test := range map[string]struct {
		dir, file os.FileMode
		files     int
		ok        bool
	}{
		"private":                 {0o700, 0o600, 3, true},
		"a file for its group":    {0o700, 0o640, 3, false},
		"a directory for others":  {0o701, 0o600, 3, false},
		"a file is missing":       {0o700, 0o600, 2, false},
		"a file that may be run":  {0o700, 0o700, 3, false},
		"a directory for reading": {0o500, 0o600, 3, false},
	} {
		dir := t.TempDir()
		for _, file := range []string{"db", "wal", "shm"}[:test.files] {
			path := filepath.Join(dir, file)
			if err := os.WriteFile(path, nil, 0o600); err != nil {
				t.Fatal(err)
			}
			if err := os.Chmod(path, test.file); err != nil {
				t.Fatal(err)
			}
		}
		if err := os.Chmod(dir, test.dir); err != nil {
			t.Fatal(err)
		}
		if f, err := private(dir); err != nil || f.ok != test.ok || !f.hard {
			t.Errorf("%s: %s (%v), want ok %t", name, f, err, test.ok)
		}
	}
}
