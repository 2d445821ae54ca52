package web

import (
	"crypto/tls"
	"io"
	"net/http"
	"net/http/httptest"
	"net/netip"
	"testing"
)

func TestOnlyATrustedProxySaysFromWhereARequestIs(t *testing.T) {
	trusted := []netip.Prefix{netip.MustParsePrefix("10.0.0.0/8"), netip.MustParsePrefix("::1/128")}
	const own = "192.0.2.7:1234"
	for name, c := range map[string]struct {
		from, forwardedFor, proto, host string
		tls                             bool
		wantFrom, wantHost              string
		secure                          bool
	}{
		"no proxy":                     {from: own, wantFrom: own, wantHost: "direct"},
		"no proxy, TLS":                {from: own, tls: true, wantFrom: own, wantHost: "direct", secure: true},
		"an unknown proxy":             {from: own, forwardedFor: "198.51.100.1", proto: "https", host: "evil.example", wantFrom: own, wantHost: "direct"},
		"a trusted proxy":              {from: "10.1.2.3:9", forwardedFor: "198.51.100.1", proto: "https", host: "kagzi.example", wantFrom: "198.51.100.1:0", wantHost: "kagzi.example", secure: true},
		"a trusted one over IPv6":      {from: "[::1]:9", forwardedFor: "2001:db8::1", proto: "https", wantFrom: "[2001:db8::1]:0", wantHost: "direct", secure: true},
		"a trusted one as mapped":      {from: "[::ffff:10.1.2.3]:9", forwardedFor: "198.51.100.1", wantFrom: "198.51.100.1:0", wantHost: "direct"},
		"plain in front, TLS behind":   {from: "10.1.2.3:9", tls: true, proto: "http", wantFrom: "10.1.2.3:9", wantHost: "direct"},
		"several proxies":              {from: "10.1.2.3:9", forwardedFor: "6.6.6.6, 198.51.100.1, 10.9.9.9", wantFrom: "198.51.100.1:0", wantHost: "direct"},
		"only trusted ones":            {from: "10.1.2.3:9", forwardedFor: "10.9.9.9", wantFrom: "10.9.9.9:0", wantHost: "direct"},
		"a claim that is no address":   {from: "10.1.2.3:9", forwardedFor: "localhost, 10.9.9.9", wantFrom: "10.9.9.9:0", wantHost: "direct"},
		"nothing that is an address":   {from: "10.1.2.3:9", forwardedFor: "unknown", wantFrom: "10.1.2.3:9", wantHost: "direct"},
		"a scheme that is none":        {from: "10.1.2.3:9", proto: "javascript", wantFrom: "10.1.2.3:9", wantHost: "direct"},
		"claims before the proxy's":    {from: "10.1.2.3:9", proto: "https, http", host: "evil.example, kagzi.example", wantFrom: "10.1.2.3:9", wantHost: "kagzi.example"},
		"an address that is no client": {from: "@", forwardedFor: "127.0.0.1", proto: "https", wantFrom: "@", wantHost: "direct"},
	} {
		r := httptest.NewRequest(http.MethodGet, "https://direct/", nil) // the scheme of the request line is a claim too
		r.RemoteAddr, r.TLS = c.from, nil
		if c.tls {
			r.TLS = &tls.ConnectionState{}
		}
		for header, value := range map[string]string{
			"X-Forwarded-For": c.forwardedFor, "X-Forwarded-Proto": c.proto, "X-Forwarded-Host": c.host} {
			if value != "" {
				r.Header.Set(header, value)
			}
		}
		sent := original(r, trusted)
		if sent.RemoteAddr != c.wantFrom || sent.Host != c.wantHost || secure(sent) != c.secure {
			t.Errorf("%s: from %s to %s, secure %v; want from %s to %s, secure %v", name, sent.RemoteAddr, sent.Host,
				secure(sent), c.wantFrom, c.wantHost, c.secure)
		}
	}
}

func TestPathsAreServedBelowTheBase(t *testing.T) {
	echo := func(name string) http.Handler {
		return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			_, _ = io.WriteString(w, name+" "+r.URL.EscapedPath())
		})
	}
	h := below("/a/kagzi", echo("inside"), echo("outside"))
	for path, want := range map[string]string{
		"/a/kagzi/": "inside /", "/a/kagzi/v1/workflows": "inside /v1/workflows",
		"/a/kagzi/v1/workflows/x%2Fy:cancel": "inside /v1/workflows/x%2Fy:cancel",
		"/a/kagzi//healthz":                  "inside //healthz", "/": "outside /", "/a/kagzix": "outside /a/kagzix",
		"/v1/workflows": "outside /v1/workflows", "/a%2Fkagzi/": "outside /a%2Fkagzi/",
	} {
		w := httptest.NewRecorder()
		h.ServeHTTP(w, httptest.NewRequest(http.MethodGet, path, nil))
		if w.Body.String() != want {
			t.Errorf("%s: %q, want %q", path, w.Body, want)
		}
	}
	w := httptest.NewRecorder()
	h.ServeHTTP(w, httptest.NewRequest(http.MethodGet, "/a/kagzi", nil))
	if w.Code != http.StatusSeeOther || w.Header().Get("Location") != "/a/kagzi/" {
		t.Errorf("the base itself: %d to %q, want a redirect to /a/kagzi/", w.Code, w.Header().Get("Location"))
	}
}
