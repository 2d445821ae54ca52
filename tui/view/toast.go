package view

import (
	"fmt"
	"time"

	"github.com/kagzi/kagzi/tui/theme"
)

const (
	toastFor    = 4 * time.Second
	complainFor = 6 * time.Second
	maxMessages = 500
)

// toast is a line about what just happened, over the hints.
type toast struct {
	text  string
	role  theme.Role
	until time.Time
}

// message is a toast that can be read again with :messages.
type message struct {
	at   time.Time
	text string
	bad  bool
}

// say tells that something worked.
func (a *App) say(format string, args ...any) {
	a.tell(fmt.Sprintf(format, args...), theme.Success, toastFor)
}

// complain tells that something did not.
func (a *App) complain(err error) {
	a.tell(sentence(err), theme.Danger, complainFor)
}

func (a *App) tell(text string, role theme.Role, lasts time.Duration) {
	a.toast = toast{text, role, a.options.Now().Add(lasts)}
	a.keep(text, role == theme.Danger)
	time.AfterFunc(lasts, func() { a.post(func() {}) })
}

// keep lets a line be read with :messages.
func (a *App) keep(text string, bad bool) {
	a.messages = append(a.messages, message{a.options.Now(), text, bad})
	a.messages = a.messages[max(len(a.messages)-maxMessages, 0):]
}
