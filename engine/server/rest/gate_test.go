package rest

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"crypto/x509/pkix"
	"io"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"strconv"
	"strings"
	"testing"

	"google.golang.org/grpc/metadata"
	"google.golang.org/grpc/peer"

	"github.com/kagzi/kagzi/engine/server/internal/auth"
)

// gated returns a function that sends a request through a gate and returns its status and headers.
func gated(t *testing.T, o GateOptions, keyless bool) func(method, host string, headers ...string) (int, http.Header) {
	t.Helper()
	o.Keyless, o.Log = func(context.Context) bool { return keyless }, slog.New(slog.DiscardHandler)
	gate, err := NewGate(o)
	if err != nil {
		t.Fatal(err)
	}
	h := gate.Handler(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { _, _ = io.WriteString(w, "in") }),
		Types...)
	return func(method, host string, headers ...string) (int, http.Header) {
		r := httptest.NewRequest(method, "http://x/v1/workflows", strings.NewReader("{}"))
		r.Host = host
		if isWrite(method) {
			r.Header.Set("Content-Type", "application/json")
		}
		for _, h := range headers {
			name, value, _ := strings.Cut(h, ": ")
			r.Header.Del(name)
			if value != "-" {
				r.Header.Add(name, value)
			}
		}
		w := httptest.NewRecorder()
		h.ServeHTTP(w, r)
		if kind := w.Header().Get("Content-Type"); w.Code >= 400 && kind != "application/problem+json" {
			t.Errorf("%s is refused with %d as %s", host, w.Code, kind)
		}
		return w.Code, w.Header()
	}
}

func TestOnlyHostsOfTheServerAreServedOnLoopbackAndWithoutKeys(t *testing.T) {
	for host, want := range map[string]int{
		"localhost": 200, "localhost:50052": 200, "LOCALHOST": 200, "127.0.0.1:50052": 200, "127.9.9.9": 200,
		"[::1]:50052": 200, "[::1]": 200, "[::ffff:127.0.0.1]:1": 200, "kagzi.example": 200, "KAGZI.example:443": 200,
		"": 421, "evil.example": 421, "evil.example:50052": 421, "localhost.evil.example": 421, "0.0.0.0": 421,
		"192.0.2.1:50052": 421, "kagzi.example.evil.example": 421, "a@localhost": 421, "localhost.": 421,
		"127.0.0.1.nip.io": 421, "[::2]": 421, "2130706433": 421,
	} {
		for name, c := range map[string]struct {
			loopback, keyless bool
			want              int
		}{"loopback": {true, false, want}, "keyless": {false, true, want}, "neither": {false, false, 200}} {
			ask := gated(t, GateOptions{Loopback: c.loopback, Hosts: []string{"kagzi.example"}}, c.keyless)
			if got, _ := ask("GET", host); got != c.want {
				t.Errorf("%s: host %q: %d, want %d", name, host, got, c.want)
			}
		}
	}
}

func TestAServerWithoutKeysRefusesWhatAProxyForwards(t *testing.T) {
	for _, header := range []string{"X-Forwarded-For: 1.2.3.4", "Forwarded: for=1.2.3.4", "X-Real-Ip: 1.2.3.4",
		"X-Forwarded-Proto: https", "x-forwarded-anything: 1"} {
		if got, _ := gated(t, GateOptions{Loopback: true}, true)("GET", "localhost", header); got != 403 {
			t.Errorf("%s without keys: %d, want 403", header, got)
		}
		if got, _ := gated(t, GateOptions{Loopback: true}, false)("GET", "localhost", header); got != 200 {
			t.Errorf("%s with keys: %d, want 200", header, got)
		}
	}
}

func TestWritesOfOtherSitesAreRefused(t *testing.T) {
	ask := gated(t, GateOptions{Loopback: true, Origins: []string{"https://app.example"}}, false)
	for name, c := range map[string]struct {
		method  string
		headers []string
		want    int
	}{
		"a program":                {"POST", nil, 200},
		"this site":                {"POST", []string{"Origin: http://localhost:1"}, 200},
		"this site by its mark":    {"POST", []string{"Sec-Fetch-Site: same-origin"}, 200},
		"another site":             {"POST", []string{"Origin: https://evil.example"}, 403},
		"another port":             {"POST", []string{"Origin: http://localhost:2"}, 403},
		"another site by its mark": {"POST", []string{"Sec-Fetch-Site: cross-site"}, 403},
		"a sibling":                {"POST", []string{"Sec-Fetch-Site: same-site"}, 403},
		"the origin null":          {"POST", []string{"Origin: null"}, 403},
		"a delete":                 {"DELETE", []string{"Origin: https://evil.example"}, 403},
		"a read":                   {"GET", []string{"Origin: https://evil.example"}, 200},
		"an origin with CORS":      {"POST", []string{"Origin: https://app.example", "Sec-Fetch-Site: cross-site"}, 200},
		"almost that origin":       {"POST", []string{"Origin: https://app.example.evil"}, 403},
		"that origin without TLS":  {"POST", []string{"Origin: http://app.example"}, 403},
		"text of another site": {"POST", []string{"Content-Type: text/plain", "Origin: https://evil.example"},
			415},
	} {
		if got, _ := ask(c.method, "localhost:1", c.headers...); got != c.want {
			t.Errorf("%s: %d, want %d", name, got, c.want)
		}
	}
}

func TestAWriteNeedsAMediaTypeThatNoFormCanHave(t *testing.T) {
	ask := gated(t, GateOptions{Loopback: true}, true)
	for kind, want := range map[string]int{
		"application/json": 200, "application/json;charset=UTF-8": 200, "APPLICATION/JSON; charset=\"utf-8\"": 200,
		"application/zip": 200,
		"text/plain":      415, "application/x-www-form-urlencoded": 415, "multipart/form-data; boundary=x": 415,
		"-": 415, "application/json; charset=utf-16": 415, "application/jsonp": 415, "*/*": 415, "json": 415,
		"application/json, text/plain": 415, "application/json;": 200,
	} {
		if got, _ := ask("POST", "localhost", "Content-Type: "+kind); got != want {
			t.Errorf("%s: %d, want %d", kind, got, want)
		}
	}
}

func TestOnlyKnownOriginsShareAnswers(t *testing.T) {
	ask := gated(t, GateOptions{Loopback: true, Origins: []string{"https://app.example"}}, false)
	for origin, shared := range map[string]bool{"https://app.example": true, "https://evil.example": false, "null": false,
		"https://app.example:8443": false, "-": false} {
		code, header := ask("OPTIONS", "localhost", "Origin: "+origin, "Access-Control-Request-Method: POST")
		got := header.Get("Access-Control-Allow-Origin")
		if got != "" != shared || shared && (got != origin || code != 204) {
			t.Errorf("a preflight of %s: %d, shared with %q", origin, code, got)
		}
		_, header = ask("GET", "localhost", "Origin: "+origin)
		if header.Get("Access-Control-Allow-Origin") != "" != shared ||
			header.Get("Vary") != "Origin" || header.Get("Access-Control-Allow-Credentials") != "" {
			t.Errorf("a read of %s: %v", origin, header)
		}
	}
	_, header := gated(t, GateOptions{Loopback: true}, false)("GET", "localhost", "Origin: https://x")
	if header.Get("Vary") != "" {
		t.Errorf("without origins: %v", header)
	}
	if _, err := NewGate(GateOptions{Origins: []string{"*"}}); err == nil {
		t.Error("the origin * is accepted")
	}
}

func TestOpenStreamsAreLimitedInAllAndByCaller(t *testing.T) {
	gate, err := NewGate(GateOptions{})
	if err != nil {
		t.Fatal(err)
	}
	r := httptest.NewRequest("GET", "/", nil)
	leaves := map[string][]func(){}
	enter := func(caller string) bool {
		leave, err := gate.EnterStream(r, caller)
		if err == nil {
			leaves[caller] = append(leaves[caller], leave)
		}
		return err == nil
	}
	for i := range maxStreams {
		if caller := strconv.Itoa(i / maxCallerStreams); !enter(caller) {
			t.Fatalf("stream %d of %s is refused", i, caller)
		}
	}
	if enter("0") || enter("another") || enter("") {
		t.Error("a stream beyond the limits is accepted")
	}
	leaves["9"][0]()
	leaves["9"] = leaves["9"][1:]
	if enter("0") {
		t.Error("the stream 101 of a caller is accepted")
	}
	if !enter("another") || enter("another") {
		t.Error("one stream ended, and one began; want just that")
	}
	for _, all := range leaves {
		for _, leave := range all {
			leave()
		}
	}
	if gate.open != 0 || len(gate.streams) != 0 {
		t.Errorf("%d streams of %v are open at the end", gate.open, gate.streams)
	}
}

func TestACallOverHTTPHasTheCallersAddressCertificateAndKey(t *testing.T) {
	r := httptest.NewRequest("GET", "/", nil)
	r.RemoteAddr = "[2001:db8::1]:77"
	r.Header.Set("Authorization", "Bearer x")
	r.Header.Set("Grpc-Timeout", "1n")
	r.TLS = &tls.ConnectionState{VerifiedChains: [][]*x509.Certificate{{{Subject: pkix.Name{CommonName: "ci"}}}}}
	ctx := callContext(r)
	if got := auth.CertificateOf(ctx); got != "ci" {
		t.Errorf("certificate of %q, want ci", got)
	}
	if from, _ := peer.FromContext(ctx); from.Addr.String() != r.RemoteAddr {
		t.Errorf("from %s, want %s", from.Addr, r.RemoteAddr)
	}
	md, _ := metadata.FromIncomingContext(ctx)
	if len(md) != 1 || md["authorization"][0] != "Bearer x" {
		t.Errorf("metadata %v, want the key alone", md)
	}
	r.TLS = nil
	if _, encrypted := auth.TLSOf(callContext(r)); encrypted {
		t.Error("a call without TLS counts as encrypted")
	}
}
