package view

import (
	"bytes"
	"encoding/csv"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
)

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

// fillNew writes a file that was just made. One that is not whole is taken away: it would be taken for what was saved, and its name is needed
// for the next try.
func fillNew(f *os.File, data []byte) error {
	_, err := f.Write(data)
	if err = errors.Join(err, f.Close()); err != nil {
		return errors.Join(err, os.Remove(f.Name()))
	}
	return nil
}

// csvOf writes a table. A cell that a spreadsheet would take for a formula gets a quote in front: names come from users.
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
