package bench

import (
	"bytes"
	"errors"
	"io"
	"math/rand/v2"
	"net"
	"net/url"
	"testing"
	"time"
)

// echo answers with what it reads, and returns its address.
func echo(t *testing.T) string {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { l.Close() })
	go func() {
		for {
			c, err := l.Accept()
			if err != nil {
				return
			}
			go func() {
				defer c.Close()
				_, _ = io.Copy(c, c)
			}()
		}
	}()
	return l.Addr().String()
}

func TestADelayedDatabaseAnswersLaterAndCompletely(t *testing.T) {
	const roundTrip = 20 * time.Millisecond
	d, db, err := delayDatabase("postgres://ada:secret@"+echo(t)+"/kagzi?sslmode=disable", roundTrip)
	if err != nil {
		t.Fatal(err)
	}
	u, err := url.Parse(db)
	if err != nil || u.User.String() != "ada:secret" || u.Path != "/kagzi" || u.RawQuery != "sslmode=disable" {
		t.Fatalf("the URL is %q, %v, want the same but for the host", db, err)
	}
	conn, err := net.Dial("tcp", u.Host)
	if err != nil {
		t.Fatal(err)
	}
	began := time.Now()
	sent, got := make([]byte, 1<<20), make([]byte, 1<<20)
	for i := range sent {
		sent[i] = byte(rand.Uint32())
	}
	go func() { _, _ = conn.Write(sent) }()
	if _, err := io.ReadFull(conn, got); err != nil || !bytes.Equal(sent, got) {
		t.Fatalf("the answer differs from what was sent, %v", err)
	}
	if took := time.Since(began); took < roundTrip {
		t.Errorf("the answer came after %s, want at least %s", took, roundTrip)
	}
	if err := d.close(); err != nil {
		t.Error(err)
	}
	if _, err := conn.Read(got); err == nil {
		t.Error("the connection is open after close")
	}
}

func TestADelayNeedsOneHost(t *testing.T) {
	for _, db := range []string{"", "sqlite:a.db", "postgres:///kagzi", "postgres://a,b/kagzi",
		"postgres://a/kagzi?host=/tmp"} {
		_, _, err := delayDatabase(db, time.Millisecond)
		if exit, coded := errors.AsType[*exitError](err); !coded || exit.ExitCode() != exitUsage {
			t.Errorf("%q: %v, want a usage error", db, err)
		}
	}
}
