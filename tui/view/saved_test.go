package view

import (
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/kagzi/kagzi/tui/view/internal/settings"
)

func TestAViewIsSavedInTheHomeOfThePerson(t *testing.T) {
	home := t.TempDir()
	for _, name := range []string{"HOME", "USERPROFILE", "home"} {
		t.Setenv(name, home)
	}
	var w *shop
	onFixture(t, inShop(&w, "queues"), 100, 24, func(r *fixture) {
		r.press("ctrl-s", "ctrl-u")
		r.enter("~/view.csv")
		r.press("enter")
		if _, err := os.Stat(filepath.Join(home, "view.csv")); err != nil {
			t.Errorf("%v\n%s", err, r.draw())
		}
	})
}

func TestARowIsCopiedAndAViewIsSaved(t *testing.T) {
	dir := t.TempDir()
	var w *shop
	onFixture(t, inShop(&w, "queues"), 100, 24, func(r *fixture) {
		r.press("Y")
		if got := string(r.screen.GetClipboardData()); got != "emails" {
			t.Errorf("copied %q, want emails", got)
		}
		for name, want := range map[string]string{"view.csv": "QUEUE,PENDING", "view.json": `"task_queue": "emails"`} {
			path := filepath.Join(dir, name)
			r.press("ctrl-s", "ctrl-u")
			r.enter(path)
			r.press("enter")
			saved, err := os.ReadFile(path)
			if err != nil || !strings.Contains(string(saved), want) {
				t.Errorf("%s holds %q, %v, want %q in it", name, saved, err, want)
			}
			r.press("ctrl-s", "ctrl-u")
			r.enter(path)
			r.press("enter")
			r.shows("file exists")
			r.press("esc")
		}
	})
}

func TestACellThatASpreadsheetWouldObeyIsSavedAsText(t *testing.T) {
	got, err := csvOf([]string{"NAME"}, [][]string{{"=cmd|' /C calc'!A0"}, {"-1"}, {"plain, text"}})
	want := "NAME\n'=cmd|' /C calc'!A0\n'-1\n\"plain, text\"\n"
	if err != nil || string(got) != want {
		t.Errorf("CSV = %q, %v, want %q", got, err, want)
	}
}

func TestWhatIsSavedIsThereAtOnceAndStaysWhenAnotherWindowIsClosed(t *testing.T) {
	path := filepath.Join(t.TempDir(), "state.toml")
	var w *shop
	onFixture(t, func() Options {
		o := inShop(&w, "runs")()
		o.State = path
		return o
	}, 100, 24, func(r *fixture) {
		do := func(lines ...string) {
			t.Helper()
			for _, line := range lines {
				if err := r.app.command(line); err != nil {
					t.Fatalf(":%s: %v", line, err)
				}
			}
		}
		do("filter status:failed", "filter save mine", "theme mono")
		if s := settings.LoadState(path); s.Filters["mine"] != "status:failed" || s.Theme != "mono" {
			t.Errorf("after it was saved the file holds %+v", s)
		}
		// another window, which began before and has saved and typed something too
		if err := (settings.State{Filters: map[string]string{"mine": "status:failed", "other": "type:order"},
			Commands: []string{"queues"}}).Save(path); err != nil {
			t.Fatal(err)
		}
		r.press(":", "w", "o", "r", "k", "e", "r", "s", "enter")
		do("runs", "filter status:failed", "filter save again", "filter forget mine")
		if err := r.app.saveTyped(); err != nil {
			t.Fatal(err)
		}
		s := settings.LoadState(path)
		if want := map[string]string{"other": "type:order", "again": "status:failed"}; !maps.Equal(s.Filters, want) {
			t.Errorf("the filters are %v, want %v", s.Filters, want)
		}
		if want := []string{"queues", "workers"}; !slices.Equal(s.Commands, want) {
			t.Errorf("the history is %q, want %q", s.Commands, want)
		}
	})
}
