package bench

import (
	"fmt"
	"os"
	"testing"
)

// TestMain exits if the bench started this binary as its server: it has no server, and as a test
// run it would start the next one, and so on.
func TestMain(m *testing.M) {
	if len(os.Args) > 1 && os.Args[1] == "child" {
		fmt.Fprintln(os.Stderr, "this binary holds tests and no server")
		os.Exit(1)
	}
	os.Exit(m.Run())
}
