// Package overlay changes some lines of code for one build without touching the files. It makes the
// input of go build -overlay from a small text of edits. An edit whose old text does not occur
// exactly once is an error, so outdated edits are found instead of doing something else.
package overlay

import (
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
)

// Edit replaces a text in a file.
type Edit struct{ File, Old, New string }

// Parse reads edits that follow header lines of the caller. A line names each file, and each edit
// has the form
//
//	--- FILE
//	<<<<
//	text as it is, which may be part of a line
//	====
//	text as it is to be
//	>>>>
func Parse(text string) (head string, edits []Edit, err error) {
	head, rest, found := strings.Cut(text, "\n--- ")
	if !found {
		return head, nil, errors.New("no line names a file: want --- FILE")
	}
	for _, part := range strings.Split(rest, "\n--- ") {
		file, body, _ := strings.Cut(part, "\n")
		for _, hunk := range strings.Split(body, "<<<<\n")[1:] {
			before, after, ok := strings.Cut(hunk, "====\n")
			changed, _, closed := strings.Cut(after, ">>>>")
			if !ok || !closed {
				return head, nil, fmt.Errorf("an edit of %s has no ==== or no >>>>", file)
			}
			edits = append(edits, Edit{strings.TrimSpace(file), strings.TrimSuffix(before, "\n"),
				strings.TrimSuffix(changed, "\n")})
		}
	}
	return head, edits, nil
}

// Write puts the changed files into dir and returns the file for -overlay. File names are relative
// to root.
func Write(dir, root string, edits []Edit) (string, error) {
	changed := map[string]string{}
	for _, e := range edits {
		text, known := changed[e.File]
		if !known {
			original, err := os.ReadFile(filepath.Join(root, e.File))
			if err != nil {
				return "", err
			}
			text = string(original)
		}
		if n := strings.Count(text, e.Old); n != 1 {
			return "", fmt.Errorf("%s has this text %d times, want once; update the edit:\n%s", e.File, n, e.Old)
		}
		changed[e.File] = strings.Replace(text, e.Old, e.New, 1)
	}
	whole := map[string]string{}
	for file, text := range changed {
		whole[filepath.Join(root, file)] = text
	}
	return Files(dir, whole)
}

// Files puts whole replacement files into dir, by the name of the file that they replace, and
// returns the file for -overlay.
func Files(dir string, files map[string]string) (string, error) {
	var overlay struct{ Replace map[string]string }
	overlay.Replace = map[string]string{}
	for file, text := range files {
		path := filepath.Join(dir, fmt.Sprintf("%d-%s", len(overlay.Replace), filepath.Base(file)))
		if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
			return "", err
		}
		overlay.Replace[file] = path
	}
	text, err := json.Marshal(overlay)
	if err != nil {
		return "", err
	}
	path := filepath.Join(dir, "overlay.json")
	return path, os.WriteFile(path, text, 0o600)
}
