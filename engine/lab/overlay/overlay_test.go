package overlay

import (
	"encoding/json"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

const text = "head\nand more\n--- a/b.go\n<<<<\nold\n====\nnew\n>>>>\n<<<<\ntwo\nlines\n====\n>>>>\n--- c.go\n<<<<\nx\n====\ny\n>>>>\n"

func TestParse(t *testing.T) {
	head, edits, err := Parse(text)
	if err != nil || head != "head\nand more" || len(edits) != 3 {
		t.Fatalf("Parse = %q, %v, %v", head, edits, err)
	}
	for i, want := range []Edit{{"a/b.go", "old", "new"}, {"a/b.go", "two\nlines", ""}, {"c.go", "x", "y"}} {
		if edits[i] != want {
			t.Errorf("edit %d = %q, want %q", i, edits[i], want)
		}
	}
	for _, bad := range []string{"nothing", "head\n--- a\n<<<<\nold\n", "head\n--- a\n<<<<\nold\n====\nnew"} {
		if _, _, err := Parse(bad); err == nil {
			t.Errorf("%q was taken", bad)
		}
	}
}

func TestWrite(t *testing.T) {
	root, dir := t.TempDir(), t.TempDir()
	if err := os.WriteFile(filepath.Join(root, "a.go"), []byte("one two two"), 0o600); err != nil {
		t.Fatal(err)
	}
	file, err := Write(dir, root, []Edit{{"a.go", "one", "1"}, {"a.go", "1 two ", ""}})
	if err != nil {
		t.Fatal(err)
	}
	var overlay struct{ Replace map[string]string }
	written, err := os.ReadFile(file)
	if err == nil {
		err = json.Unmarshal(written, &overlay)
	}
	changed, readErr := os.ReadFile(overlay.Replace[filepath.Join(root, "a.go")])
	if err != nil || readErr != nil || string(changed) != "two" {
		t.Errorf("the changed file holds %q (%v, %v)", changed, err, readErr)
	}
	for _, gone := range []string{"two", "three"} {
		if _, err := Write(dir, root, []Edit{{"a.go", gone, ""}}); err == nil ||
			!strings.Contains(err.Error(), "want once") {
			t.Errorf("text that is not there once: %v", err)
		}
	}
}
