package widget_test

import (
	"testing"

	"github.com/gdamore/tcell/v2"
	"github.com/rivo/tview"
)

// benchmarkDraw draws a primitive on a large screen again and again.
func benchmarkDraw(b *testing.B, p tview.Primitive) {
	screen := tcell.NewSimulationScreen("UTF-8")
	if err := screen.Init(); err != nil {
		b.Fatal(err)
	}
	defer screen.Fini()
	screen.SetSize(200, 60)
	p.SetRect(0, 0, 200, 60)
	b.ReportAllocs()
	for b.Loop() {
		p.Draw(screen)
	}
}

func tcellKey(letter string) *tcell.EventKey {
	return tcell.NewEventKey(tcell.KeyRune, []rune(letter)[0], tcell.ModNone)
}
