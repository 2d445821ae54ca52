package postgres

import (
	"context"
	"fmt"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/kagzi/kagzi/backends/postgres/pgtest"
	"github.com/kagzi/kagzi/backends/storetest"
	"github.com/kagzi/kagzi/engine"
)

func TestPoolMaxConns(t *testing.T) {
	t.Run("limits all connections of a server", func(t *testing.T) {
		url, name := marked(t)
		s, admin := openAt(t, url+"&pool_max_conns=4&pool_max_conn_lifetime=10m"), adminConnection(t, url)
		if got := s.pool.Config().MaxConnLifetime; got != 10*time.Minute {
			t.Errorf("a connection lives for %s, want 10m", got)
		}
		work(t, s, 40)
		var open int
		err := admin.QueryRow(t.Context(), "select count(*) from pg_stat_activity where application_name = $1",
			name).Scan(&open)
		if err != nil || open < 3 || open > 4 {
			t.Errorf("%d connections are open (%v), want 3 or 4", open, err)
		}
	})
	for value, want := range map[string]string{
		"pool_max_conns=2": "at least 3", "pool_max_conns=many": "not a valid", "pool_min_conns=2": "pool_min_conns",
		"default_query_exec_mode=exec":            "pool_mode=transaction",
		"default_query_exec_mode=simple_protocol": "default_query_exec_mode=simple_protocol",
	} {
		t.Run("is refused as "+value, func(t *testing.T) {
			if _, err := parseURL("postgres://ada@db.internal/shop?" + value); err == nil ||
				!strings.Contains(err.Error(), want) {
				t.Errorf("error %v, want one that says %q", err, want)
			}
		})
	}
}

// TestStoreWithThreeConnections looks for calls that would need a second connection.
func TestStoreWithThreeConnections(t *testing.T) {
	if testing.Short() {
		t.Skip("these suites once more")
	}
	storetest.Run(t, func(tb testing.TB) engine.Store { return openAt(tb, lentURL(tb)+"&pool_max_conns=3") },
		"start", "hand-off", "claim", "step")
}

// work makes many callers start and list runs, and fails the test if a call fails.
func work(t *testing.T, s *Store, callers int) {
	t.Helper()
	var group sync.WaitGroup
	for range callers {
		group.Go(func() {
			for range 10 {
				ctx, cancel := context.WithTimeout(context.Background(), 30*time.Second)
				if _, err := s.StartRuns(ctx, engine.StartRunsParams{
					Runs: []engine.StartRun{newStart(s)}}); err != nil {
					t.Errorf("StartRuns: %v", err)
				}
				if _, _, err := s.ListRuns(ctx, engine.RunFilter{Namespace: "default"},
					engine.Page{Limit: 5}); err != nil {
					t.Errorf("ListRuns: %v", err)
				}
				cancel()
			}
		})
	}
	group.Wait()
}

func TestAConnectionLimitMakesCallsWait(t *testing.T) {
	for name, limit := range map[string]string{
		"of the role":     "alter role %s connection limit %d",
		"of the database": "alter database %s connection limit %d",
	} {
		for _, n := range []int{leastConnections, 6} {
			t.Run(fmt.Sprintf("%s, %d", name, n), func(t *testing.T) {
				url, admin := pgtest.OwnDatabase(t, "")
				role := roleOf(t, url)
				execute(t, admin, "grant create on schema public to "+role)
				if err := Migrate(t.Context(), url); err != nil {
					t.Fatal(err)
				}
				execute(t, admin, fmt.Sprintf(limit, role, n))
				s := openAt(t, url)
				work(t, s, 20)
			})
		}
	}
}

func TestARoleThatQuotesAllIdentifiers(t *testing.T) {
	url := withParameter(t, pgtest.URL(t), "quote_all_identifiers", "on") // as set for a role or a database
	start(t, openAt(t, url), 1)
	expectSound(t, url)
	end, err := OpenEnd(t.Context(), url)
	if err != nil {
		t.Fatal(err)
	}
	defer end.Close()
	if tables, err := end.Tables(t.Context()); err != nil || len(tables) == 0 {
		t.Errorf("%d tables, %v; want those of the schema", len(tables), err)
	}
}
