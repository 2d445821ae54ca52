package daemon

import (
	"bytes"
	"context"
	"path/filepath"
	"strings"
	"testing"

	"github.com/kagzi/kagzi/engine"
)

// runCheck is the command with these arguments, on some file.
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
	if out, err := runCheck(t, b, "--accept"); err != nil || asked != 1 || !strings.Contains(out, "kept as kagzi.db.before") {
		t.Errorf("output = %q (%v), asked %d times, want where the file is kept", out, err, asked)
	}
}

func TestWhatIsNotSoundIsNotAccepted(t *testing.T) {
	b := Backends{Accept: func(context.Context, string) (string, []engine.Finding, error) {
		return "", []engine.Finding{{Subject: "run 1", Text: "has no payload row"}}, nil
	}}
	if out, err := runCheck(t, b, "--accept"); err == nil || !strings.Contains(out, "run 1: has no payload row") || strings.Contains(out, "accepted") {
		t.Errorf("output = %q (%v), want what was found", out, err)
	}
}
