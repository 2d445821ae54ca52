package view

import (
	"bytes"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"runtime"
)

// edit gives the terminal to the person's editor with a text and is what became of it. changed is false when it was left as it was.
func (a *App) edit(text []byte) (edited []byte, changed bool, err error) {
	name := a.editor()
	words := split(name)
	if len(words) == 0 {
		return nil, false, errors.New("no editor: set EDITOR")
	}
	f, err := os.CreateTemp("", "kagzi-*.json")
	if err != nil {
		return nil, false, err
	}
	defer os.Remove(f.Name())
	_, err = f.Write(text)
	if err = errors.Join(err, f.Close()); err != nil {
		return nil, false, err
	}
	command := exec.CommandContext(a.ctx, words[0], append(words[1:], f.Name())...)
	command.Stdin, command.Stdout, command.Stderr = os.Stdin, os.Stdout, os.Stderr
	if !a.tv.Suspend(func() { err = command.Run() }) {
		return nil, false, errors.New("the terminal cannot be given to an editor here")
	}
	if err != nil {
		return nil, false, fmt.Errorf("%s: %w", name, err)
	}
	edited, err = os.ReadFile(f.Name())
	if err != nil {
		return nil, false, err
	}
	return edited, !bytes.Equal(edited, text), nil
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
