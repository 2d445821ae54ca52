package view

import (
	"fmt"

	"github.com/kagzi/kagzi/tui/render"
)

// maxCopy is how much terminals take through OSC 52: 100,000 bytes of base64 with what is around them.
const maxCopy = 74_994

// copy hands text to the terminal's clipboard, which works over SSH as well, and says what it did. The text is base64 on its way, so that
// nothing in it can be obeyed.
func (a *App) copy(what, text string) error {
	if text == "" {
		return fmt.Errorf("there is no %s to copy", what)
	}
	if len(text) > maxCopy {
		return fmt.Errorf("the %s has %s, and terminals take %s at most: save it with ctrl-s", what, render.Bytes(int64(len(text))), render.Bytes(maxCopy))
	}
	a.screen.SetClipboard([]byte(text))
	a.say("copied the %s, %s", what, render.Bytes(int64(len(text))))
	return nil
}
