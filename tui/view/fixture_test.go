package view

import (
	"context"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/gdamore/tcell/v2"
)

// fixture runs the program on a screen in memory, in a bubble in which time stands still until
// everything waits. The test does the steps of the event loop.
type fixture struct {
	t      *testing.T
	app    *App
	screen tcell.SimulationScreen
}

// onFixture runs body in a bubble. The options, and the shop in them, must be created inside it.
func onFixture(t *testing.T, options func() Options, width, height int, body func(r *fixture)) {
	t.Helper()
	synctest.Test(t, func(t *testing.T) {
		o := options()
		screen := tcell.NewSimulationScreen("UTF-8")
		if err := screen.Init(); err != nil {
			t.Fatal(err)
		}
		screen.SetSize(width, height)
		o.Screen, o.Zone = screen, time.UTC
		if o.Lookup == nil {
			o.Lookup = func(string) (string, bool) { return "", false }
		}
		ctx, cancel := context.WithCancel(t.Context())
		r := &fixture{t: t, app: newApp(ctx, o), screen: screen}
		if r.app.begin(); r.app.wrong != nil {
			t.Fatal(r.app.wrong)
		}
		r.settle()
		body(r)
		cancel()
		r.app.end()
		screen.Fini()
	})
}

// settle waits until everything waits for time.
func (r *fixture) settle() {
	for {
		synctest.Wait()
		if !r.app.posts.Waiting() {
			return
		}
		r.app.posts.Run()
		r.draw() // what is on the screen decides what is read next
	}
}

// pass advances the time.
func (r *fixture) pass(d time.Duration) {
	r.settle()
	for end := time.Now().Add(d); time.Now().Before(end); {
		time.Sleep(min(100*time.Millisecond, time.Until(end))) // in the bubble
		r.settle()
	}
}

// keyNames maps names to the keys that are not characters.
var keyNames = map[string]tcell.Key{
	"enter": tcell.KeyEnter, "esc": tcell.KeyEscape, "tab": tcell.KeyTab, "shift-tab": tcell.KeyBacktab,
	"up": tcell.KeyUp, "down": tcell.KeyDown,
	"left": tcell.KeyLeft, "right": tcell.KeyRight, "pgdn": tcell.KeyPgDn, "pgup": tcell.KeyPgUp, "home": tcell.KeyHome,
	"end":       tcell.KeyEnd,
	"backspace": tcell.KeyBackspace2, "ctrl-space": tcell.KeyCtrlSpace, `ctrl-\`: tcell.KeyCtrlBackslash,
}

// press presses keys by their names.
func (r *fixture) press(keys ...string) {
	r.t.Helper()
	for _, name := range keys {
		key, ok := keyNames[name]
		event := tcell.NewEventKey(key, 0, tcell.ModNone)
		switch letter, ctrl := strings.CutPrefix(name, "ctrl-"); {
		case ok:
		case name == "space":
			event = tcell.NewEventKey(tcell.KeyRune, ' ', tcell.ModNone)
		case ctrl && len(letter) == 1:
			event = tcell.NewEventKey(tcell.KeyCtrlA+tcell.Key(letter[0]-'a'), 0, tcell.ModCtrl)
		case len([]rune(name)) == 1:
			event = tcell.NewEventKey(tcell.KeyRune, []rune(name)[0], tcell.ModNone)
		default:
			r.t.Fatalf("there is no key %q", name)
		}
		r.app.key(event)
		r.draw()
		r.settle()
	}
}

// enter types text.
func (r *fixture) enter(text string) {
	r.t.Helper()
	for _, letter := range text {
		name := string(letter)
		if letter == ' ' {
			name = "space"
		}
		r.press(name)
	}
}

// draw draws a frame and returns the screen.
func (r *fixture) draw() string {
	w, h := r.screen.Size()
	f := newFrame(r.app)
	f.SetRect(0, 0, w, h)
	r.screen.Clear()
	f.Draw(r.screen)
	r.screen.Show()
	cells, width, height := r.screen.GetContents()
	var b strings.Builder
	for y := range height {
		var line strings.Builder
		for x := 0; x < width; x++ {
			line.WriteString(string(cells[y*width+x].Runes))
		}
		b.WriteString(strings.TrimRight(line.String(), " \x00") + "\n")
	}
	return b.String()
}

// shows fails unless each of the texts is on the screen.
func (r *fixture) shows(texts ...string) {
	r.t.Helper()
	screen := r.draw()
	for _, text := range texts {
		if !strings.Contains(screen, text) {
			r.t.Fatalf("%q is not on the screen:\n%s", text, screen)
		}
	}
}

// lacks fails if one of the texts is on the screen.
func (r *fixture) lacks(texts ...string) {
	r.t.Helper()
	screen := r.draw()
	for _, text := range texts {
		if strings.Contains(screen, text) {
			r.t.Fatalf("%q is on the screen:\n%s", text, screen)
		}
	}
}

// golden compares what was drawn with a file in testdata; UPDATE=1 writes it.
func golden(t *testing.T, name, got string) {
	t.Helper()
	path := filepath.Join("testdata", name+".golden")
	if os.Getenv("UPDATE") != "" {
		if err := os.MkdirAll("testdata", 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(path, []byte(got), 0o644); err != nil {
			t.Fatal(err)
		}
		return
	}
	want, err := os.ReadFile(path)
	if err != nil {
		t.Fatalf("%v; UPDATE=1 writes it", err)
	}
	if got == string(want) {
		return
	}
	had, has := strings.Split(string(want), "\n"), strings.Split(got, "\n")
	screen := ""
	for i, line := range has {
		if strings.HasPrefix(line, "== ") {
			screen = line
		}
		if i >= len(had) || line != had[i] {
			t.Errorf(
				"%s is not what it was from line %d on, %s\n got %q\nwant %q\nlook at it, and write it with UPDATE=1 when it is right", path, i+1, screen, line, append(had, "")[min(i, len(had))])
			return
		}
	}
	t.Errorf("%s had more lines", path)
}
