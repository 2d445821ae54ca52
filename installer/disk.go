package installer

import (
	"bytes"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
)

// disk is where directories, files and the binary are put. It notes what it does, so that rollback can take it back.
type disk struct {
	root    string // before every path; empty for the real one
	places  places
	chown   func(path, account, group string) error
	protect func(path, sddl string) error // sets a Windows access list
	undo    []func() error
}

func (d *disk) at(path string) string { return filepath.Join(d.root, path) }

// rollback takes back what was done since the disk was made, the last first.
func (d *disk) rollback() error {
	var failures []error
	for _, undo := range slices.Backward(d.undo) {
		failures = append(failures, undo())
	}
	d.undo = nil
	return errors.Join(failures...)
}

func (d *disk) later(undo func() error) { d.undo = append(d.undo, undo) }

// makeDirectory makes what is missing of a directory; those above it are everybody's to read.
func (d *disk) makeDirectory(want directory) error {
	path := d.at(want.path)
	if info, err := os.Stat(path); err == nil {
		if !info.IsDir() {
			return fmt.Errorf("%s is no directory", want.path)
		}
		if want.sddl == "" || !want.own {
			return nil
		}
		return d.protect(path, want.sddl) // where everybody may make a directory, somebody else may have made this one
	}
	var missing []string
	for above := filepath.Dir(path); ; above = filepath.Dir(above) {
		if _, err := os.Stat(above); err == nil || above == filepath.Dir(above) {
			break
		}
		missing = append(missing, above)
	}
	for _, above := range slices.Backward(missing) {
		if err := d.mkdir(above, 0o755); err != nil {
			return err
		}
	}
	if err := d.mkdir(path, want.mode); err != nil {
		return err
	}
	if want.account != "" || want.group != "" {
		if err := d.chown(path, want.account, want.group); err != nil {
			return err
		}
	}
	if want.sddl != "" {
		return d.protect(path, want.sddl)
	}
	return nil
}

func (d *disk) mkdir(path string, mode fs.FileMode) error {
	if err := os.Mkdir(path, mode); err != nil {
		return err
	}
	d.later(func() error { return os.RemoveAll(path) }) // with what a service that failed has left in it
	return os.Chmod(path, mode)                         // whatever the umask made of it
}

// expect notes a directory that the service manager makes, so that it does not stay when it was not there before.
func (d *disk) expect(path string) {
	if _, err := os.Lstat(d.at(path)); errors.Is(err, fs.ErrNotExist) {
		d.later(func() error { return os.RemoveAll(d.at(path)) })
	}
}

// writeFile writes a file that is missing, and says whether it did.
func (d *disk) writeFile(want file) (written bool, err error) {
	path := d.at(want.path)
	f, err := os.OpenFile(path, os.O_WRONLY|os.O_CREATE|os.O_EXCL, want.mode)
	if errors.Is(err, fs.ErrExist) {
		return false, nil
	}
	if err != nil {
		return false, err
	}
	d.later(func() error { return ignoreMissing(os.Remove(path)) })
	_, err = f.WriteString(want.content)
	err = errors.Join(err, f.Close(), os.Chmod(path, want.mode))
	if err == nil && want.group != "" {
		err = d.chown(path, "", want.group)
	}
	return true, err
}

// copyBinary puts a program in the place of another, which may be running, and says whether they differed. The other is kept
// beside it until finish.
func (d *disk) copyBinary(from, to string) (changed bool, err error) {
	next, err := os.ReadFile(from)
	if err != nil {
		return false, err
	}
	path := d.at(to)
	present, err := os.ReadFile(path)
	existed := err == nil
	if existed && bytes.Equal(present, next) {
		return false, nil
	}
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return false, err
	}
	if err := d.makeDirectory(directory{path: filepath.Dir(to), mode: 0o755}); err != nil {
		return false, err
	}
	if err := writeSynced(path+".new", next, 0o755); err != nil {
		return false, errors.Join(err, ignoreMissing(os.Remove(path+".new")))
	}
	if existed {
		if err := d.setAside(path); err != nil {
			return false, errors.Join(err, ignoreMissing(os.Remove(path+".new")))
		}
	}
	d.later(func() error { return takeBack(path, existed) }) // before what may fail: from now on the one before may be out of its place
	return true, os.Rename(path+".new", path)
}

// setAside keeps a program beside its place, which the next is to take in one move: a machine that goes down between two must not come up
// without any. Windows lets nothing take the place of a program that runs, so there, and where a file has but one name, it goes out of it.
func (d *disk) setAside(path string) error {
	if err := ignoreMissing(os.Remove(path + ".old")); err != nil {
		return fmt.Errorf("a program before the last still runs: %w", err)
	}
	if info, err := os.Lstat(path); err == nil && info.Mode().IsRegular() && d.places.system != "windows" && os.Link(path, path+".old") == nil {
		return nil
	}
	return os.Rename(path, path+".old")
}

// takeBack makes the program what it was. One that runs cannot be removed on Windows, but can be renamed.
func takeBack(path string, existed bool) error {
	if !existed {
		return errors.Join(ignoreMissing(os.Remove(path)), ignoreMissing(os.Remove(path+".new")))
	}
	if err := ignoreMissing(os.Rename(path, path+".new")); err != nil {
		return err
	}
	return errors.Join(os.Rename(path+".old", path), ignoreMissing(os.Remove(path+".new")))
}

// finish drops the program that was replaced; on Windows one that still runs stays until the next time.
func finish(path string) { _ = os.Remove(path + ".old") }

func writeSynced(path string, content []byte, mode fs.FileMode) error {
	f, err := os.OpenFile(path, os.O_WRONLY|os.O_CREATE|os.O_TRUNC, mode)
	if err != nil {
		return err
	}
	_, err = f.Write(content)
	if err == nil {
		err = f.Sync()
	}
	return errors.Join(err, f.Close(), os.Chmod(path, mode))
}

func ignoreMissing(err error) error {
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	return err
}
