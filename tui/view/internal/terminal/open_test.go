//go:build unix

package terminal

import (
	"testing"

	"github.com/gdamore/tcell/v2"
)

func TestACharacterSetThatIsUnknownGetsASCII(t *testing.T) {
	for _, set := range []string{"ISO-8859-1", "iso88591", "ANSI_X3.4-1968", "KOI8-R"} {
		encoding := tcell.GetEncoding(set)
		if encoding == nil {
			t.Errorf("%s: no terminal opens", set)
			continue
		}
		if text, err := encoding.NewEncoder().String("a│b"); err != nil && text != "" || len(text) > 3 {
			t.Errorf("%s: writes %q", set, text)
		}
	}
}
