// Package pgtest gives tests a real Postgres: the one that KAGZI_TEST_POSTGRES names, or a private
// server. The private server is started once per test process from this machine's binaries, on a
// socket in a temporary directory, and ends with the process in any case.
package pgtest

import (
	"context"
	"crypto/rand"
	"encoding/hex"
	"errors"
	"net/url"
	"os"
	"strings"
	"sync"
	"time"

	"github.com/jackc/pgx/v5"
)

// T is what pgtest needs of *testing.T and *testing.B. A T that can skip (Skipf) is skipped if
// there is no Postgres, unless CI is set.
type T interface {
	Helper()
	Fatalf(format string, args ...any)
	Cleanup(func())
}

// URL returns the address of a new, empty schema, which its search_path names. Making a schema
// takes a millisecond, a database a hundred. The private server does not sync to disk;
// KAGZI_ALLOW_UNSAFE_DB is set so that the store accepts it.
func URL(t T) string {
	t.Helper()
	return fresh(t, &fast)
}

// DurableURL is URL on a server that syncs every commit to disk, for benchmarks and tests of
// durability.
func DurableURL(t T) string {
	t.Helper()
	return fresh(t, &durable)
}

// PooledURL returns the address of a new, empty database behind PgBouncer in transaction mode, and
// the address of the database itself. If PgBouncer is not installed, or KAGZI_TEST_POSTGRES is set,
// it skips the test; with CI set the test fails.
func PooledURL(t T) (pooled, direct string) {
	t.Helper()
	server, err := fast.start()
	if err == nil && fast.given {
		err = errors.New("a pooler is put before a private server only")
	}
	if err == nil {
		err = pooler.start(server)
	}
	if err != nil {
		if s, ok := t.(interface{ Skipf(string, ...any) }); ok && os.Getenv("CI") == "" {
			s.Skipf("NO POOLER, NOT TESTED: %v (install pgbouncer)", err)
		}
		t.Fatalf("no pooler: %v", err)
	}
	name := "kagzi_test_" + randomHex()
	if err := fast.administer(`create database ` + name); err != nil {
		t.Fatalf("a database for the test: %v", err)
	}
	return pooler.url.JoinPath("..", name).String(), server.JoinPath("..", name).String()
}

// OwnDatabase makes an empty database owned by a role of the same name. own is its address for that
// role, and admin for a superuser; neither sets a search_path. With options, such as "encoding
// 'LATIN1'", the database is made from template0. On a given server, where the role would need a
// password, the test is skipped.
func OwnDatabase(t T, options string) (own, admin string) {
	t.Helper()
	base, err := fast.start()
	if err == nil && fast.given {
		err = errors.New("roles are made on a private server only")
	}
	if err != nil {
		refuse(t, err)
		return "", ""
	}
	if options != "" {
		options += " template template0"
	}
	name := "kagzi_test_" + randomHex()
	for _, statement := range []string{"create role " + name + " login",
		"create database " + name + " owner " + name + " " + options} {
		if err := fast.administer(statement); err != nil {
			t.Fatalf("a database for the test: %v", err)
		}
	}
	owned := *base.JoinPath("..", name)
	owned.User = url.User(name)
	return owned.String(), base.JoinPath("..", name).String()
}

var pooler lazyPooler

// lazyPooler is PgBouncer, started when the first test needs it.
type lazyPooler struct {
	once sync.Once
	url  *url.URL
	err  error
}

func (p *lazyPooler) start(server *url.URL) error {
	p.once.Do(func() { p.url, p.err = startPooler(server) })
	return p.err
}

var (
	fast    = lazyServer{}
	durable = lazyServer{durable: true}
)

// lazyServer is a server that is started when the first test needs it.
type lazyServer struct {
	durable bool
	given   bool // by KAGZI_TEST_POSTGRES
	once    sync.Once
	url     *url.URL // of the database that has the schemas
	err     error

	mu    sync.Mutex
	admin *pgx.Conn // nil until it is needed
}

func (s *lazyServer) start() (*url.URL, error) {
	s.once.Do(func() {
		if given := os.Getenv("KAGZI_TEST_POSTGRES"); given != "" {
			s.given = true
			s.url, s.err = url.Parse(given)
			return
		}
		s.url, s.err = startServer(s.durable)
		if s.err == nil && !s.durable {
			s.err = os.Setenv("KAGZI_ALLOW_UNSAFE_DB", "1")
		}
	})
	return s.url, s.err
}

// fresh makes a schema on the server. On a given server it drops the schema after the test.
func fresh(t T, s *lazyServer) string {
	t.Helper()
	base, err := s.start()
	if err != nil {
		refuse(t, err)
		return ""
	}
	name := "kagzi_test_" + randomHex()
	if err := s.administer(`create schema ` + name); err != nil {
		t.Fatalf("a schema for the test: %v", err)
	}
	if s.given {
		t.Cleanup(func() {
			if err := s.administer(`drop schema ` + name + ` cascade`); err != nil {
				t.Fatalf("drop the schema of the test: %v", err)
			}
		})
	}
	own := *base
	query := own.Query()
	query.Set("search_path", name)
	own.RawQuery = strings.ReplaceAll(query.Encode(), "%2F", "/")
	return own.String()
}

// refuse skips the test with a message. If CI is set, or t cannot skip, it fails the test.
func refuse(t T, err error) {
	t.Helper()
	const hint = "set KAGZI_TEST_POSTGRES or install the PostgreSQL server"
	if s, ok := t.(interface{ Skipf(string, ...any) }); ok && os.Getenv("CI") == "" {
		s.Skipf("NO POSTGRES, NOT TESTED: %v (%s)", err, hint)
		return
	}
	t.Fatalf("no Postgres: %v (%s)", err, hint)
}

// administer runs a statement on one session that is kept, because making a session costs more than
// most statements.
func (s *lazyServer) administer(statement string) (err error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	ctx, cancel := context.WithTimeout(context.Background(), 30*time.Second)
	defer cancel()
	if s.admin == nil || s.admin.IsClosed() {
		if s.admin, err = pgx.Connect(ctx, s.url.String()); err != nil {
			return err
		}
	}
	_, err = s.admin.Exec(ctx, statement)
	return err
}

func randomHex() string {
	var b [6]byte
	rand.Read(b[:])
	return hex.EncodeToString(b[:])
}
