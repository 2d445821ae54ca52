package sqlite3

import (
	"os/exec"
	"strings"
	"testing"
)

func TestTheLibraryIsOfTheVersionThatWasVerified(t *testing.T) {
	for module, want := range map[string]string{
		"modernc.org/sqlite": verifiedSQLite, "modernc.org/libc": verifiedLibc} {
		out, err := exec.Command("go", "list", "-m", "-f",
			"{{with .Replace}}{{.Path}} {{.Version}}{{else}}{{.Version}}{{end}}", module).Output()
		if err != nil {
			t.Fatalf("go list -m %s: %v", module, err)
		}
		if got := strings.TrimSpace(string(out)); got != want {
			t.Errorf(
				"%s is %s, and this package was verified with %s. It relies on internals of the library: go through \"Upgrading modernc.org/sqlite\" in "+
					"backends/sqlite/internal/sqlite3/doc.go, then set the versions in version.go", module, got, want)
		}
	}
}
