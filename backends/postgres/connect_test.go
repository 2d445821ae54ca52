package postgres

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"strings"
	"testing"

	"github.com/jackc/pgx/v5/pgconn"

	"github.com/kagzi/kagzi/engine"
)

func TestAServerThatDoesNotAnswerIsNamedWithTheReason(t *testing.T) {
	closed, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	place := closed.Addr().String() + "/shop"
	if err := closed.Close(); err != nil {
		t.Fatal(err)
	}
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
	if want := "database=" + place + ` why="connection refused"`; !strings.Contains(log.String(), want) || strings.Contains(log.String(), "secret") {
		t.Errorf("log %q, want %q and no password", log.String(), want)
	}
	_, err = config.dial(t.Context())
	if got, want := config.unreached(err).Error(), "the database "+place+" does not answer: connection refused"; got != want {
		t.Errorf("error %q, want %q", got, want)
	}
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
		`the database db.internal/shop refuses the user "ada" or its password`:                               state("28P01"),
		"the server of db.internal/shop has no database of this name; make one, such as with: createdb shop": state("3D000"),
		"the database db.internal/shop does not answer: the database accepts no more connections":            state("53300"),
		"the database db.internal/shop does not answer: no such host":                                        fmt.Errorf("connect: %w", &net.DNSError{Err: "no such host", Name: "db.internal"}),
		"the database db.internal/shop does not answer: no answer in time":                                   fmt.Errorf("connect: %w", context.DeadlineExceeded),
		"the database db.internal/shop does not answer: server refused TLS connection":                       fmt.Errorf("connect: %w", errors.New("server refused TLS connection")),
	} {
		if got := config.unreached(err).Error(); got != want {
			t.Errorf("%v is %q, want %q", err, got, want)
		}
	}
}
