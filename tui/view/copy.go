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

// maxCopy is the most text that terminals take through OSC 52: 100,000 bytes of base64 and its
// framing.
const maxCopy = 74_994

// copy sends text to the terminal's clipboard through OSC 52, which works over SSH too, and reports
// it. Base64 keeps the terminal from interpreting the text.
func (a *App) copy(what, text string) error {
	if text == "" {
		return fmt.Errorf("there is no %s to copy", what)
	}
	if len(text) > maxCopy {
		return fmt.Errorf("the %s has %s, and terminals take at most %s: save it with ctrl-s", what,
			render.Bytes(int64(len(text))), render.Bytes(maxCopy))
	}
	a.screen.SetClipboard([]byte(text))
	a.say("copied the %s, %s", what, render.Bytes(int64(len(text))))
	return nil
}

// save writes what the page shows to a new file, as CSV or JSON by its extension. It never
// overwrites a file.
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
		return fmt.Errorf("file exists: %s", filepath.Base(path))
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

// inHome expands a leading ~/ to the home directory.
func inHome(path string) (string, error) {
	rest, found := strings.CutPrefix(path, "~/")
	if !found {
		return path, nil
	}
	home, err := os.UserHomeDir()
	if err != nil {
		return "", fmt.Errorf("%s: %w; use a full path", path, err)
	}
	return filepath.Join(home, rest), nil
}

// fillNew writes a file that was just created. If that fails it removes the file: an incomplete
// file could be mistaken for the saved one, and the next try needs the name.
func fillNew(f *os.File, data []byte) error {
	_, err := f.Write(data)
	if err = errors.Join(err, f.Close()); err != nil {
		return errors.Join(err, os.Remove(f.Name()))
	}
	return nil
}

// csvOf writes a table. A cell that a spreadsheet would run as a formula gets a leading quote:
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

// lent is above 0 while another program has the terminal, and for lentAfter afterwards: this
// program may receive a Ctrl-C later than the other one. Otherwise the UI reads Ctrl-C as a key.
var lent atomic.Int32

const lentAfter = 2 * time.Second

// Lent reports whether an editor has the terminal. A Ctrl-C is then meant for the editor, although
// all programs of the terminal receive it.
func Lent() bool { return lent.Load() > 0 }

// edit opens a text in the person's editor and returns the edited text.
func (a *App) edit(text []byte) ([]byte, error) {
	name := a.editor()
	words := split(name)
	if len(words) == 0 {
		return nil, errors.New("no editor found: set EDITOR")
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
	if !a.tv.Suspend(func() {
		err = command.Run()
		if a.ctx.Err() != nil { // a lost terminal must not be taken back
			a.quit()
		}
	}) {
		return nil, errors.New("an editor cannot run in this terminal")
	}
	if err != nil {
		return nil, fmt.Errorf("%s: %w", name, err)
	}
	text, err = os.ReadFile(f.Name())
	return render.FileText(text), err
}

// editor returns the person's editor: VISUAL, EDITOR, or the system's default.
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
