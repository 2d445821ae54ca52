package view

import (
	"bytes"
	"encoding/csv"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strings"
	"sync/atomic"
	"time"

	"github.com/kagzi/kagzi/tui/render"
)

// maxCopy is how much terminals take through OSC 52: 100,000 bytes of base64 with what is around them.
const maxCopy = 74_994

// copy hands text to the terminal's clipboard, which works over SSH as well, and says what it did.
// The text is base64 on its way, so that nothing in it can be obeyed.
func (a *App) copy(what, text string) error {
	if text == "" {
		return fmt.Errorf("there is no %s to copy", what)
	}
	if len(text) > maxCopy {
		return fmt.Errorf("the %s has %s, and terminals take %s at most: save it with ctrl-s", what,
			render.Bytes(int64(len(text))), render.Bytes(maxCopy))
	}
	a.screen.SetClipboard([]byte(text))
	a.say("copied the %s, %s", what, render.Bytes(int64(len(text))))
	return nil
}

// save writes what the page shows to a file, as CSV or JSON by the ending of its name. It never writes over a file.
func (a *App) save(path string) error {
	p, ok := a.trails.top().(saved)
	if !ok {
		return errors.New("this view cannot be saved")
	}
	var data []byte
	var err error
	switch strings.ToLower(filepath.Ext(path)) {
	case ".csv":
		titles, rows := p.Rows()
		data, err = csvOf(titles, rows)
	case ".json":
		data, err = p.JSON()
	default:
		return fmt.Errorf("%s: want a name that ends in .csv or .json", path)
	}
	if err != nil {
		return err
	}
	if path, err = inHome(path); err != nil {
		return err
	}
	f, err := os.OpenFile(path, os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o600)
	if errors.Is(err, os.ErrExist) {
		return fmt.Errorf("there is a file of that name already: %s", filepath.Base(path))
	}
	if err != nil {
		return err
	}
	if err := fillNew(f, data); err != nil {
		return err
	}
	a.say("saved %s", path)
	return nil
}

// inHome is a path as a shell reads it: a leading ~/ is the person's home.
func inHome(path string) (string, error) {
	rest, found := strings.CutPrefix(path, "~/")
	if !found {
		return path, nil
	}
	home, err := os.UserHomeDir()
	if err != nil {
		return "", fmt.Errorf("%s: %w; name the directory itself", path, err)
	}
	return filepath.Join(home, rest), nil
}

// fillNew writes a file that was just made. One that is not whole is taken away: it would be taken
// for what was saved, and its name is needed for the next try.
func fillNew(f *os.File, data []byte) error {
	_, err := f.Write(data)
	if err = errors.Join(err, f.Close()); err != nil {
		return errors.Join(err, os.Remove(f.Name()))
	}
	return nil
}

// csvOf writes a table. A cell that a spreadsheet would take for a formula gets a quote in front:
// names come from users.
func csvOf(titles []string, rows [][]string) ([]byte, error) {
	var b bytes.Buffer
	w := csv.NewWriter(&b)
	if err := w.Write(titles); err != nil {
		return nil, err
	}
	for _, row := range rows {
		for i, cell := range row {
			if cell != "" && strings.ContainsRune("=+-@\t\r", rune(cell[0])) {
				row[i] = "'" + cell
			}
		}
		if err := w.Write(row); err != nil {
			return nil, err
		}
	}
	w.Flush()
	return b.Bytes(), w.Error()
}

// lent is more than 0 while the terminal is another program's, and for lentAfter then: a Ctrl-C may
// be told to this one later than to that. Where the terminal is the UI's, Ctrl-C is a key.
var lent atomic.Int32

const lentAfter = 2 * time.Second

// Lent says that the terminal is lent to a person's editor: a Ctrl-C is for that one then, although
// all programs of the terminal get it.
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
