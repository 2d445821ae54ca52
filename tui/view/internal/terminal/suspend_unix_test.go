//go:build unix

package terminal

import (
	"errors"
	"os"
	"runtime"
	"syscall"
	"testing"

	"github.com/gdamore/tcell/v2"
	"github.com/rivo/tview"
)

func TestJobs_suspends_when_asked_and_redraws_when_it_goes_on(t *testing.T) {
	called := make(chan string)
	end := Jobs(func() bool { return false }, func() { called <- "suspend" }, func() { called <- "back" })
	defer end()
	suspended.Store(true) // by its own stop, whose end must lead to nothing
	if err := syscall.Kill(os.Getpid(), syscall.SIGCONT); err != nil {
		t.Fatal(err)
	}
	for suspended.Load() {
		select {
		case got := <-called:
			t.Fatalf("the end of its own stop led to %s", got)
		default:
			runtime.Gosched()
		}
	}
	for _, test := range []struct {
		signal syscall.Signal
		want   string
	}{{syscall.SIGTSTP, "suspend"}, {syscall.SIGCONT, "back"}} {
		if err := syscall.Kill(os.Getpid(), test.signal); err != nil {
			t.Fatal(err)
		}
		if got := <-called; got != test.want {
			t.Errorf("%s led to %s, want %s", test.signal, got, test.want)
		}
	}
}

func TestSuspend_writes_the_whole_frame_again(t *testing.T) {
	simulation := tcell.NewSimulationScreen("UTF-8")
	if err := simulation.Init(); err != nil {
		t.Fatal(err)
	}
	defer simulation.Fini()
	simulation.SetSize(3, 1)
	counted := &counter{SimulationScreen: simulation}
	screen := NewScreen(counted)
	tv := tview.NewApplication().SetScreen(screen)
	draw := func() int {
		counted.cells = 0
		screen.Clear()
		screen.SetContent(0, 0, 'x', nil, tcell.StyleDefault)
		screen.Show()
		return counted.cells
	}
	if first, second := draw(), draw(); first != 3 || second != 0 {
		t.Fatalf("the first frame wrote %d cells and the second %d, want 3 and 0", first, second)
	}
	stopped := errors.New("stopped")
	if err := Suspend(tv, func() error { return stopped }); !errors.Is(err, stopped) {
		t.Fatalf("Suspend returned %v and did not stop", err)
	}
	if !suspended.Swap(false) {
		t.Error("that it goes on would be taken for the end of another stop")
	}
	if n := draw(); n != 3 {
		t.Errorf("after it went on, a frame wrote %d cells, want 3", n)
	}
}

// counter counts the cells that are written.
type counter struct {
	tcell.SimulationScreen
	cells int
}

func (c *counter) SetContent(x, y int, letter rune, marks []rune, style tcell.Style) {
	c.cells++
	c.SimulationScreen.SetContent(x, y, letter, marks, style)
}
