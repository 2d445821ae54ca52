package settings

import (
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

func TestSettingsAreReadAndMistakesNamed(t *testing.T) {
	path := filepath.Join(t.TempDir(), "tui.toml")
	for text, want := range map[string]string{
		"theme = \"dark\"\ntime = \"utc\"\nmouse = true\n[columns]\nruns = [\"id\", \"type\"]\n": "",
		"themes = \"dark\"\n": "line 1: unknown setting themes; want one of theme",
		"time = \"swatch\"\n": "want one of relative, local, utc, epoch",
		"\n\ntheme = dark\n":  "line 3",
	} {
		if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
		c, err := LoadConfig(path)
		if want == "" {
			if err != nil || c.Theme != "dark" || !c.Mouse || len(c.Columns["runs"]) != 2 {
				t.Errorf("%q gives %+v, %v", text, c, err)
			}
			continue
		}
		if err == nil || !strings.Contains(err.Error(), want) || !strings.Contains(err.Error(), path) {
			t.Errorf("%q gives %v, want the file and %q", text, err, want)
		}
	}
	if _, err := LoadConfig(filepath.Join(t.TempDir(), "none.toml")); err != nil {
		t.Errorf("a file that is not there gives %v", err)
	}
}

func TestWhatWasTypedIsRememberedOnceAndTheOldestForgotten(t *testing.T) {
	var history []string
	for i := range MaxRemembered + 10 {
		history = Remember(history, fmt.Sprint("line ", i))
	}
	history = Remember(history, "line 50")
	if len(history) != MaxRemembered || history[len(history)-1] != "line 50" ||
		slices.Index(history, "line 50") != len(history)-1 {
		t.Errorf("the history has %d lines and ends in %q", len(history), history[len(history)-1])
	}
	path := filepath.Join(t.TempDir(), "deep", "state.toml")
	if err := (State{Commands: history, Filters: map[string]string{"mine": "status:failed"}}).Save(path); err != nil {
		t.Fatal(err)
	}
	if s := LoadState(path); !slices.Equal(s.Commands, history) || s.Filters["mine"] != "status:failed" {
		t.Errorf("read back %+v", s)
	}
	if err := os.WriteFile(path, []byte("= broken"), 0o600); err != nil {
		t.Fatal(err)
	}
	if s := LoadState(path); s.Commands != nil {
		t.Errorf("a spoiled file gives %+v", s)
	}
}
