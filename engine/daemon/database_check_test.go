package daemon

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"io"
	"path/filepath"
	"strings"
	"testing"

	"github.com/spf13/cobra"

	"github.com/kagzi/kagzi/engine"
)

// runCheck runs db check with these arguments on some file.
func runCheck(t *testing.T, b Backends, args ...string) (out string, err error) {
	t.Helper()
	cmd := newCheck(b)
	var o bytes.Buffer
	cmd.SetOut(&o)
	cmd.SetErr(&o)
	cmd.SetArgs(append(args, "--db", "sqlite:"+filepath.Join(t.TempDir(), "kagzi.db")))
	cmd.SilenceErrors, cmd.SilenceUsage = true, true
	err = cmd.ExecuteContext(t.Context())
	return o.String(), err
}

func TestCheckAcceptsOnlyWhenAsked(t *testing.T) {
	asked := 0
	b := Backends{
		Status: func(context.Context, string) (engine.SchemaStatus, error) { return engine.SchemaStatus{}, nil },
		Check:  func(context.Context, string) ([]engine.Finding, error) { return nil, nil },
		Accept: func(context.Context, string) (string, []engine.Finding, error) {
			asked++
			return "kagzi.db.before", nil, nil
		},
	}
	if out, err := runCheck(t, b); err != nil || out != "sound\n" || asked != 0 {
		t.Errorf("output = %q (%v), asked %d times, want sound and nothing accepted", out, err, asked)
	}
	if out, err := runCheck(t, b, "--accept"); err != nil || asked != 1 ||
		!strings.Contains(out, "kept as kagzi.db.before") {
		t.Errorf("output = %q (%v), asked %d times, want where the file is kept", out, err, asked)
	}
}

func TestWhatIsNotSoundIsNotAccepted(t *testing.T) {
	b := Backends{Accept: func(context.Context, string) (string, []engine.Finding, error) {
		return "", []engine.Finding{{Subject: "run 1", Text: "has no payload row"}}, nil
	}}
	if out, err := runCheck(t, b, "--accept"); err == nil || !strings.Contains(out, "run 1: has no payload row") ||
		strings.Contains(out, "accepted") {
		t.Errorf("output = %q (%v), want what was found", out, err)
	}
}

// runBackup runs db backup with these arguments.
func runBackup(t *testing.T, b Backends, args ...string) (out string, err error) {
	t.Helper()
	b.Remote.Flags = func(cmd *cobra.Command) { cmd.Flags().StringP("output", "o", "table", "") }
	cmd := newBackup(b)
	var o bytes.Buffer
	cmd.SetOut(&o)
	cmd.SetErr(io.Discard)
	cmd.SetArgs(args)
	cmd.SilenceErrors, cmd.SilenceUsage = true, true
	err = cmd.ExecuteContext(t.Context())
	return o.String(), err
}

func TestABackupThatIsNotSoundIsADocumentToo(t *testing.T) {
	b := Backends{Verify: func(context.Context, string) (engine.Backup, []engine.Finding, error) {
		return engine.Backup{File: "kagzi.db", Schema: 7},
			[]engine.Finding{{Subject: "run 1", Text: "has no payload row"}}, nil
	}}
	out, err := runBackup(t, b, "--verify", "kagzi.db", "-o", "json")
	if err == nil {
		t.Error("a backup that is not sound passes")
	}
	var d verifiedDocument
	if err := json.Unmarshal([]byte(out), &d); err != nil || d.Sound || d.File != "kagzi.db" || len(d.Findings) != 1 ||
		d.Findings[0] != "run 1: has no payload row" {
		t.Errorf("output = %q (%v), want one document with the finding", out, err)
	}
}

func TestABackupOfNoDatabaseSaysSoAsOtherCommandsDo(t *testing.T) {
	b := Backends{
		Holder: func(string) (string, error) { return "", nil },
		Backup: func(context.Context, string, string) (engine.Backup, error) {
			return engine.Backup{}, errors.New("unable to open database file")
		},
		Status: func(context.Context, string) (engine.SchemaStatus, error) {
			return engine.SchemaStatus{Missing: true}, nil
		},
	}
	_, err := runBackup(t, b, "--db", "sqlite:"+filepath.Join(t.TempDir(), "kagzi.db"),
		filepath.Join(t.TempDir(), "to.db"))
	if coded, ok := errors.AsType[*exitError](err); !ok || coded.code != exitNotFound ||
		!mentions(err, "no database") {
		t.Errorf("%v, want that there is none", err)
	}
}
