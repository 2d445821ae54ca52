package demo

import (
	"slices"
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
		if !strings.HasPrefix(second, "\x1b[3A") || !strings.Contains(second, `✓  nap         SLEEPING`) ||
			!strings.Contains(second, `slept \x1b]0;x\x07`) {
			t.Errorf("second drawing: %q", second)
		}
		if strings.Contains(out.String(), "\x1b[2J") || strings.Contains(out.String(), "\x1b]0;") {
			t.Errorf("user text reached the terminal as it was: %q", out.String())
		}
	})
}

func TestTextWrapsAtSpaces(t *testing.T) {
	for _, c := range []struct {
		text  string
		cells int
		want  []string
	}{
		{"card refunded, then stock", 14, []string{"card refunded,", "then stock"}},
		{"card refunded, then stock", 13, []string{"card", "refunded,", "then stock"}},
		{"card refunded, then stock", 0, []string{"card refunded, then stock"}},
		{"an unbreakable word", 5, []string{"an", "unbreakable", "word"}},
		{"größer größer", 6, []string{"größer", "größer"}},
		{"", 5, []string{""}},
	} {
		if got := wrapWords(c.text, c.cells); !slices.Equal(got, c.want) {
			t.Errorf("wrapWords(%q, %d) = %q, want %q", c.text, c.cells, got, c.want)
		}
	}
}

func TestTheBoardOfAllScenesAndTheirSummaryFitATerminalOf80By24(t *testing.T) {
	const width, height = 80, 24
	before := 3 + len(scenes) + 1 // the start lines, what is shown, a blank line
	if board := len(scenes) + 1; before+board+1 > height {
		t.Errorf("%d lines before the board, %d of it, and the cursor's: more than %d", before, board, height)
	}
	var verdicts []verdict
	var out strings.Builder
	for _, s := range scenes {
		if line := "  " + pad(s.title, titleWidth) + "  " + s.about; render.Width(line) > width ||
			render.Width(s.title) > titleWidth {
			t.Errorf("%q is too long", line)
		}
		verdicts = append(verdicts, verdict{title: s.title, status: "COMPLETED", took: 1234 * time.Millisecond,
			note: strings.Repeat("checked ", 10)})
	}
	summarize(screen{out: &out, terminal: true, width: width}, verdicts, time.Second)
	lines := strings.Split(out.String(), "\n")
	if len(lines) > height {
		t.Errorf("the summary has %d lines, want at most %d:\n%s", len(lines), height, out.String())
	}
	for _, line := range lines {
		if render.Width(line) >= width {
			t.Errorf("a line has %d cells, want less than %d: %q", render.Width(line), width, line)
		}
	}
	if got := strings.Count(out.String(), "checked"); got != 10*len(scenes) {
		t.Errorf("%d words of notes are left, want %d:\n%s", got, 10*len(scenes), out.String())
	}
}
