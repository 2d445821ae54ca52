// Package door serves a page to the person at this machine, without a server: on a free port of
// 127.0.0.1, to the browser that brings the token of the address that was printed. Other users of the
// machine, and pages of other sites, see nothing.
package door

import (
	"context"
	"crypto/rand"
	"crypto/subtle"
	"encoding/base64"
	"io"
	"net"
	"net/http"
	"net/url"
	"strings"
	"time"
)

const (
	// tokenParameter holds the token in the printed address. It is exchanged for a cookie, so that it
	// stays neither in the address bar nor in the history.
	tokenParameter = "token"
	// stopTime is how long answers in progress may take at the end.
	stopTime = time.Second
)

// Door serves a page on a port of its own.
type Door struct {
	listener      net.Listener
	token, cookie string // of the address, and of the browser that has shown it
}

// Open listens on a free port of 127.0.0.1.
func Open(ctx context.Context) (*Door, error) {
	l, err := new(net.ListenConfig).Listen(ctx, "tcp", "127.0.0.1:0")
	if err != nil {
		return nil, err
	}
	return &Door{listener: l, token: random(), cookie: random()}, nil
}

func random() string {
	var secret [24]byte
	_, _ = rand.Read(secret[:]) // never fails
	return base64.RawURLEncoding.EncodeToString(secret[:])
}

// URL returns the address of a path of the page, with the token.
func (d *Door) URL(path string) string {
	u := url.URL{Scheme: "http", Host: d.listener.Addr().String(), Path: path,
		RawQuery: url.Values{tokenParameter: {d.token}}.Encode()}
	return u.String()
}

// Serve serves the page until ctx ends.
func (d *Door) Serve(ctx context.Context, page http.Handler) error {
	base, cancel := context.WithCancel(ctx)
	defer cancel()
	h := &http.Server{Handler: d.guarded(page), ReadHeaderTimeout: 5 * time.Second, ReadTimeout: 30 * time.Second,
		IdleTimeout: 2 * time.Minute, MaxHeaderBytes: 16 << 10,
		BaseContext: func(net.Listener) context.Context { return base }}
	stopped := make(chan struct{})
	go func() {
		defer close(stopped)
		<-base.Done() // which also ends live pages
		bounded, cancel := context.WithTimeout(context.WithoutCancel(ctx), stopTime)
		defer cancel()
		if h.Shutdown(bounded) != nil {
			_ = h.Close() // abort what is still in progress
		}
	}()
	err := h.Serve(d.listener)
	if ctx.Err() != nil {
		err = nil
	}
	cancel()
	<-stopped
	return err
}

// guarded serves the page to a browser with the cookie, and the cookie to one with the token.
func (d *Door) guarded(page http.Handler) http.Handler {
	host := d.listener.Addr().String()
	_, port, _ := net.SplitHostPort(host) // of a listener it is valid
	name := "kagzi-view-" + port
	page = http.NewCrossOriginProtection().Handler(page)
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		switch c, err := r.Cookie(name); {
		case r.Host != host: // a name of another site may lead to this machine
			refuse(w, http.StatusMisdirectedRequest, "this page is at http://"+host)
		case r.URL.Query().Has(tokenParameter):
			if r.Method != http.MethodGet || !same(r.URL.Query().Get(tokenParameter), d.token) {
				refuse(w, http.StatusForbidden, "this address is of another start of kagzi web; open the one that it printed last")
				return
			}
			http.SetCookie(w, &http.Cookie{Name: name, Value: d.cookie, Path: "/", HttpOnly: true,
				SameSite: http.SameSiteLaxMode})
			w.Header().Set("Cache-Control", "no-store")
			w.Header().Set("Referrer-Policy", "no-referrer")
			inside := url.URL{Path: "/" + strings.TrimLeft(r.URL.Path, `/\`)} // two of them begin a host
			http.Redirect(w, r, inside.String(), http.StatusSeeOther)
		case err != nil || !same(c.Value, d.cookie):
			refuse(w, http.StatusForbidden, "open the address that kagzi web printed")
		default:
			page.ServeHTTP(w, r)
		}
	})
}

func same(a, b string) bool { return subtle.ConstantTimeCompare([]byte(a), []byte(b)) == 1 }

func refuse(w http.ResponseWriter, code int, text string) {
	w.Header().Set("Content-Type", "text/plain; charset=utf-8")
	w.Header().Set("Cache-Control", "no-store")
	w.Header().Set("X-Content-Type-Options", "nosniff")
	w.WriteHeader(code)
	_, _ = io.WriteString(w, text+"\n") // the browser may have gone
}
