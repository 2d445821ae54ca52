package postgres

import (
	"context"
	"flag"
	"strings"
	"testing"
	"time"

	"github.com/kagzi/kagzi/backends/postgres/pgtest"
	"github.com/kagzi/kagzi/backends/storetest"
	"github.com/kagzi/kagzi/engine"
)

var allPooled = flag.Bool("postgres.pooled", false,
	"try every suite of the contract behind PgBouncer too, which takes some minutes")

// pooledSuites are the suites whose statements differ most from each other.
var pooledSuites = []string{"start", "hand-off", "claim", "step", "fence", "ticket", "notification"}

func TestStoreBehindAPooler(t *testing.T) {
	if testing.Short() {
		t.Skip("these suites once more")
	}
	suites := pooledSuites
	if *allPooled {
		suites = nil
	}
	storetest.Run(t, func(tb testing.TB) engine.Store { return openIn(tb, pgtest.LendPooled(tb, Migrate)) }, suites...)
}

func TestAPoolerIsNoticed(t *testing.T) {
	pooled, direct := pgtest.PooledURL(t)
	for _, test := range []struct {
		name, url, want string
		shared          bool
	}{
		{"a pooler in between", pooled, "polling", true},
		{"a pooler that the address tells of", pooled + "&pool_mode=transaction", "polling", true},
		{"no pooler", direct, "listen", false},
		{"no pooler, but the address tells of one", direct + "&pool_mode=transaction", "polling", true},
		{"no pooler, as the address says", direct + "&pool_mode=session", "listen", false},
	} {
		t.Run(test.name, func(t *testing.T) {
			s := openAt(t, test.url)
			d, err := s.Describe(t.Context())
			if err != nil || d.Notifications != test.want || s.pooled != test.shared {
				t.Fatalf("notifications %q, shared sessions %t, %v; want %q, %t", d.Notifications, s.pooled, err,
					test.want, test.shared)
			}
		})
	}
}

func TestAnAddressWithAPoolModeThatIsNoneIsRefused(t *testing.T) {
	_, err := Open(t.Context(), "postgres://localhost/kagzi?pool_mode=statement", engine.OpenOptions{})
	if err == nil || !strings.Contains(err.Error(), "pool_mode is session or transaction") {
		t.Fatalf("Open: %v, want a refusal that names the modes", err)
	}
}

func TestAParameterThatThePoolerRefusesIsNamedAtOnce(t *testing.T) {
	pooled, _ := pgtest.PooledURL(t)
	_, err := Open(t.Context(), pooled+"&search_path=somewhere", engine.OpenOptions{})
	if err == nil || !strings.Contains(err.Error(), "does not pass on search_path") {
		t.Fatalf("Open: %v, want a refusal that names the parameter", err)
	}
}

func TestWritesBehindAPoolerDoNotRelyOnTheSession(t *testing.T) {
	pooled, _ := pgtest.PooledURL(t)
	s := openAt(t, pooled)
	settings := map[string]string{}
	err := s.attempt(t.Context(), nil, func(tx *tx) error {
		var name, value string
		return tx.read(
			`select name, setting from pg_settings where name in ('synchronous_commit', 'enable_seqscan', 'lock_timeout')`, args{},
			[]any{&name, &value}, func() { settings[name] = value })
	})
	if err != nil || settings["synchronous_commit"] != "on" || settings["enable_seqscan"] != "off" ||
		settings["lock_timeout"] != "2000" {
		t.Fatalf("a write has settings %v, %v", settings, err)
	}
	var left string
	if err := s.pool.Pool.QueryRow(t.Context(), "show enable_seqscan").Scan(&left); err != nil || left != "on" {
		t.Fatalf("a write left enable_seqscan %s, %v: want on", left, err)
	}
}

func TestServersBehindAPoolerLookForEachOthersWrites(t *testing.T) {
	pooled, _ := pgtest.PooledURL(t)
	here, there := openAt(t, pooled), openAt(t, pooled)
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	looks := 0
	there.Listen(ctx, func(r engine.Notification) {
		if r.Kind != engine.NotifyAll {
			return
		}
		if looks++; looks == 1 { // the first is the notification that every new listener gets
			start(t, here, 1)
			return
		}
		cancel()
	}, nil)
	if looks < 2 {
		t.Fatal("no notification in a minute")
	}
}

func TestACopyBehindAPoolerIsRefused(t *testing.T) {
	pooled, _ := pgtest.PooledURL(t)
	openAt(t, pooled)
	_, err := OpenEnd(t.Context(), pooled)
	if err == nil || !strings.Contains(err.Error(), "give the address of the database itself") {
		t.Fatalf("OpenEnd: %v, want a refusal that names the way out", err)
	}
}
