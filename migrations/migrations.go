// Package migrations holds the schema: numbered SQL files, the same numbers and names for both databases.
// Each backend applies them in its own way, forward only. A file that has landed is never edited.
package migrations

import (
	"embed"
	"fmt"
	"io/fs"
	"path"
	"strconv"
	"strings"
)

//go:embed sqlite/*.sql postgres/*.sql
var files embed.FS

// Migration is one step of the schema.
type Migration struct {
	Number int
	Name   string // 0001_init
	SQL    string
}

// List is the migrations of a dialect, "sqlite" or "postgres", in order from number 1.
func List(dialect string) ([]Migration, error) {
	entries, err := fs.ReadDir(files, dialect)
	if err != nil {
		return nil, fmt.Errorf("migrations for %s: %w", dialect, err)
	}
	var list []Migration
	for i, entry := range entries { // ReadDir sorts by name
		name := strings.TrimSuffix(entry.Name(), ".sql")
		digits, _, _ := strings.Cut(name, "_")
		number, err := strconv.Atoi(digits)
		if err != nil || number != i+1 {
			return nil, fmt.Errorf("migration %s/%s: want number %04d", dialect, entry.Name(), i+1)
		}
		text, err := fs.ReadFile(files, path.Join(dialect, entry.Name()))
		if err != nil {
			return nil, err
		}
		list = append(list, Migration{Number: number, Name: name, SQL: string(text)})
	}
	return list, nil
}
