//go:build unix

package view

import (
	"context"
	"errors"
	"os"
	"testing"
	"testing/synctest"

	"github.com/gdamore/tcell/v2"
)

func TestTheEditorsFileIsRemovedWhenTheTerminalIsLost(t *testing.T) {
	folder := t.TempDir()
	t.Setenv("TMPDIR", folder)
	screen := tcell.NewSimulationScreen("UTF-8")
	if err := screen.Init(); err != nil {
		t.Fatal(err)
	}
	defer screen.Fini()
	ctx, cancel := untilHangup(t.Context())
	defer cancel()
	// The editor tells this process twice that the terminal is gone, and stays.
	editor := `sh -c 'test -s "$0" && kill -HUP $PPID && kill -HUP $PPID; exec sleep 600'`
	a := newApp(ctx, Options{API: emptyShop(), Screen: screen,
		Lookup: func(name string) (string, bool) { return editor, name == "EDITOR" }})
	if text, err := a.edit([]byte("{}")); err == nil {
		t.Errorf("the editor returned %q", text)
	}
	if ctx.Err() == nil {
		t.Error("the program goes on without its terminal")
	}
	if left, err := os.ReadDir(folder); err != nil || len(left) > 0 {
		t.Errorf("%v is left (%v)", left, err)
	}
}

func TestCtrlZSuspendsFromEverywhere(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var w *shop
		o := inShop(&w, "runs")()
		screen := tcell.NewSimulationScreen("UTF-8")
		if err := screen.Init(); err != nil {
			t.Fatal(err)
		}
		defer screen.Fini()
		screen.SetSize(100, 30)
		o.Screen, o.Lookup = screen, func(string) (string, bool) { return "", false }
		ctx, cancel := context.WithCancel(t.Context())
		r := &fixture{t: t, app: newApp(ctx, o), screen: screen}
		stops := 0
		r.app.stop = func() error { stops++; return nil }
		r.app.begin()
		r.settle()
		r.press("ctrl-z", "n")
		r.enter("order")
		r.press("ctrl-z", "?", "ctrl-z")
		if stops != 3 {
			t.Errorf("suspended %d times, want 3", stops)
		}
		r.shows("order?")
		r.app.stop = func() error { return errors.New("no job control") }
		r.press("esc", "ctrl-z")
		r.shows("no job control")
		cancel()
		r.app.end()
	})
}
