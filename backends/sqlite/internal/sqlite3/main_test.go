package sqlite3

import (
	"fmt"
	"os"
	"testing"
)

// SQLite's page cache can be replaced only before SQLite is first used.
func TestMain(m *testing.M) {
	if err := OwnPageCaches(); err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
	os.Exit(m.Run())
}
