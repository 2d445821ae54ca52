package demo

import (
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/kagzi/kagzi/tui/render"
)

func TestAPipedBoardPrintsOneLinePerEvent(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var out strings.Builder
		b := newBoard(screen{out: &out}, []string{"nap", "order saga"})
		time.Sleep(1500 * time.Millisecond)
		b.status(0, "RUNNING", render.Busy)
		b.detail(0, "1 of 3 steps", "before COMPLETED \x1b[2J")
		b.detail(0, "2 of 3 steps", "")
		b.judge(1, false, "ran \x07 twice")
		b.close()
		want := "  1.500s  nap         RUNNING\n" +
			`  1.500s  nap         before COMPLETED \x1b[2J` + "\n" +
			`  1.500s  order saga  ✗ ran \x07 twice` + "\n"
		if out.String() != want {
			t.Errorf("printed\n%s\nwant\n%s", out.String(), want)
		}
	})
}

func TestATerminalsBoardDrawsItsLinesInPlace(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var out strings.Builder
		b := newBoard(screen{out: &out, terminal: true, width: 80}, []string{"nap", "order saga"})
		b.status(0, "SLEEPING", render.Waiting)
		b.detail(0, "1 of 3 steps", "nap \x1b[2J")
		time.Sleep(redrawEvery)
		synctest.Wait()
		first := out.String()
		if strings.Count(first, "\n") != 3 || strings.Contains(first, "\x1b[3A") {
			t.Fatalf("first drawing: %q", first)
		}
		b.judge(0, true, "slept \x1b]0;x\x07")
		b.close()
		second := strings.TrimPrefix(out.String(), first)
		if !strings.HasPrefix(second, "\x1b[3A") || !strings.Contains(second, `✓  nap         SLEEPING`) || !strings.Contains(second, `slept \x1b]0;x\x07`) {
			t.Errorf("second drawing: %q", second)
		}
		if strings.Contains(out.String(), "\x1b[2J") || strings.Contains(out.String(), "\x1b]0;") {
			t.Errorf("user text reached the terminal as it was: %q", out.String())
		}
	})
}
