package bench

import (
	"fmt"
	"os"
	"testing"
)

// TestMain ends a process that a test has the bench start as its server: it is this binary, which
// has no server in it. As a run of the tests it would start the next one, and that the next.
func TestMain(m *testing.M) {
	if len(os.Args) > 1 && os.Args[1] == "child" {
		fmt.Fprintln(os.Stderr, "this binary holds tests and no server")
		os.Exit(1)
	}
	os.Exit(m.Run())
}
