//go:build linux

package main

import (
	"path/filepath"
	"testing"
)

// TestOnlyADiskThatWasNeverThereIsNotHere has a disk that cannot be mounted, and one whose file system knows no power cut.
func TestOnlyADiskThatWasNeverThereIsNotHere(t *testing.T) {
	d := &disk{dir: t.TempDir(), image: filepath.Join(t.TempDir(), "nothing")}
	if err := d.tryOut(t.Context()); !isNotHere(err) {
		t.Errorf("at first: %v, want that it cannot be injected here", err)
	}
	if err := d.mount(t.Context()); err == nil || isNotHere(err) {
		t.Errorf("later: %v, want a failure", err)
	}
	if err := (&disk{dir: "/proc"}).cutPower(); err == nil || isNotHere(err) {
		t.Errorf("a cut: %v, want a failure", err)
	}
}
