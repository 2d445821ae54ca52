package bench

import (
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
	nope := filepath.Join(t.TempDir(), "nope.key")
	cmd.SetArgs([]string{"--address", "127.0.0.1:1", "--api-key-file", nope, "--profile", "off"})
	cmd.SetOut(io.Discard)
	cmd.SetErr(io.Discard)
	if err := cmd.ExecuteContext(t.Context()); err == nil || !strings.Contains(err.Error(), nope) || strings.Contains(err.Error(), "unknown flag") {
		t.Errorf("%v, want that the key's file %s is read", err, nope)
	}
}
