package e2e

import (
	"context"
	"log/slog"
	"strings"
	"testing"
	"time"

	"google.golang.org/protobuf/types/known/durationpb"

	"github.com/kagzi/kagzi/backends"
	"github.com/kagzi/kagzi/backends/postgres/pgtest"
	"github.com/kagzi/kagzi/backends/sqlite"
	"github.com/kagzi/kagzi/backends/sqlite/sqlitetest"
	"github.com/kagzi/kagzi/engine"
	"github.com/kagzi/kagzi/engine/lab/long"
)

// eachBackend runs a test once per backend. url is a fresh database. With -short the race detector
// runs on SQLite only: the server's shared state is the same on both, and the backends have race
// tests of their own.
func eachBackend(t *testing.T, test func(t *testing.T, url string)) {
	t.Parallel()
	for _, name := range []string{"sqlite", "postgres"} {
		if raced && testing.Short() && name == "postgres" {
			continue
		}
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			test(t, freshURL(t, name))
		})
	}
}

// freshURL returns a migrated database without rows. Without Postgres it skips the test, or fails
// it if CI is set.
func freshURL(t testing.TB, backend string) string {
	t.Helper()
	if backend == "postgres" {
		return pgtest.Lend(t, backends.Migrate).URL
	}
	return "sqlite:" + sqlitetest.FreshIn(t, long.ScratchDir(t), sqlite.Migrate)
}

// eachServer runs a test once per backend, with a server on a fresh database.
func eachServer(t *testing.T, o Options, test func(t *testing.T, s *Server)) {
	eachBackend(t, func(t *testing.T, url string) {
		test(t, New(t, openStore(t, url), o))
	})
}

func openStore(t testing.TB, url string) engine.Store {
	t.Helper()
	store, err := backends.Open(t.Context(), url, engine.OpenOptions{})
	if err != nil {
		t.Fatal(err)
	}
	return store
}

// checkDatabase requires a sound database. No process may have it open.
func checkDatabase(t testing.TB, url string) {
	t.Helper()
	findings, err := backends.Check(context.Background(), url)
	if err != nil {
		t.Fatalf("check %s: %v", url, err)
	}
	for _, f := range findings {
		t.Errorf("the database is not sound: %s: %s", f.Subject, f.Text)
	}
}

// within limits how long a test waits.
func within(t testing.TB, d time.Duration) context.Context {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), d)
	t.Cleanup(cancel)
	return ctx
}

// hour is an hour as a protobuf duration.
var hour = durationpb.New(time.Hour)

var quiet = slog.New(slog.DiscardHandler)

// cutSQLite returns the path of an embedded database.
func cutSQLite(url string) (string, bool) { return strings.CutPrefix(url, "sqlite:") }
