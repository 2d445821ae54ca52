package demo

import (
	"os"

	"github.com/spf13/cobra"
	"golang.org/x/term"
)

// screenOf inspects a command's output.
func screenOf(cmd *cobra.Command, noColour bool) screen {
	s := screen{out: cmd.OutOrStdout()}
	f, ok := s.out.(*os.File)
	if !ok || !term.IsTerminal(int(f.Fd())) || os.Getenv("TERM") == "dumb" || !understandsCodes(f) {
		return s
	}
	width, _, err := term.GetSize(int(f.Fd()))
	if err != nil || width < minWidth {
		return s
	}
	s.terminal, s.width = true, width
	s.colour = !noColour && os.Getenv("NO_COLOR") == ""
	return s
}

// minWidth is the narrowest terminal in which a line per run fits.
const minWidth = 50
