package view

import (
	"errors"
	"fmt"
	"os"
	"os/exec"
	"runtime"
	"sync/atomic"
	"time"
)

// lent is more than 0 while the terminal is another program's, and for lentAfter then: a Ctrl-C may be told to this one later than to that. Where the
// terminal is the UI's, Ctrl-C is a key.
var lent atomic.Int32

const lentAfter = 2 * time.Second

// Lent says that the terminal is lent to a person's editor: a Ctrl-C is for that one then, although all programs of the terminal get it.
func Lent() bool { return lent.Load() > 0 }

// edit gives the terminal to the person's editor with a text and is what became of it.
func (a *App) edit(text []byte) ([]byte, error) {
	name := a.editor()
	words := split(name)
	if len(words) == 0 {
		return nil, errors.New("no editor: set EDITOR")
	}
	f, err := os.CreateTemp("", "kagzi-*.json")
	if err != nil {
		return nil, err
	}
	defer os.Remove(f.Name())
	_, err = f.Write(text)
	if err = errors.Join(err, f.Close()); err != nil {
		return nil, err
	}
	command := exec.CommandContext(a.ctx, words[0], append(words[1:], f.Name())...)
	command.Stdin, command.Stdout, command.Stderr = os.Stdin, os.Stdout, os.Stderr
	lent.Add(1)
	defer time.AfterFunc(lentAfter, func() { lent.Add(-1) })
	if !a.tv.Suspend(func() { err = command.Run() }) {
		return nil, errors.New("the terminal cannot be given to an editor here")
	}
	if err != nil {
		return nil, fmt.Errorf("%s: %w", name, err)
	}
	return os.ReadFile(f.Name())
}

// editor is the person's, as everywhere: VISUAL, EDITOR, or what every system has.
func (a *App) editor() string {
	for _, name := range []string{"VISUAL", "EDITOR"} {
		if value, ok := a.options.Lookup(name); ok && value != "" {
			return value
		}
	}
	if runtime.GOOS == "windows" {
		return "notepad"
	}
	return "vi"
}
