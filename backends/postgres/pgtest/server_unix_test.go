//go:build unix

package pgtest

import (
	"errors"
	"io/fs"
	"os"
	"testing"
	"time"
)

// PgBouncer 1.18 is such a server: it says nothing of what QUIT is to do.
func TestNothingIsLeftOfAServerThatDoesNotEndByQuit(t *testing.T) {
	dir, err := os.MkdirTemp("", "kagzi-keeper-")
	if err != nil {
		t.Fatal(err)
	}
	owner, err := ownDirectory(dir)
	if err != nil {
		t.Skipf("NOT TESTED: %v", err)
	}
	ended, err := serve(dir, owner, []string{"sleep", "1000"})
	if err != nil {
		t.Fatal(err)
	}
	held.Lock()
	last := len(held.pipes) - 1
	held.pipes[last].Close() // as when this process ends
	held.pipes = held.pipes[:last]
	held.Unlock()
	select {
	case <-ended:
	case <-time.After(30 * time.Second):
		t.Fatal("whoever keeps the server waits for its end, and it goes on")
	}
	if _, err := os.Stat(dir); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("its directory is left: %v", err)
	}
}
