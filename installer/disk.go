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

// disk writes directories, files and the binary, and records how to undo each change.
type disk struct {
	root    string // prefix of every path; empty for the real disk
	places  places
	chown   func(path, account, group string) error
	protect func(path, sddl string) error // sets a Windows access list
	undo    []func() error
}

func (d *disk) at(path string) string { return filepath.Join(d.root, path) }

// rollback undoes the changes in reverse order.
func (d *disk) rollback() error {
	var failures []error
	for _, undo := range slices.Backward(d.undo) {
		failures = append(failures, undo())
	}
	d.undo = nil
	return errors.Join(failures...)
}

func (d *disk) onRollback(undo func() error) { d.undo = append(d.undo, undo) }

// makeDirectory creates a directory and its missing parents. Everyone can read the parents.
func (d *disk) makeDirectory(want directory) error {
	path := d.at(want.path)
	if info, err := os.Stat(path); err == nil {
		if !info.IsDir() {
			return fmt.Errorf("%s is not a directory", want.path)
		}
		if want.sddl == "" || !want.own {
			return nil
		}
		return d.protect(path, want.sddl) // in a directory that everyone can write to, someone else may have created it
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
	d.onRollback(func() error { return os.RemoveAll(path) }) // including what a failed service left in it
	return os.Chmod(path, mode)                              // regardless of the umask
}

// expect records a directory that the service manager will create: rollback removes it if it did
// not exist.
func (d *disk) expect(path string) {
	if _, err := os.Lstat(d.at(path)); errors.Is(err, fs.ErrNotExist) {
		d.onRollback(func() error { return os.RemoveAll(d.at(path)) })
	}
}

// writeFile writes a file if it is missing, and reports whether it did.
func (d *disk) writeFile(want file) (written bool, err error) {
	path := d.at(want.path)
	f, err := os.OpenFile(path, os.O_WRONLY|os.O_CREATE|os.O_EXCL, want.mode)
	if errors.Is(err, fs.ErrExist) {
		return false, nil
	}
	if err != nil {
		return false, err
	}
	d.onRollback(func() error { return ignoreMissing(os.Remove(path)) })
	_, err = f.WriteString(want.content)
	err = errors.Join(err, f.Close(), os.Chmod(path, want.mode))
	if err == nil && want.group != "" {
		err = d.chown(path, "", want.group)
	}
	return true, err
}

// copyBinary replaces a program, which may be running, and reports whether the two differed. The
// old program is kept next to the new one until finish.
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
	// recorded before the rename, which may fail after setAside has moved the old program
	d.onRollback(func() error { return restoreBinary(path, existed) })
	return true, os.Rename(path+".new", path)
}

// setAside keeps a program under the name .old. It uses a hard link, so that one rename replaces
// the program and a crash in between leaves a program in place. Windows cannot replace a running
// program and some file systems have no links; there it moves the program away first.
func (d *disk) setAside(path string) error {
	if err := ignoreMissing(os.Remove(path + ".old")); err != nil {
		return fmt.Errorf("an older version of the program is still running: %w", err)
	}
	if info, err := os.Lstat(path); err == nil && info.Mode().IsRegular() && d.places.system != "windows" &&
		os.Link(path, path+".old") == nil {
		return nil
	}
	return os.Rename(path, path+".old")
}

// restoreBinary puts the old program back. Windows cannot remove a running program, but can rename
// it.
func restoreBinary(path string, existed bool) error {
	if !existed {
		return errors.Join(ignoreMissing(os.Remove(path)), ignoreMissing(os.Remove(path+".new")))
	}
	if err := ignoreMissing(os.Rename(path, path+".new")); err != nil {
		return err
	}
	return errors.Join(os.Rename(path+".old", path), ignoreMissing(os.Remove(path+".new")))
}

// finish removes the replaced program. On Windows a running one stays until the next upgrade.
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
