package daemon

import (
	"context"
	"errors"
	"fmt"
	"net"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"testing"

	"github.com/kagzi/kagzi/engine"
)

// sick returns the findings of Examine by name, as "state text".
func sick(t *testing.T, status engine.SchemaStatus, failure error, env map[string]string) map[string]string {
	t.Helper()
	b := Backends{Status: func(context.Context, string) (engine.SchemaStatus, error) { return status, failure }}
	found := map[string]string{}
	for _, f := range examine(t.Context(), b,
		surroundings{lookup: func(name string) (string, bool) { text, ok := env[name]; return text, ok }}) {
		if (f.State == well) != (f.Advice == "") {
			t.Errorf("%+v: want advice just where it is not well", f)
		}
		found[f.Name] += f.State + " " + f.Text + "\n"
	}
	return found
}

func TestExamine(t *testing.T) {
	sound := engine.SchemaStatus{Applied: 3, Newest: 3}
	dir := filepath.Join(t.TempDir(), "data")
	if err := os.Mkdir(dir, 0o700); err != nil {
		t.Fatal(err)
	}
	free := func() map[string]string {
		return map[string]string{"KAGZI_DATA_DIR": dir, "KAGZI_LISTEN": "127.0.0.1:0", "KAGZI_HTTP": "127.0.0.1:0"}
	}
	t.Run("is ok where a server could start", func(t *testing.T) {
		for name, text := range sick(t, sound, nil, free()) {
			if !strings.HasPrefix(text, "ok ") {
				t.Errorf("%s: %s", name, text)
			}
		}
		fresh := free()
		fresh["KAGZI_DATA_DIR"] = filepath.Join(dir, "none", "yet")
		found := sick(t, engine.SchemaStatus{Newest: 3}, nil, fresh)
		if !strings.Contains(found["data directory"], "ok") ||
			!strings.Contains(found["database"], "does not exist yet") ||
			!strings.HasPrefix(found["disk"], "ok ") {
			t.Errorf("before the first start: %q", found)
		}
	})
	t.Run("names the program that uses the port", func(t *testing.T) {
		l, err := net.Listen("tcp", "127.0.0.1:0")
		if err != nil {
			t.Fatal(err)
		}
		defer func() { _ = l.Close() }()
		env := free()
		env["KAGZI_LISTEN"] = l.Addr().String()
		want := "bad " + l.Addr().String() + " cannot be listened on"
		if runtime.GOOS == "linux" {
			want = fmt.Sprintf("(process %d)", os.Getpid())
		}
		if got := sick(t, sound, nil, env)["port"]; !strings.Contains(got, want) {
			t.Errorf("port: %q, want %q", got, want)
		}
	})
	t.Run("reports a wrong setting and skips what depends on it", func(t *testing.T) {
		env := free()
		env["KAGZI_WORKER_LEASE"] = "soon"
		if found := sick(t, sound, nil, env); len(found) != 1 ||
			!strings.Contains(found["settings"], "KAGZI_WORKER_LEASE") {
			t.Errorf("found %q", found)
		}
	})
	t.Run("reports an old, a newer and a missing schema", func(t *testing.T) {
		for want, c := range map[string]struct {
			status engine.SchemaStatus
			err    error
		}{
			"warn sqlite:" + filepath.Join(dir, "kagzi.db") +
				" has schema 2 of 3": {engine.SchemaStatus{Applied: 2, Newest: 3, Pending: []string{"0003_x"}}, nil},
			"cannot be served": {engine.SchemaStatus{
				Applied: 3, Newest: 3, Standing: engine.StandingMoved, Refusal: "moved to box"}, nil},
			"schema 3 in the Postgres schema shop": {engine.SchemaStatus{
				Applied: 3, Newest: 3, Place: "shop", Warnings: []string{"move it"}}, nil},
			"made by a newer version": {engine.SchemaStatus{Applied: 4, Newest: 3}, nil},
			"no route to host":        {engine.SchemaStatus{}, errors.New("no route to host")},
		} {
			if got := sick(t, c.status, c.err, free())["database"]; !strings.Contains(got, want) {
				t.Errorf("database: %q, want %q", got, want)
			}
		}
	})
	t.Run("shows no password", func(t *testing.T) {
		env := free()
		env["KAGZI_DB"] = "postgres://ada:hunter2@box/kagzi"
		for name, text := range sick(t, engine.SchemaStatus{}, errors.New("away"), env) {
			if strings.Contains(text, "hunter2") {
				t.Errorf("%s: %q", name, text)
			}
		}
	})
	if runtime.GOOS != "windows" {
		t.Run("reports a directory that others can write to", func(t *testing.T) {
			if err := os.Chmod(dir, 0o777); err != nil {
				t.Fatal(err)
			}
			if got := sick(t, sound, nil, free())["data directory"]; !strings.Contains(got, "warn") ||
				!strings.Contains(got, filepath.Join(dir, "kagzi")) {
				t.Errorf("data directory: %q", got)
			}
		})
	}
}
