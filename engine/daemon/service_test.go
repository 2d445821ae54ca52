package daemon

import (
	"context"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

func TestDatabaseOfTheInstalledServiceIsFound(t *testing.T) {
	dir := t.TempDir()
	put := func(name, text string) string {
		path := filepath.Join(dir, name)
		if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
		return path
	}
	data := filepath.Join(dir, "data")
	of := func(s Service) func(context.Context) (Service, bool) {
		return func(context.Context) (Service, bool) {
			s.Name, s.DataDir = "kagzi", data
			return s, true
		}
	}
	plain := "sqlite:" + filepath.Join(data, "kagzi.db")
	for name, try := range map[string]struct {
		service Service
		want    string
	}{
		"data directory": {Service{}, plain},
		"URL file": {Service{DatabaseURLFile: put("db.url", "postgres://k:secret@h/kagzi\n")},
			"postgres://k:secret@h/kagzi"},
		"environment": {Service{Environment: put("kagzi.env", "# x\nKAGZI_DB='sqlite:/e.db'\n")}, "sqlite:/e.db"},
		"settings":    {Service{Config: put("kagzi.toml", "[server]\ndb = \"sqlite:/s.db\"\n")}, "sqlite:/s.db"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Setenv("XDG_DATA_HOME", filepath.Join(dir, "home"))
			t.Setenv("LocalAppData", filepath.Join(dir, "home"))
			t.Setenv("HOME", filepath.Join(dir, "home"))
			c := Defaults()
			c.Sources = map[string]string{}
			note, err := c.orService(t.Context(), of(try.service))
			if err != nil || c.DB != try.want || !strings.Contains(note, "service kagzi") ||
				strings.Contains(note, "secret") {
				t.Errorf("database %q, note %q, %v, want %q", c.DB, note, err, try.want)
			}
			own := Config{DataDir: filepath.Join(dir, "mine"), Sources: map[string]string{}}
			if note, err := own.orService(t.Context(), of(try.service)); err != nil || note != "" || own.DB != "" {
				t.Errorf("with --data-dir: %q, %q, %v, want nothing changed", own.DB, note, err)
			}
		})
	}
	c := Config{Sources: map[string]string{}}
	t.Setenv("HOME", filepath.Join(dir, "home"))
	t.Setenv("XDG_DATA_HOME", filepath.Join(dir, "home"))
	if _, err := c.orService(t.Context(), of(Service{DatabaseURLFile: filepath.Join(dir, "missing")})); err == nil ||
		!strings.Contains(err.Error(), "as root") || codeOf(err) != 64 {
		t.Errorf("without access: %v", err)
	}
}
