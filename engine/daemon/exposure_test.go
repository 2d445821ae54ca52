package daemon

import (
	"bytes"
	"context"
	"errors"
	"log/slog"
	"net"
	"os"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/kagzi/kagzi/engine"
)

// withKeyring is a store with the keys given by the test.
type withKeyring struct {
	engine.Store
	keys []engine.APIKey
	err  error
}

func (s *withKeyring) Keyring(context.Context) ([]engine.APIKey, error) { return s.keys, s.err }

func withKeys(keys ...engine.APIKey) Backends {
	return embedded(func(inner engine.Store) engine.Store { return &withKeyring{Store: inner, keys: keys} })
}

func adminKey(expires time.Time) engine.APIKey {
	return engine.APIKey{ID: engine.ID{1}, Name: "root", Role: engine.RoleAdmin, CreatedAt: time.Now(),
		ExpiresAt: expires}
}

// elsewhere returns hosts by which other machines could reach this one: all addresses, those of the
// network, and their names.
func elsewhere(t *testing.T) []string {
	t.Helper()
	hosts := []string{"", "0.0.0.0", "::", "::ffff:0.0.0.0"}
	interfaces, err := net.InterfaceAddrs()
	if err != nil {
		t.Fatal(err)
	}
	for _, a := range interfaces {
		if ip, ok := a.(*net.IPNet); ok && ip.IP.IsGlobalUnicast() {
			hosts = append(hosts, ip.IP.String())
		}
	}
	name, err := os.Hostname()
	if err != nil {
		return hosts
	}
	if found, err := systemResolver(t.Context(), name); err == nil && !allLoopback(found) {
		hosts = append(hosts, name)
	}
	return hosts
}

func TestAServerThatOtherMachinesCouldReachIsRefusedBeforeItListens(t *testing.T) {
	files, hosts := team(t), elsewhere(t)
	if testing.Short() {
		hosts = hosts[:1]
	}
	for _, host := range hosts {
		for _, flag := range []string{"--listen", "--http"} {
			// The address is taken: a server that got as far as listening would report that
			// instead.
			taken, err := net.Listen("tcp", net.JoinHostPort(host, "0"))
			if err != nil {
				t.Fatal(err)
			}
			t.Cleanup(func() { taken.Close() })
			_, port, err := net.SplitHostPort(taken.Addr().String())
			if err != nil {
				t.Fatal(err)
			}
			address := net.JoinHostPort(host, port)
			for _, try := range []struct {
				name string
				tls  bool
				b    Backends
				says []string
			}{
				{"with nothing", false, embedded(nil),
					[]string{"encryption", "kagzi tls init", "--tls-cert", "--tls-key"}},
				{"with a key and no TLS", false, withKeys(adminKey(time.Time{})),
					[]string{"encryption", "kagzi tls init"}},
				{"with TLS and no key", true, withKeys(),
					[]string{"without a key", "kagzi key create", "--role admin --db sqlite:"}},
				{"with TLS and an expired key", true, withKeys(adminKey(time.Now().Add(-time.Second))),
					[]string{"expired", "kagzi key create"}},
			} {
				t.Run(flag+" "+host+" "+try.name, func(t *testing.T) {
					c := testConfig(t)
					if c.Listen = address; flag == "--http" {
						c.Listen, c.HTTP, c.Sources = "127.0.0.1:0", address, map[string]string{"http": "flag"}
					}
					if try.tls {
						c.TLSCert, c.TLSKey = files.Cert, files.Key
					}
					err := Run(t.Context(), c, try.b, unreached(t))
					if codeOf(err) != 78 || !mentions(err,
						append(try.says, flag, address, "127.0.0.1", "--insecure")...) {
						t.Errorf("error %v with code %d, want one that says %q, with 78", err, codeOf(err), try.says)
					}
				})
			}
		}
	}
}

func TestAServerWhoseKeysCannotBeReadDoesNotListenWhereOthersReachIt(t *testing.T) {
	files := team(t)
	c := testConfig(t)
	c.Listen, c.TLSCert, c.TLSKey = "0.0.0.0:0", files.Cert, files.Key
	broken := embedded(func(inner engine.Store) engine.Store {
		return &withKeyring{Store: inner, err: errors.New("gone")}
	})
	if err := Run(t.Context(), c, broken, unreached(t)); !mentions(err, "list keys", "gone") {
		t.Errorf("Run = %v, want that the keys could not be read", err)
	}
}

func TestANameThatResolvesToTheNetworkIsExposed(t *testing.T) {
	c := Defaults()
	c.Listen = "box:50051"
	at, err := c.addresses(t.Context(), names)
	if err == nil {
		err = c.checkEncryption(&at)
	}
	if codeOf(err) != 78 || !mentions(err, "--listen", "box:50051") {
		t.Errorf("error %v with code %d, want 78", err, codeOf(err))
	}
	c.Listen, c.HTTP = "localhost:1", "both:1"
	if at, err = c.addresses(t.Context(), names); err == nil {
		err = c.checkEncryption(&at)
	}
	if codeOf(err) != 78 || !mentions(err, "--http", "both:1") {
		t.Errorf("error %v with code %d, want 78 for --http", err, codeOf(err))
	}
}

func TestWithTLSAndAKeyAServerListensEverywhereWithoutAWarning(t *testing.T) {
	c := encrypted(t)
	var log bytes.Buffer
	c.Listen, c.Log = "0.0.0.0:0", slog.New(slog.NewTextHandler(&log, nil))
	s := serve(t, c, withKeys(adminKey(time.Time{})))
	s.stop()
	if err := <-s.done; err != nil || strings.Contains(log.String(), "level=WARN") {
		t.Errorf("%v, log = %s, want no warning", err, log.String())
	}
}

func TestInsecureSaysWhatIsNotSecureAtEachStart(t *testing.T) {
	files := team(t)
	for _, try := range []struct {
		name   string
		change func(*Config)
		keys   []engine.APIKey
		want   []string
	}{
		{"nothing that others reach", func(*Config) {}, nil, nil},
		{"neither", func(c *Config) { c.Listen = "0.0.0.0:0" }, nil, []string{"encryption", "no key"}},
		{"no encryption", func(c *Config) {
			c.Listen = "0.0.0.0:0"
		}, []engine.APIKey{adminKey(time.Time{})}, []string{"--listen 0.0.0.0:0 without encryption"}},
		{"without a key", func(c *Config) {
			c.Listen, c.TLSCert, c.TLSKey = "0.0.0.0:0", files.Cert, files.Key
		}, nil, []string{"no key"}},
		{"both listeners", func(c *Config) {
			c.Listen, c.HTTP = "0.0.0.0:0", "0.0.0.0:0"
		}, []engine.APIKey{adminKey(time.Time{})}, []string{"--listen", "--http"}},
		{"all is well", func(c *Config) {
			c.Listen, c.TLSCert, c.TLSKey = "0.0.0.0:0", files.Cert, files.Key
		}, []engine.APIKey{adminKey(time.Time{})}, nil},
	} {
		t.Run(try.name, func(t *testing.T) {
			var log bytes.Buffer
			c := testConfig(t)
			c.Insecure, c.Log = true, slog.New(slog.NewTextHandler(&log, nil))
			try.change(&c)
			s := serve(t, c, withKeys(try.keys...))
			s.stop()
			if err := <-s.done; err != nil {
				t.Fatal(err)
			}
			warned := slices.DeleteFunc(strings.Split(log.String(), "\n"), func(l string) bool {
				return !strings.Contains(l, "level=WARN")
			})
			if len(warned) != len(try.want) {
				t.Fatalf("warnings %q, want %d", warned, len(try.want))
			}
			for i, want := range try.want {
				if !strings.Contains(warned[i], want) || !strings.Contains(warned[i], "--insecure") {
					t.Errorf("warning %q, want one about %s", warned[i], want)
				}
			}
		})
	}
}

func TestWordsOfAShellStayWords(t *testing.T) {
	for text, want := range map[string]string{ // where cmd and PowerShell split words
		`C:\a\b.crt`: `C:\a\b.crt`, "": `""`, `C:\Program Files\k`: `"C:\Program Files\k"`, `C:\a b\`: `"C:\a b\\"`,
		"it's":                     `"it's"`,
		"postgres://u@h/d?a=b&c=d": `"postgres://u@h/d?a=b&c=d"`, `a "b\" c`: `"a \"b\\\" c"`,
	} {
		if got := wordOn("windows", text); got != want {
			t.Errorf("word(%q) on Windows = %s, want %s", text, got, want)
		}
	}
	for text, want := range map[string]string{
		"sqlite:/a/b.db": "sqlite:/a/b.db", "": "''", "a b": "'a b'", "it's": `'it'\''s'`, "$(x)": "'$(x)'",
		"a\x1b[m":                  `'a\x1b[m'`,
		"postgres://u@h/d?a=b&c=d": "'postgres://u@h/d?a=b&c=d'",
	} {
		if got := wordOn("linux", text); got != want {
			t.Errorf("word(%q) = %s, want %s", text, got, want)
		}
	}
}
