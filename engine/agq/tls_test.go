package agq_test

import (
	"bufio"
	"crypto/tls"
	"crypto/x509"
	"io"
	"log/slog"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/kagzi/kagzi/engine/agq"
	"github.com/kagzi/kagzi/engine/certs"
	"github.com/kagzi/kagzi/engine/server"
	kagziv1 "github.com/kagzi/kagzi/proto/kagzi/v1"
)

// encrypted is a server whose door speaks TLS with the certificate of its other ports.
type encrypted struct {
	*fixture
	client *tls.Config
	log    <-chan string // its lines
}

func startEncrypted(t *testing.T, write time.Duration) *encrypted {
	t.Helper()
	made, err := certs.Team{Dir: filepath.Join(t.TempDir(), "certs"), Hosts: []string{"127.0.0.1"}, Days: 10,
		Now: time.Now()}.Make()
	if err != nil {
		t.Fatal(err)
	}
	files, roots := certs.Files{}, x509.NewCertPool()
	for _, m := range made {
		switch m.Name {
		case "ca":
			roots.AddCert(m.Leaf)
		case "server":
			files.Cert, files.Key = m.Cert, m.Key
		}
	}
	log := slog.New(slog.NewTextHandler(t.Output(), nil))
	keeper, err := certs.Keep(files, log, nil)
	if err != nil {
		t.Fatal(err)
	}
	lines := make(chan string, 100)
	w := newWorld()
	f := serveWith(t, w.db.Open(nil), w.now, server.Options{}, func(d *agq.Door) {
		d.UseTLS(keeper.RPC(), write, slog.New(slog.NewTextHandler(linesTo(lines), nil)))
	})
	return &encrypted{f, &tls.Config{RootCAs: roots, MinVersion: tls.VersionTLS13}, lines}
}

// linesTo is a writer of log lines.
type linesTo chan<- string

func (l linesTo) Write(p []byte) (int, error) {
	l <- string(p)
	return len(p), nil
}

// secure returns a connection with TLS.
func (e *encrypted) secure() *client {
	e.Helper()
	raw, err := tls.Dial("tcp", e.at, e.client)
	if err != nil {
		e.Fatal(err)
	}
	e.Cleanup(func() { _ = raw.Close() })
	return &client{e, raw, bufio.NewReader(raw)}
}

func TestTheDoorSpeaksTLS(t *testing.T) {
	e := startEncrypted(t, time.Minute)
	c := e.secure()
	c.want("$echo", "PLAN.SUBMIT", echoPlan)
	job := idsIn(t, c.do("ACTION.SUBMIT", `{"action_id":"a","plan_id":"echo","inputs":[{"word":"x"}]}`))[0]
	w := e.secure()
	w.want("$w1", "PING", "w1")
	w.want("$"+job, "BRPOPLPUSH", "queue:ready", "queue:processing", "20")
	w.want("+OK", "SET", "job:"+job+":status", "completed")

	other := e.client.Clone() // a client that does not know the CA ends the handshake
	other.RootCAs = x509.NewCertPool()
	if _, err := tls.Dial("tcp", e.at, other); err == nil {
		t.Error("a client that does not trust the certificate is connected")
	}
	if line := <-e.log; !strings.Contains(line, "TLS handshake on the AGQ port failed") ||
		!strings.Contains(line, "from=127.0.0.1:") {
		t.Errorf("the log says %q", line)
	}
}

func TestAPlainClientOfATLSPortIsTold(t *testing.T) {
	e := startEncrypted(t, time.Minute)
	for _, said := range []string{encode("PING"), "PING\r\n", "GET / HTTP/1.1\r\n\r\n"} {
		c := e.dial()
		if _, err := io.WriteString(c.raw, said); err != nil {
			t.Fatal(err)
		}
		if got := c.answer(); got != "-ERR this port speaks TLS; connect with TLS" {
			t.Errorf("%q is answered %q", said, got)
		}
		c.closed()
		if line := <-e.log; !strings.Contains(line, "does not look like a TLS handshake") {
			t.Errorf("the log says %q", line)
		}
	}
}

func TestAClientThatReadsNothingIsClosedUnderTLS(t *testing.T) {
	e := startEncrypted(t, time.Second) // a busy machine may take long to write to the client that reads
	c, watch := e.secure(), e.secure()
	go func() { // until the server reads no more
		text := encode("ECHO", strings.Repeat("x", 60<<10))
		for {
			if _, err := io.WriteString(c.raw, text); err != nil {
				return
			}
		}
	}()
	for end := time.Now().Add(time.Minute); !strings.Contains(watch.do("METRICS"), "$connections $1 "); {
		if time.Now().After(end) {
			t.Fatal("the connection is still open after a minute")
		}
	}
}

func TestWrongKeysAreDelayedUnderTLS(t *testing.T) {
	e := startEncrypted(t, time.Minute)
	k := &keyed{fixture: e.fixture}
	k.admin = k.key(&kagziv1.Key{Name: "root", Role: kagziv1.KeyRole_KEY_ROLE_ADMIN})
	c := e.secure()
	const wrong = 14 // ten a second are answered at once
	began := time.Now()
	if _, err := io.WriteString(c.raw, strings.Repeat(encode("AUTH", "kz_wrong"), wrong)+encode("AUTH", k.admin)); err != nil {
		t.Fatal(err)
	}
	for range wrong {
		if got := c.answer(); !strings.HasPrefix(got, "-WRONGPASS") {
			t.Fatalf("a wrong key is answered %q", got)
		}
	}
	if took := time.Since(began); took < 250*time.Millisecond {
		t.Errorf("%d wrong keys are refused within %s", wrong, took)
	}
	if got := c.answer(); got != "+OK" {
		t.Errorf("the right key is answered %q", got)
	}
}
