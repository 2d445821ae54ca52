package postgres

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"net/url"
	"strings"
	"testing"

	"github.com/jackc/pgx/v5/pgconn"

	"github.com/kagzi/kagzi/backends/postgres/pgtest"
	"github.com/kagzi/kagzi/engine"
)

func TestAServerThatDoesNotAnswerIsNamedWithTheReason(t *testing.T) {
	place := unheard(t) + "/shop"
	config, err := parseURL("postgres://ada:secret@" + place)
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	var log bytes.Buffer
	handler := slog.NewTextHandler(writing(func(line []byte) { log.Write(line); cancel() }), nil) // one try is enough
	if _, err := connect(ctx, config, engine.OpenOptions{Log: slog.New(handler)}); !errors.Is(err, context.Canceled) {
		t.Fatalf("connect = %v, want it interrupted", err)
	}
	if want := "database=" + place + ` why="connection refused"`; !strings.Contains(log.String(), want) ||
		strings.Contains(log.String(), "secret") {
		t.Errorf("log %q, want %q and no password", log.String(), want)
	}
	_, err = config.dial(t.Context())
	if got, want := config.unreached(err).Error(),
		"the database "+place+" does not answer: connection refused"; got != want {
		t.Errorf("error %q, want %q", got, want)
	}
}

// unheard returns an address that refuses connections while the test runs: a connection holds the
// port, so that nobody can listen on it.
func unheard(t *testing.T) string {
	t.Helper()
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	held, err := net.Dial("tcp", listener.Addr().String())
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { held.Close(); listener.Close() })
	address := held.LocalAddr().String()
	if taken, err := net.Listen("tcp", address); err == nil {
		taken.Close()
		t.Fatalf("%s is free for anybody to listen on", address)
	}
	return address
}

type writing func(line []byte)

func (w writing) Write(line []byte) (int, error) {
	w(line)
	return len(line), nil
}

func TestWhyNoConnectionCameAbout(t *testing.T) {
	config, err := parseURL("postgres://ada:secret@db.internal/shop")
	if err != nil {
		t.Fatal(err)
	}
	state := func(code string) error { return fmt.Errorf("connect: %w", &pgconn.PgError{Code: code}) }
	for want, err := range map[string]error{
		`the database db.internal/shop refuses the user "ada" or its password`:                                                                                                                              state("28P01"),
		"the server of db.internal/shop has no database of this name; create it, for example with: createdb --encoding UTF8 --template template0 shop":                                                      state("3D000"),
		"the database db.internal/shop does not answer: the database accepts no more connections; raise the limit of its server, database or role to at least 3, or set pool_max_conns in the database URL": state("53300"),
		"the database db.internal/shop does not answer: no such host":                                                                                                                                       fmt.Errorf("connect: %w", &net.DNSError{Err: "no such host", Name: "db.internal"}),
		"the database db.internal/shop does not answer: no answer in time":                                                                                                                                  fmt.Errorf("connect: %w", context.DeadlineExceeded),
		"the database db.internal/shop does not answer: server refused TLS connection":                                                                                                                      fmt.Errorf("connect: %w", errors.New("server refused TLS connection")),
	} {
		if got := config.unreached(err).Error(); got != want {
			t.Errorf("%v is %q, want %q", err, got, want)
		}
	}
}

func TestRefusedAddressIsReportedAtOnce(t *testing.T) {
	for name, value := range map[string]string{
		"lock_timout": "1s", "search_path": "My Schema", "max_connections": "7",
		"default_transaction_isolation": "always",
	} {
		url := withParameter(t, pgtest.URL(t), name, value)
		var log bytes.Buffer
		ctx, cancel := context.WithCancel(t.Context())
		// one try is enough
		handler := slog.NewTextHandler(writing(func(line []byte) { log.Write(line); cancel() }), nil)
		_, err := Open(ctx, url, engine.OpenOptions{Log: slog.New(handler)})
		if err == nil || !strings.Contains(err.Error(), `"`+name+`"`) || log.Len() > 0 {
			t.Errorf("Open with %s = %s: %v, want a refusal that names it at once; log %q", name, value, err,
				log.String())
		}
		cancel()
	}
}

func TestTransactionsUseReadCommitted(t *testing.T) {
	url := withParameter(t, pgtest.URL(t), readCommitted.name, "serializable") // as set for a database or a role
	s := openAt(t, url)
	config, err := parseURL(url)
	if err != nil {
		t.Fatal(err)
	}
	migrating, err := config.dial(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	defer migrating.Close(t.Context())
	for who, q := range map[string]querier{"a write": s.pool, "a view": s.views, "a migration": migrating} {
		var level string
		if err := q.QueryRow(t.Context(), "show transaction_isolation").Scan(&level); err != nil ||
			level != "read committed" {
			t.Errorf("%s is %s (%v), want read committed", who, level, err)
		}
	}
	_, err = Open(t.Context(), withParameter(t, url, poolModeName, "transaction"), engine.OpenOptions{})
	if err == nil || !strings.Contains(err.Error(), "alter role … set default_transaction_isolation") {
		t.Errorf("Open behind a pooler: %v, want a refusal that says what to do", err)
	}
}

func TestASessionMayBeIdleWhateverTheDatabaseAllows(t *testing.T) {
	s := openAt(t, withParameter(t, pgtest.URL(t), "idle_session_timeout", "60000"))
	listening := s.notifier.listen(t.Context())
	if listening == nil {
		t.Fatal("nobody can listen")
	}
	defer listening.Close(t.Context())
	for who, session := range map[string]querier{"who writes": s.pool, "who reads": s.views, "who listens": listening} {
		var limit string
		if err := session.QueryRow(t.Context(), "show idle_session_timeout").Scan(&limit); err != nil || limit != "0" {
			t.Errorf("%s has idle_session_timeout %s (%v), want none", who, limit, err)
		}
	}
}

func withParameter(t *testing.T, address, name, value string) string {
	t.Helper()
	u, err := url.Parse(address)
	if err != nil {
		t.Fatal(err)
	}
	query := u.Query()
	query.Set(name, value)
	u.RawQuery = strings.ReplaceAll(query.Encode(), "+", "%20")
	return u.String()
}

func TestAMisspeltParameterOfEncryptionIsRefused(t *testing.T) {
	for _, name := range []string{"sslmod", "ssl_mode", "sslrootcerts"} {
		_, err := parseURL("postgres://ada:secret@db.internal/shop?" + name + "=require")
		if e, ok := errors.AsType[*engine.Error](err); !ok || e.Field != "db" || !strings.Contains(err.Error(), name) ||
			strings.Contains(err.Error(), "secret") {
			t.Errorf("%s: error %v, want one that names it", name, err)
		}
	}
	for _, right := range []string{"sslmode=require", "sslmode=disable&search_path=shop", "work_mem=4MB"} {
		if _, err := parseURL("postgres://ada@db.internal/shop?" + right); err != nil {
			t.Errorf("%s: %v", right, err)
		}
	}
}

func TestAPasswordThatIsNotEscapedIsInNoError(t *testing.T) {
	for _, sign := range []string{"@", "/", "#", "?", "%", ":", " "} {
		config, err := parseURL("postgres://ada:se" + sign + "cret@db.internal/shop")
		if err == nil {
			err = config.unreached(errors.New("no answer"))
		}
		if strings.Contains(err.Error(), "cret") {
			t.Errorf("with %q in the password: %v", sign, err)
		}
	}
}
