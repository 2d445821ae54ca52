package certs

import (
	"bytes"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"io"
	"log/slog"
	"net"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"
)

// kept is a keeper with the clock and the log of a test.
type kept struct {
	*Keeper
	now time.Time
	log bytes.Buffer
}

func keep(t *testing.T, f Files) *kept {
	t.Helper()
	k := &kept{now: today}
	var err error
	if k.Keeper, err = Keep(f, slog.New(slog.NewTextHandler(&k.log, nil)), func() time.Time {
		return k.now
	}); err != nil {
		t.Fatal(err)
	}
	return k
}

// said returns what was logged since its last call.
func (k *kept) said() string {
	text := k.log.String()
	k.log.Reset()
	return text
}

// greet does a handshake with a server and returns the result of each side.
func greet(t *testing.T, server, client *tls.Config) (state tls.ConnectionState, serverErr, clientErr error) {
	t.Helper()
	near, far := net.Pipe()
	var both sync.WaitGroup
	s := tls.Server(far, server)
	both.Go(func() {
		if serverErr = s.Handshake(); serverErr == nil {
			_, serverErr = s.Write([]byte("!"))
		}
		far.Close()
	})
	c := tls.Client(near, client)
	// In TLS 1.3 a client learns that its certificate was refused by what it reads after the
	// handshake.
	if clientErr = c.Handshake(); clientErr == nil {
		_, clientErr = io.ReadFull(c, make([]byte, 1))
	}
	state = c.ConnectionState()
	near.Close()
	both.Wait()
	return state, serverErr, clientErr
}

// trusting returns a client configuration that trusts the team's CA.
func trusting(t *testing.T, f Files, change func(*tls.Config)) *tls.Config {
	t.Helper()
	pool := x509.NewCertPool()
	if !pool.AppendCertsFromPEM(text(t, f.ClientCA)) {
		t.Fatal("no authority")
	}
	c := &tls.Config{RootCAs: pool, ServerName: "box.example", NextProtos: []string{"h2", "http/1.1"},
		Time: func() time.Time { return today }}
	if change != nil {
		change(c)
	}
	return c
}

func load(t *testing.T, m Made) tls.Certificate {
	t.Helper()
	c, err := tls.LoadX509KeyPair(m.Cert, m.Key)
	if err != nil {
		t.Fatal(err)
	}
	return c
}

func TestClientsAndServersMeetAsTheyShould(t *testing.T) {
	f, late := team(t, func(t *Team) { t.Clients, t.Days, t.Now = []string{"late"}, 1, today.AddDate(0, 0, -30) })
	made, err := Team{Dir: filepath.Dir(f.Cert), Clients: []string{"ci"}, Days: 1, Renew: true, Now: today}.Make()
	if err != nil {
		t.Fatal(err)
	}
	_, others := team(t, func(t *Team) { t.Clients = []string{"ci"} })
	ci, other, expired := load(t, made[2]), load(t, others[2]), load(t, late[2])
	show := func(c tls.Certificate) func(*tls.Config) {
		return func(config *tls.Config) {
			// even if it was not asked for
			config.GetClientCertificate = func(*tls.CertificateRequestInfo) (*tls.Certificate, error) { return &c, nil }
		}
	}
	k := keep(t, f)
	for _, try := range []struct {
		name    string
		server  *tls.Config
		change  func(*tls.Config)
		refused string
		proto   string
	}{
		{"a client without a certificate", k.RPC(), nil, "", "h2"},
		{"a client with one of the authority", k.RPC(), show(ci), "", "h2"},
		{"a client with one of another authority", k.RPC(), show(other), "certificate", ""},
		{"a client with one that has expired", k.RPC(), show(expired), "expired", ""},
		{"TLS 1.2", k.RPC(), func(c *tls.Config) { c.MaxVersion = tls.VersionTLS12 }, "protocol version", ""},
		{"a client that speaks something else", k.RPC(), func(c *tls.Config) {
			c.NextProtos = []string{"spdy"}
		}, "application protocol", ""},
		{"a browser", k.Web(), nil, "", "http/1.1"},
		{"curl with a certificate of the authority", k.Web(), show(ci), "", "http/1.1"},
		{"curl with one of another authority", k.Web(), show(other), "certificate", ""},
		{"a browser with TLS 1.2", k.Web(), func(c *tls.Config) {
			c.MaxVersion = tls.VersionTLS12
		}, "protocol version", ""},
	} {
		t.Run(try.name, func(t *testing.T) {
			state, serverErr, clientErr := greet(t, try.server, trusting(t, f, try.change))
			if try.refused != "" {
				if serverErr == nil || clientErr == nil || !mentions(errors.Join(serverErr, clientErr), try.refused) {
					t.Fatalf("server: %v, client: %v, want a refusal that says %q", serverErr, clientErr, try.refused)
				}
				return
			}
			if serverErr != nil || clientErr != nil {
				t.Fatalf("server: %v, client: %v", serverErr, clientErr)
			}
			if state.Version != tls.VersionTLS13 || state.NegotiatedProtocol != try.proto {
				t.Errorf("version %x, protocol %q, want TLS 1.3 and %q", state.Version,
					state.NegotiatedProtocol, try.proto)
			}
		})
	}
}

// shown returns the common name of the certificate in the next handshake.
func (k *kept) shown(t *testing.T) string {
	t.Helper()
	c, err := k.RPC().GetConfigForClient(nil)
	if err != nil {
		t.Fatal(err)
	}
	leaf, _ := k.Held()
	if !leaf.Equal(c.Certificates[0].Leaf) {
		t.Error("the certificate that is held is not the one that is shown")
	}
	return leaf.Subject.CommonName
}

func TestChangedFilesAreReloadedAtAHandshake(t *testing.T) {
	f, _ := team(t, nil)
	k := keep(t, f)
	if k.shown(t) != "box.example" || !strings.Contains(k.said(), "certificate loaded") {
		t.Fatal("the first certificate is not shown")
	}
	cert, key := signed(t, x509.Certificate{Subject: subject("second")})
	put(t, f.Cert, cert)
	if k.shown(t) != "box.example" || k.said() != "" {
		t.Error("the files were looked at again within a second")
	}
	k.now = k.now.Add(checkInterval)
	if k.shown(t) != "box.example" {
		t.Error("a certificate without its key was loaded")
	}
	if said := k.said(); !strings.Contains(said, "level=WARN") ||
		!strings.Contains(said, "server.key does not belong to certificate") {
		t.Errorf("log = %s, want a warning that names the key", said)
	}
	k.now = k.now.Add(time.Minute)
	if k.shown(t); k.said() != "" {
		t.Error("files that did not change were complained about twice")
	}
	put(t, f.Key, key)
	k.now = k.now.Add(checkInterval)
	if name := k.shown(t); name != "second" {
		t.Errorf("%s is shown, want the second certificate once its key is there", name)
	}
	if said := k.said(); !strings.Contains(said, "level=INFO") || !strings.Contains(said, "CN=second") {
		t.Errorf("log = %s, want that it was loaded", said)
	}
	if err := os.Remove(f.Key); err != nil {
		t.Fatal(err)
	}
	k.now = k.now.Add(checkInterval)
	if name := k.shown(t); name != "second" || !strings.Contains(k.said(), "level=WARN") {
		t.Errorf("%s is shown after its key went, want the second certificate and a warning", name)
	}
}

func TestReloadLoadsOtherFilesOrKeepsTheCurrentOnes(t *testing.T) {
	f, _ := team(t, nil)
	k := keep(t, f)
	other, _ := team(t, func(t *Team) { t.Hosts = []string{"other.example"} })
	if err := k.Reload(other); err != nil || k.shown(t) != "other.example" {
		t.Fatalf("%v: %s is shown, want other.example", err, k.shown(t))
	}
	if said := k.said(); !strings.Contains(said, "client CA loaded") {
		t.Errorf("log = %s, want that the other CA was loaded", said)
	}
	if err := k.Reload(Files{Cert: other.Cert, Key: f.Key}); err == nil || k.shown(t) != "other.example" {
		t.Errorf("%v: %s is shown, want an error and other.example", err, k.shown(t))
	}
	if _, files := k.Held(); files != other {
		t.Errorf("files = %v, want %v", files, other)
	}
}

func TestTheLogWarnsOnceADayBeforeACertificateExpires(t *testing.T) {
	f, _ := team(t, func(t *Team) { t.Days = 20 })
	k := keep(t, f)
	var warned []int
	for day := range 22 {
		k.now = today.AddDate(0, 0, day)
		for range 3 {
			k.now = k.now.Add(time.Minute)
			k.shown(t)
		}
		if strings.Count(k.said(), "level=WARN") == 1 {
			warned = append(warned, day)
		}
	}
	if len(warned) != 16 || warned[0] != 6 {
		t.Errorf("warned on days %v, want each from 6 on", warned)
	}
}

func TestHandshakesContinueWhileFilesChange(t *testing.T) {
	f, _ := team(t, func(t *Team) { t.Now = time.Now() })
	k, err := Keep(f, slog.New(slog.DiscardHandler), nil)
	if err != nil {
		t.Fatal(err)
	}
	server := k.RPC()
	var greeters sync.WaitGroup
	for range 4 {
		greeters.Go(func() {
			for range 20 {
				if _, serverErr, clientErr := greet(t, server,
					trusting(t, f, func(c *tls.Config) { c.Time = nil })); serverErr != nil || clientErr != nil {
					t.Errorf("server: %v, client: %v", serverErr, clientErr)
				}
			}
		})
	}
	for range 5 {
		if _, err := (Team{Dir: filepath.Dir(f.Cert), Days: 5, Now: time.Now(), Renew: true}).Make(); err != nil {
			t.Error(err)
		}
		if err := k.Reload(f); err != nil {
			t.Error(err)
		}
	}
	greeters.Wait()
}
