package bench

import (
	"errors"
	"io"
	"path/filepath"
	"strings"
	"testing"

	"github.com/kagzi/kagzi/sdk/profile"
)

func TestABenchHasTheFlagsOfAClientForItsServer(t *testing.T) {
	cmd := Command()
	for _, name := range append(profile.Keys(), "profile") {
		if cmd.Flags().Lookup(name) == nil {
			t.Errorf("there is no --%s", name)
		}
	}
}

func TestWrongConnectionSettingsAreUsageErrors(t *testing.T) {
	nope := filepath.Join(t.TempDir(), "nope.key")
	for _, c := range []struct {
		wants string
		args  []string
	}{
		{nope, []string{"--address", "127.0.0.1:1", "--api-key-file", nope, "--profile", "off"}},
		{nope, []string{"--address", "127.0.0.1:1", "--tls-ca", nope, "--profile", "off"}},
		{"nowhere", []string{"--address", "127.0.0.1:1", "--profile", "nowhere"}},
	} {
		cmd := Command()
		cmd.SetArgs(c.args)
		cmd.SetOut(io.Discard)
		cmd.SetErr(io.Discard)
		err := cmd.ExecuteContext(t.Context())
		exit, coded := errors.AsType[*exitError](err)
		if !coded || exit.ExitCode() != exitUsage || !strings.Contains(err.Error(), c.wants) {
			t.Errorf("%q: %v, want %s named and exit code %d", c.args, err, c.wants, exitUsage)
		}
	}
}
