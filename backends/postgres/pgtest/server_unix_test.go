//go:build unix

package pgtest

import (
	"errors"
	"io/fs"
	"os"
	"testing"
	"time"
)

// PgBouncer 1.18 is such a server: it does not handle QUIT.
func TestNothingIsLeftOfAServerThatDoesNotEndByQuit(t *testing.T) {
	for range 30 { // ended before it has begun, or after
		dir, ended := keep(t, "sleep", "1000")
		held.Lock()
		last := len(held.pipes) - 1
		held.pipes[last].Close() // as if this process had ended
		held.pipes = held.pipes[:last]
		held.Unlock()
		nothingIsLeft(t, dir, ended)
	}
}

// A server that cannot start is reported before the time limit.
func TestNothingIsLeftOfAServerThatEndsByItself(t *testing.T) {
	dir, ended := keep(t, "false")
	nothingIsLeft(t, dir, ended)
}

func keep(t *testing.T, command ...string) (dir string, ended <-chan struct{}) {
	t.Helper()
	dir, err := os.MkdirTemp("", "kagzi-keeper-")
	if err != nil {
		t.Fatal(err)
	}
	owner, err := ownDirectory(dir)
	if err != nil {
		t.Skipf("NOT TESTED: %v", err)
	}
	ended, err = serve(dir, owner, command)
	if err != nil {
		t.Fatal(err)
	}
	return dir, ended
}

func nothingIsLeft(t *testing.T, dir string, ended <-chan struct{}) {
	t.Helper()
	select {
	case <-ended:
	case <-time.After(30 * time.Second):
		t.Fatal("the program that keeps the server waits for its end, and it goes on")
	}
	if _, err := os.Stat(dir); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("its directory is left: %v", err)
	}
}
