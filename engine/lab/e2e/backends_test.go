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

// eachBackend tells a story once for each backend. url is a fresh database. With -short the race
// detector sees it on SQLite only: what the server's goroutines share is the same on both, and what
// the backends' own do they show in their own tests.
func eachBackend(t *testing.T, story func(t *testing.T, url string)) {
	t.Parallel()
	for _, name := range []string{"sqlite", "postgres"} {
		if raced && testing.Short() && name == "postgres" {
			continue
		}
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			story(t, freshURL(t, name))
		})
	}
}

// freshURL is a database of a backend with its tables and no rows. Without a Postgres the test is
// skipped, or fails when CI is set.
func freshURL(t testing.TB, backend string) string {
	t.Helper()
	if backend == "postgres" {
		return pgtest.Lend(t, backends.Migrate).URL
	}
	return "sqlite:" + sqlitetest.FreshIn(t, long.ScratchDir(t), sqlite.Migrate)
}

// eachServer tells a story once for each backend, with a server at work on a fresh database.
func eachServer(t *testing.T, o Options, story func(t *testing.T, s *Server)) {
	eachBackend(t, func(t *testing.T, url string) {
		story(t, New(t, openStore(t, url), o))
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

// checkDatabase wants a database to be sound. Nobody may have it open.
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

// within bounds what a story waits for.
func within(t testing.TB, d time.Duration) context.Context {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), d)
	t.Cleanup(cancel)
	return ctx
}

// hour is an hour on the wire.
var hour = durationpb.New(time.Hour)

var quiet = slog.New(slog.DiscardHandler)

// cutSQLite is the path of an embedded database.
func cutSQLite(url string) (string, bool) { return strings.CutPrefix(url, "sqlite:") }
