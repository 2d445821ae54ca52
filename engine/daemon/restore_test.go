package daemon

import (
	"bytes"
	"context"
	"errors"
	"io"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/kagzi/kagzi/engine"
)

func TestRestoreListsLossesSafelyForATerminal(t *testing.T) {
	id := engine.NewID(time.UnixMicro(1))
	done := &engine.Restoration{Database: "/data/kagzi.db", Kept: "/data/old\x1b[31m", Progress: engine.Progress{
		Beyond: []engine.RunBeyond{{ID: id, Namespace: "default", Type: "order", Status: engine.RunCompleted,
			Steps: 3, Had: 1}, {ID: id, Gone: true}},
		Only:     make([]engine.RunBeyond, linesShown+7),
		KeysBack: []string{"ops"},
	}}
	text := restorationText(done, &engine.RestoreParams{}, true)
	for _, want := range []string{
		"restored /data/kagzi.db", id.String() + "  default/order  was COMPLETED with 3 steps, has 1", "was DELETED",
		"and 7 more", "key ops was revoked",
	} {
		if !strings.Contains(text, want) {
			t.Errorf("%q does not tell %q", text, want)
		}
	}
	if strings.Contains(text, "\x1b") {
		t.Error("a name reaches the terminal as it is")
	}
	if text := restorationText(done, &engine.RestoreParams{DryRun: true}, true); !strings.Contains(
		text, "would restore") {
		t.Errorf("a dry run says %q", text)
	}
}

func TestBackupNamesItsSourceAndRefusesAMovedDatabase(t *testing.T) {
	own := "sqlite:" + filepath.Join(t.TempDir(), "own.db")
	for _, c := range []struct {
		what     string
		standing string
		args     []string
		of       string // empty: no backup is made
		warning  string
	}{
		{"of the settings", "", nil, own, ""},
		{"of the settings, but it was moved", engine.StandingMoved, nil, "", ""},
		{"of the settings, but it is not whole", engine.StandingFilling, nil, "", ""},
		{"one that is named", "", []string{"--db", "postgres://me:secret@host/kagzi"}, "postgres://me@host/kagzi", ""},
		{"one that is named and was moved", engine.StandingMoved, []string{"--db", own}, own,
			`warning: go \x1b[2Jelsewhere`},
	} {
		t.Run(c.what, func(t *testing.T) {
			t.Setenv("KAGZI_DB_URL", own)
			made := false
			cmd := newBackup(Backends{
				Holder: func(string) (string, error) { return "", nil },
				Status: func(context.Context, string) (s engine.SchemaStatus, err error) {
					if c.standing != "" {
						s.Standing, s.Refusal = c.standing, "go \x1b[2Jelsewhere"
					}
					return s, nil
				},
				Backup: func(_ context.Context, _, file string) (engine.Backup, error) {
					made = true
					return engine.Backup{File: file}, nil
				},
			})
			var out, messages bytes.Buffer
			cmd.SetOut(&out)
			cmd.SetErr(&messages)
			cmd.SetArgs(append(c.args, "there.backup"))
			cmd.SilenceErrors, cmd.SilenceUsage = true, true
			err := cmd.ExecuteContext(t.Context())
			if c.of == "" {
				if made || codeOf(err) != exitConflict || !mentions(err, "elsewhere") {
					t.Errorf("made: %t, error %v with code %d; want none, and %d", made, err, codeOf(err), exitConflict)
				}
				return
			}
			if err != nil || !made || !strings.HasPrefix(out.String(), "of       "+c.of+"\nbackup   there.backup\n") {
				t.Errorf("made: %t (%v), and said %q; want one of %s", made, err, out.String(), c.of)
			}
			if got := strings.TrimSpace(messages.String()); got != c.warning {
				t.Errorf("warned %q, want %q", got, c.warning)
			}
		})
	}
}

func TestARestoreOfAFileThatIsNotThereLeavesNothing(t *testing.T) {
	dir := t.TempDir()
	data := filepath.Join(dir, "data")
	cmd := newRestore(Backends{})
	cmd.SetOut(io.Discard)
	cmd.SetErr(io.Discard)
	cmd.SetArgs([]string{"--data-dir", data, filepath.Join(dir, "nope.db")})
	cmd.SilenceErrors, cmd.SilenceUsage = true, true
	if err := cmd.ExecuteContext(t.Context()); codeOf(err) != exitNotFound || !mentions(err, "nope.db") {
		t.Errorf("%v with code %d, want that there is no such file, and %d", err, codeOf(err), exitNotFound)
	}
	if _, err := os.Stat(data); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("the data directory: %v, want it not to be made", err)
	}
}
