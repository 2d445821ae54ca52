package daemon

import (
	"bytes"
	"context"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"io"
	"net/http"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/credentials"
	grpcstatus "google.golang.org/grpc/status"

	"github.com/kagzi/kagzi/engine/certs"
	kagziv1 "github.com/kagzi/kagzi/proto/kagzi/v1"
)

// team returns certificates for a server on this machine.
func team(t *testing.T) certs.Files {
	t.Helper()
	dir := filepath.Join(t.TempDir(), "tls")
	renew(t, dir)
	return certs.Files{Cert: filepath.Join(dir, "server.crt"), Key: filepath.Join(dir, "server.key"),
		ClientCA: filepath.Join(dir, "ca.crt")}
}

// renew creates or replaces the server's certificate in a directory.
func renew(t *testing.T, dir string) *x509.Certificate {
	t.Helper()
	made, err := certs.Team{Dir: dir, Local: []string{"localhost", "127.0.0.1"}, Days: 30, Renew: true,
		Now: time.Now()}.Make()
	if err != nil {
		t.Fatal(err)
	}
	return made[1].Leaf
}

// encrypted returns the settings of a server with TLS.
func encrypted(t *testing.T) Config {
	t.Helper()
	c, files := testConfig(t), team(t)
	c.TLSCert, c.TLSKey, c.ClientCA = files.Cert, files.Key, files.ClientCA
	return c
}

// trust returns a client's TLS settings that trust the CA of the settings.
func trust(t *testing.T, c Config) *tls.Config {
	t.Helper()
	text, err := os.ReadFile(c.ClientCA)
	if err != nil {
		t.Fatal(err)
	}
	pool := x509.NewCertPool()
	pool.AppendCertsFromPEM(text)
	return &tls.Config{RootCAs: pool}
}

func loadPair(t *testing.T, m *certs.Made) tls.Certificate {
	t.Helper()
	pair, err := tls.LoadX509KeyPair(m.Cert, m.Key)
	if err != nil {
		t.Fatal(err)
	}
	return pair
}

// infoOver requests the server's info over TLS.
func infoOver(t *testing.T, address string, config *tls.Config) (*kagziv1.GetServerInfoResponse, error) {
	t.Helper()
	conn, err := grpc.NewClient(address, grpc.WithTransportCredentials(credentials.NewTLS(config)))
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close()
	ctx, cancel := context.WithTimeout(t.Context(), 10*time.Second)
	defer cancel()
	return kagziv1.NewAdminServiceClient(conn).GetServerInfo(ctx, &kagziv1.GetServerInfoRequest{})
}

func TestAServerWithACertificateSpeaksTLSAndNothingElse(t *testing.T) {
	c := encrypted(t)
	s := serve(t, c, embedded(nil))
	if !s.TLS || s.HTTPS {
		t.Errorf("ready = %+v, want TLS, and plain HTTP on this machine", s.Ready)
	}
	info, err := infoOver(t, s.Client, trust(t, c))
	if err != nil {
		t.Fatal(err)
	}
	told := ""
	for _, f := range info.Facts {
		if f.Section == "tls" {
			told += f.Name + "=" + f.Value + ";"
		}
	}
	if !strings.HasPrefix(told, "certificate=CN=localhost,O=Kagzi;holds for=localhost, 127.0.0.1;expires=") ||
		!strings.HasSuffix(told, ";client certificates=accepted, not required;") {
		t.Errorf("the server tells %q of its certificate", told)
	}
	if err := healthOf(t, s.Client); grpcstatus.Code(err) != codes.Unavailable {
		t.Errorf("without TLS: %v, want that it is refused", err)
	}
	old := trust(t, c)
	old.MaxVersion = tls.VersionTLS12
	if _, err := infoOver(t, s.Client, old); grpcstatus.Code(err) != codes.Unavailable ||
		!mentions(err, "protocol version") {
		t.Errorf("with TLS 1.2: %v, want that the version is refused", err)
	}
	if _, err := infoOver(t, s.Client, &tls.Config{RootCAs: x509.NewCertPool()}); !mentions(err, "unknown authority") {
		t.Errorf("to a client that does not know the authority: %v", err)
	}
	if status, text := get(t, s.HTTP, "/healthz"); status != http.StatusOK {
		t.Errorf("health = %d %s, want 200", status, text)
	}
}

func TestWhatOtherMachinesReachOverHTTPIsEncryptedWhereTheServerIs(t *testing.T) {
	c := encrypted(t)
	c.HTTP, c.Insecure = "0.0.0.0:0", true // there is no key
	s := serve(t, c, embedded(nil))
	if !s.HTTPS {
		t.Errorf("ready = %+v, want HTTPS", s.Ready)
	}
	transport := &http.Transport{TLSClientConfig: trust(t, c)}
	defer transport.CloseIdleConnections()
	answer, err := (&http.Client{Transport: transport}).Get("https://" + s.HTTP + "/healthz")
	if err != nil {
		t.Fatal(err)
	}
	answer.Body.Close()
	if answer.StatusCode != http.StatusOK {
		t.Errorf("status = %d, want 200", answer.StatusCode)
	}
	if status, _ := get(t, s.HTTP, "/healthz"); status != http.StatusBadRequest {
		t.Errorf("without TLS: %d, want 400", status)
	}
	var out bytes.Buffer
	announce(&out, s.Ready)
	for _, want := range []string{
		"http      https://" + s.HTTP + "/openapi\n", "metrics   https://" + s.HTTP + "/metrics\n",
		"--address " + s.Client + " --tls-ca " + word(c.ClientCA) + "\n"} {
		if !strings.Contains(out.String(), want) {
			t.Errorf("announcement %s, want %q in it", out.String(), want)
		}
	}
}

func TestNoCallIsLostWhileCertificatesChange(t *testing.T) {
	c := encrypted(t)
	s := serve(t, c, embedded(nil))
	standing, err := grpc.NewClient(s.Client, grpc.WithTransportCredentials(credentials.NewTLS(trust(t, c))))
	if err != nil {
		t.Fatal(err)
	}
	defer standing.Close()
	var calls atomic.Int64
	done := make(chan struct{})
	var callers sync.WaitGroup
	for i := range 4 {
		callers.Go(func() {
			for {
				select {
				case <-done:
					return
				default:
				}
				var err error
				if i == 0 { // on a lasting connection
					_, err = kagziv1.NewAdminServiceClient(standing).GetServerInfo(
						t.Context(), &kagziv1.GetServerInfoRequest{})
				} else { // each on its own connection
					_, err = infoOver(t, s.Client, trust(t, c))
				}
				if err != nil {
					t.Errorf("a call was lost: %v", err)
					return
				}
				calls.Add(1)
			}
		})
	}
	var last *x509.Certificate
	for range 10 {
		before := calls.Load()
		last = renew(t, filepath.Dir(c.TLSCert))
		for calls.Load() < before+8 && !t.Failed() {
			_, _ = infoOver(t, s.Client, trust(t, c)) // wait for it, without counting it
		}
	}
	close(done)
	callers.Wait()
	// Files are checked at most once per second, so the last one is served within a second.
	for shown := (*x509.Certificate)(nil); shown == nil || !shown.Equal(last); {
		conn, err := tls.Dial("tcp", s.Client, func() *tls.Config {
			c := trust(t, c)
			c.NextProtos = []string{"h2"}
			return c
		}())
		if err != nil {
			t.Fatal(err)
		}
		shown = conn.ConnectionState().PeerCertificates[0]
		conn.Close()
	}
}

func TestReloadAppliesTLSFiles(t *testing.T) {
	c, other := encrypted(t), team(t)
	next := c
	s, hear, _, lines := reloadable(t, c, func() bool { return false }, func() (Config, []string, error) {
		return next, nil, nil
	})
	heard := func() (text string) { // returns what is logged when they are reloaded twice, after the second time
		hear <- os.Interrupt
		hear <- os.Interrupt
		for strings.Count(text, "settings reloaded") < 2 {
			text += <-lines
		}
		return text
	}
	for _, step := range []struct {
		name   string
		change func()
		says   []string
		holds  string // the expected certificate file
	}{
		{"other files", func() {
			next.TLSCert, next.TLSKey, next.ClientCA = other.Cert, other.Key, ""
		}, []string{"certificate loaded", "client CA loaded"}, other.Cert},
		{"a key that does not belong", func() {
			next.TLSKey = c.TLSKey
		}, []string{"level=WARN", "does not belong", "keeping the current certificate"}, other.Cert},
		{"the first files", func() { next = c }, []string{"certificate loaded"}, c.TLSCert},
		{"half of them", func() {
			next.TLSKey = ""
		}, []string{"level=WARN", "--tls-cert", "give both or neither"}, c.TLSCert},
	} {
		step.change()
		text := heard()
		for _, want := range step.says {
			if !strings.Contains(text, want) {
				t.Errorf("%s: log = %s, want %s", step.name, text, want)
			}
		}
		authority := c
		if step.holds == other.Cert {
			authority.ClientCA = other.ClientCA
		}
		info, err := infoOver(t, s.Client, trust(t, authority))
		if err != nil {
			t.Fatalf("%s: %v", step.name, err)
		}
		for _, f := range info.Facts {
			want := map[string]string{"tls-cert": step.holds,
				"tls-key": strings.TrimSuffix(step.holds, "crt") + "key"}[f.Name]
			if f.Section == "settings" && want != "" && f.Value != want {
				t.Errorf("%s: %s = %s, want %s", step.name, f.Name, f.Value, want)
			}
		}
	}
	next.TLSCert, next.TLSKey, next.ClientCA = "", "", ""
	if text := heard(); !strings.Contains(text, `settings="tls-cert, tls-key"`) {
		t.Errorf("log = %s, want that turning TLS off needs a restart", text)
	}
	if _, err := infoOver(t, s.Client, trust(t, c)); err != nil {
		t.Errorf("after TLS was to be turned off: %v, want that it goes on", err)
	}
}

func TestFilesOfTLSThatAreMissingOrWrongEndTheStart(t *testing.T) {
	files := team(t)
	open := filepath.Join(t.TempDir(), "open.key")
	text, err := os.ReadFile(files.Key)
	if err == nil {
		err = errors.Join(os.WriteFile(open, text, 0o600), os.Chmod(open, 0o644))
	}
	if err != nil {
		t.Fatal(err)
	}
	for _, try := range []struct {
		name   string
		change func(*Config)
		code   int
		says   []string
	}{
		{"a certificate alone", func(c *Config) {
			c.TLSKey = ""
		}, 64, []string{"--tls-cert", "--tls-key", "give both or neither"}},
		{"a key alone", func(c *Config) {
			c.TLSCert = ""
		}, 64, []string{"--tls-cert", "--tls-key", "give both or neither"}},
		{"authorities alone", func(c *Config) {
			c.TLSCert, c.TLSKey, c.ClientCA = "", "", files.ClientCA
		}, 64, []string{"--client-ca", "needs --tls-cert"}},
		{"a key that everybody can read", func(c *Config) { c.TLSKey = open }, 78, []string{open, "chmod 600"}},
		{"no such file", func(c *Config) { c.TLSCert += "x" }, 64, []string{files.Cert + "x"}},
		{"a credential that nobody handed over", func(c *Config) {
			c.TLSKey = "credential:tls-key"
		}, 64, []string{"--tls-key", "credential:tls-key", "LoadCredential"}},
		{"a credential that is no name", func(c *Config) {
			c.TLSKey = "credential:../x"
		}, 64, []string{"--tls-key", "credential:../x"}},
	} {
		t.Run(try.name, func(t *testing.T) {
			if try.code == 78 && runtime.GOOS == "windows" {
				t.Skip("Windows has no file modes: who may read a file is inherited from its directory")
			}
			c := testConfig(t)
			c.TLSCert, c.TLSKey = files.Cert, files.Key
			try.change(&c)
			if err := Run(t.Context(), c, Backends{}, unreached(t)); codeOf(err) != try.code ||
				!mentions(err, try.says...) {
				t.Errorf("error %v with code %d, want one that says %q, with %d", err, codeOf(err), try.says, try.code)
			}
		})
	}
}

func TestFilesCanBeCredentialsOfTheService(t *testing.T) {
	c := encrypted(t)
	t.Setenv("CREDENTIALS_DIRECTORY", filepath.Dir(c.TLSCert))
	c.TLSCert, c.TLSKey, c.ClientCA = "credential:server.crt", "credential:server.key", "credential:ca.crt"
	s := serve(t, c, embedded(nil))
	plain := c
	plain.ClientCA = filepath.Join(os.Getenv("CREDENTIALS_DIRECTORY"), "ca.crt")
	info, err := infoOver(t, s.Client, trust(t, plain))
	if err != nil {
		t.Fatal(err)
	}
	for _, f := range info.Facts {
		if f.Name == "tls-key" && f.Value != "credential:server.key" {
			t.Errorf("tls-key = %s, want it as it was said", f.Value)
		}
	}
	path := filepath.Join(filepath.Dir(plain.ClientCA), "kagzi")
	if err := os.WriteFile(path, []byte("[server]\nlisten = \"127.0.0.1:7\"\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	if got, _, err := settle([]string{"--config", "credential:kagzi"}, nil); err != nil || got.Listen != "127.0.0.1:7" {
		t.Errorf("settings from a credential: %+v, %v", got, err)
	}
}

func TestTheSettingsThatArePrintedNameTheFilesOfTLS(t *testing.T) {
	c := Defaults()
	c.TLSCert, c.TLSKey, c.DB = "/etc/kagzi/tls/server.crt", "credential:tls-key", "sqlite:x.db"
	c.Sources = map[string]string{"tls-cert": "file k.toml:2", "tls-key": "flag"}
	var out bytes.Buffer
	if err := printConfig(&out, &c); err != nil {
		t.Fatal(err)
	}
	for _, want := range []string{`tls-cert = "/etc/kagzi/tls/server.crt"`, "# file k.toml:2",
		`tls-key = "credential:tls-key"`, `client-ca = "off"`} {
		if !strings.Contains(out.String(), want) {
			t.Errorf("printed:\n%s\nwant %s in it", out.String(), want)
		}
	}
}

// fetch gets a path over HTTP with a secret.
func fetch(t *testing.T, address, path, secret string) (status int, text string, header http.Header) {
	t.Helper()
	r, err := http.NewRequestWithContext(t.Context(), http.MethodGet, "http://"+address+path, nil)
	if err != nil {
		t.Fatal(err)
	}
	if secret != "" {
		r.Header.Set("Authorization", "Bearer "+secret)
	}
	answer, err := http.DefaultClient.Do(r)
	if err != nil {
		t.Fatal(err)
	}
	defer answer.Body.Close()
	body, err := io.ReadAll(answer.Body)
	if err != nil {
		t.Fatal(err)
	}
	return answer.StatusCode, string(body), answer.Header
}
