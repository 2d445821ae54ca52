package demo

import (
	"os"

	"golang.org/x/sys/windows"
)

// understandsCodes enables ANSI codes in the console; old ones cannot.
func understandsCodes(f *os.File) bool {
	console := windows.Handle(f.Fd())
	var mode uint32
	if err := windows.GetConsoleMode(console, &mode); err != nil {
		return false
	}
	return windows.SetConsoleMode(console, mode|windows.ENABLE_VIRTUAL_TERMINAL_PROCESSING) == nil
}
