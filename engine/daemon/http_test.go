package daemon

import (
	"bytes"
	"errors"
	"log/slog"
	"net"
	"net/http"
	"strings"
	"sync/atomic"
	"testing"

	"context"

	"github.com/kagzi/kagzi/engine"
)

// ailing is a store whose health the test sets.
type ailing struct {
	engine.Store
	failure atomic.Pointer[engine.Error]
}

func (s *ailing) Health(ctx context.Context) error {
	if e := s.failure.Load(); e != nil {
		return e
	}
	return s.Store.Health(ctx)
}

func TestHealthOverHTTPIsThatOfTheDatabase(t *testing.T) {
	store := &ailing{}
	s := serve(t, testConfig(t), embedded(func(inner engine.Store) engine.Store {
		store.Store = inner
		return store
	}))
	for _, path := range []string{"/healthz", "/readyz"} {
		store.failure.Store(nil)
		if status, text := get(t, s.HTTP, path); status != http.StatusOK || text != "ok\n" {
			t.Errorf("%s = %d %q, want 200 ok", path, status, text)
		}
		store.failure.Store(&engine.Error{Kind: engine.KindExhausted, Message: "the disk is\x1b full"})
		if status, text := get(t, s.HTTP, path); status != http.StatusServiceUnavailable ||
			text != "the disk is\\x1b full\n" {
			t.Errorf("%s = %d %q, want 503 and why", path, status, text)
		}
		if err := healthOf(t, s.Client); err == nil || !mentions(err, "NOT_SERVING") {
			t.Errorf("over gRPC: %v, want the same", err)
		}
	}
	_, text := get(t, s.HTTP, "/metrics")
	if samples(t, text)["kagzi_healthy"] != 0 {
		t.Error("kagzi_healthy is not 0")
	}
}

func TestOnlyWhatIsThereIsServedAndOnlyForReading(t *testing.T) {
	s := serve(t, testConfig(t), embedded(nil))
	if status, _ := get(t, s.HTTP, "/debug/pprof/"); status != http.StatusNotFound {
		t.Errorf("status = %d, want 404", status)
	}
	answer, err := http.Post("http://"+s.HTTP+"/metrics", "text/plain", strings.NewReader(""))
	if err != nil {
		t.Fatal(err)
	}
	answer.Body.Close()
	if answer.StatusCode != http.StatusMethodNotAllowed {
		t.Errorf("status of a POST = %d, want 405", answer.StatusCode)
	}
	s.stop()
	if err := <-s.done; err != nil {
		t.Fatal(err)
	}
	if conn, err := net.Dial("tcp", s.HTTP); err == nil {
		conn.Close()
		t.Error("the port still answers after the stop")
	}
}

func TestHTTPCanBeTurnedOff(t *testing.T) {
	c := testConfig(t)
	c.HTTP = ""
	if s := serve(t, c, embedded(nil)); s.HTTP != "" {
		t.Errorf("served on %s, want nowhere", s.HTTP)
	}
}

func TestHTTPIsNotForOtherMachinesWithoutInsecure(t *testing.T) {
	c := testConfig(t)
	c.HTTP = "0.0.0.0:0"
	if err := Run(t.Context(), c, embedded(nil), unreached(t)); err == nil || codeOf(err) != 78 ||
		!mentions(err, "--http", "--insecure") {
		t.Errorf("error %v with code %d, want one that names --http and --insecure, with 78", err, codeOf(err))
	}
	var log bytes.Buffer
	c.Insecure, c.Log = true, slog.New(slog.NewTextHandler(&log, nil))
	s := serve(t, c, embedded(nil))
	if status, _ := get(t, s.HTTP, "/readyz"); status != http.StatusOK {
		t.Errorf("status = %d, want 200", status)
	}
	s.stop()
	if err := <-s.done; err != nil || !strings.Contains(log.String(), "--http 0.0.0.0:0") {
		t.Errorf("%v, log = %s, want a warning about it", err, log.String())
	}
}

func TestATakenPortOfHTTPStopsTheServerOnlyIfItWasAskedFor(t *testing.T) {
	taken, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer taken.Close()
	var log bytes.Buffer
	c := testConfig(t)
	c.HTTP, c.Log = taken.Addr().String(), slog.New(slog.NewTextHandler(&log, nil))
	s := serve(t, c, embedded(nil))
	if s.HTTP != "" {
		t.Errorf("served on %s, want nowhere", s.HTTP)
	}
	if err := healthOf(t, s.Client); err != nil {
		t.Error(err)
	}
	s.stop()
	if err := errors.Join(<-s.done); err != nil {
		t.Fatal(err)
	}
	if !strings.Contains(log.String(), "level=WARN") || !strings.Contains(log.String(), c.HTTP) ||
		!strings.Contains(log.String(), "is in use") {
		t.Errorf("log = %s, want a warning that another program listens on %s", log.String(), c.HTTP)
	}
	c.Sources = map[string]string{"http": "flag"}
	if err := Run(t.Context(), c, embedded(nil), unreached(t)); err == nil || codeOf(err) != 1 ||
		!mentions(err, c.HTTP, "--http") {
		t.Errorf("error %v with code %d, want one that names %s and --http, with 1", err, codeOf(err), c.HTTP)
	}
}

// nearlyFull is a store on a disk that has too little space for new runs.
type nearlyFull struct{ engine.Store }

func (nearlyFull) Space() engine.DiskSpace {
	return engine.DiskSpace{Free: 100 << 20, Low: true, Known: true}
}

func TestADiskThatIsNearlyFullIsInReadyzAndMetrics(t *testing.T) {
	s := serve(t, testConfig(t), embedded(func(store engine.Store) engine.Store { return nearlyFull{store} }))
	status, text := get(t, s.HTTP, "/readyz")
	if status != http.StatusOK || !strings.Contains(text, "new runs are refused") {
		t.Errorf("readyz = %d, %q, want 200 with what is refused: workers must be able to finish", status, text)
	}
	if _, text := get(t, s.HTTP, "/healthz"); text != "ok\n" {
		t.Errorf("healthz = %q", text)
	}
	_, text = get(t, s.HTTP, "/metrics")
	if got := samples(t, text)["kagzi_disk_free_bytes"]; got != 100<<20 {
		t.Errorf("kagzi_disk_free_bytes = %v", got)
	}
}

// asked sends a request with a host and headers to the HTTP port.
func asked(t *testing.T, address, verb, path, host string, headers ...string) int {
	t.Helper()
	r, err := http.NewRequestWithContext(t.Context(), verb, "http://"+address+path, nil)
	if err != nil {
		t.Fatal(err)
	}
	r.Host = host
	for _, h := range headers {
		name, value, _ := strings.Cut(h, ": ")
		r.Header.Set(name, value)
	}
	answer, err := http.DefaultClient.Do(r)
	if err != nil {
		t.Fatal(err)
	}
	answer.Body.Close()
	return answer.StatusCode
}

func TestHTTPServesTheAPIBehindItsGateAndHealthToAll(t *testing.T) {
	c := testConfig(t)
	c.HTTPHosts, c.HTTPOrigins = []string{"kagzi.example"}, []string{"https://app.example"}
	s := serve(t, c, embedded(nil))
	for _, path := range []string{"/v1/workflows", "/metrics", "/openapi.json", "/openapi", "/healthz", "/readyz"} {
		foreign, proxied := http.StatusMisdirectedRequest, http.StatusForbidden
		if strings.HasSuffix(path, "z") {
			foreign, proxied = http.StatusOK, http.StatusOK
		}
		if got := asked(t, s.HTTP, "GET", path, "kagzi.example"); got != http.StatusOK {
			t.Errorf("%s = %d", path, got)
		}
		if got := asked(t, s.HTTP, "GET", path, "evil.example"); got != foreign {
			t.Errorf("%s of another host = %d, want %d", path, got, foreign)
		}
		if got := asked(t, s.HTTP, "GET", path, s.HTTP, "X-Forwarded-For: 192.0.2.1"); got != proxied {
			t.Errorf("%s by a proxy = %d, want %d", path, got, proxied)
		}
	}
	if got := asked(t, s.HTTP, "OPTIONS", "/v1/workflows", s.HTTP, "Origin: https://app.example",
		"Access-Control-Request-Method: POST"); got != http.StatusNoContent {
		t.Errorf("a preflight of a known origin = %d, want 204", got)
	}
	for _, path := range []string{"/", "/v1/", "/v1/../metrics", "/v1", "//v1/workflows"} {
		if got := asked(t, s.HTTP, "GET", path, s.HTTP); got != http.StatusNotFound {
			t.Errorf("%s = %d, want 404", path, got)
		}
	}
}
