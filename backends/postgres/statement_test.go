package postgres

import (
	"context"
	"embed"
	"io/fs"
	"path"
	"strings"
	"testing"

	"github.com/jackc/pgx/v5"
)

//go:embed sql/*.sql
var allStatements embed.FS

func TestEveryStatementIsPreparedAgainstTheMigratedSchema(t *testing.T) {
	ctx := context.Background()
	url := lentURL(t)
	openAt(t, url)
	conn, err := pgx.Connect(ctx, url)
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close(ctx)
	files, err := fs.Glob(allStatements, "sql/*.sql")
	if err != nil || len(files) < 50 {
		t.Fatalf("found %d statements: %v", len(files), err)
	}
	for _, file := range files {
		name := strings.TrimSuffix(path.Base(file), ".sql")
		text, err := fs.ReadFile(allStatements, file)
		if err != nil {
			t.Fatal(err)
		}
		if !strings.HasPrefix(string(text), "-- ") {
			t.Errorf("%s does not begin with a comment that says why", name)
		}
		if name == "create_migrations" { // a definition, which cannot be prepared
			continue
		}
		if _, err := conn.Prepare(ctx, name, hot(string(text)).text); err != nil {
			t.Errorf("%s: %v", name, err)
		}
	}
}

func TestEveryStatementIsUsed(t *testing.T) {
	files, err := fs.Glob(allStatements, "sql/*.sql")
	if err != nil {
		t.Fatal(err)
	}
	sources := goSources(t)
	for _, file := range files {
		if !strings.Contains(sources, "//go:embed "+file+"\n") {
			t.Errorf("%s is embedded nowhere", file)
		}
	}
}
