package rest

import (
	"context"
	"log/slog"
	"mime"
	"net"
	"net/http"
	"net/netip"
	"slices"
	"strings"
	"sync"
	"time"

	"google.golang.org/grpc/credentials"
	"google.golang.org/grpc/metadata"
	"google.golang.org/grpc/peer"

	"github.com/kagzi/kagzi/engine"
	"github.com/kagzi/kagzi/engine/server/internal/wire"
)

const (
	maxStreams       = 1000 // open streams of a server
	maxCallerStreams = 100  // of one key or, without keys, of one address
)

// Gate checks every request before its handler sees it, so that a page of another site or a proxy
// in front of a server without keys cannot use the server. All handlers of a listener share one.
type Gate struct {
	loopback bool // only this machine reaches the listener
	hosts    []string
	origins  []string
	keyless  func(context.Context) bool
	sites    *http.CrossOriginProtection
	errors   *wire.Errors

	mu      sync.Mutex
	streams map[string]int // open streams by caller
	open    int
}

// GateOptions configures a Gate.
type GateOptions struct {
	Loopback bool     // only this machine reaches the listener
	Hosts    []string // further names of the server, without a port
	Origins  []string // whose pages may use the API: "https://app.example"
	Keyless  func(context.Context) bool
	Log      *slog.Logger
}

// NewGate returns a gate. An error names an origin that is none.
func NewGate(o GateOptions) (*Gate, error) {
	g := &Gate{loopback: o.Loopback, hosts: o.Hosts, origins: o.Origins, keyless: o.Keyless,
		sites: http.NewCrossOriginProtection(), errors: &wire.Errors{Log: o.Log, Now: time.Now},
		streams: map[string]int{}}
	for _, origin := range o.Origins {
		if err := g.sites.AddTrustedOrigin(origin); err != nil {
			return nil, err
		}
	}
	return g, nil
}

// NewHTTPServer returns a server whose timeouts suit requests behind a gate. Answers that take
// longer set their own deadlines.
func NewHTTPServer(handler http.Handler, log *slog.Logger) *http.Server {
	return &http.Server{
		Handler: handler, ReadHeaderTimeout: 5 * time.Second, ReadTimeout: bodyTime, WriteTimeout: writeTime,
		IdleTimeout: 2 * time.Minute, MaxHeaderBytes: 16 << 10,
		ErrorLog: slog.NewLogLogger(log.Handler(), slog.LevelDebug),
	}
}

// NotFound answers that nothing has this path.
func (g *Gate) NotFound(w http.ResponseWriter, _ *http.Request) {
	writeProblem(w, g.errors, refuse(http.StatusNotFound, engine.KindNotFound,
		"nothing has this path; the API is under /v1/, and /openapi.json describes it"))
}

// Handler returns next behind the gate. kinds are the media types that its writes may have.
func (g *Gate) Handler(next http.Handler, kinds ...string) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		done, err := g.check(w, r, kinds)
		switch {
		case err != nil:
			writeProblem(w, g.errors, err)
		case !done:
			next.ServeHTTP(w, r.WithContext(callContext(r)))
		}
	})
}

// Signed returns next behind the part of the gate that requests with a signature need. They come from
// other machines, often through a proxy or a tunnel that names another host, and with any type. The
// other checks keep pages and proxies from using the rights of this machine; a signature is made
// with a secret that neither of them has, and gives no other right. So next must refuse every
// request whose signature is wrong, whatever else lets it in.
func (g *Gate) Signed(next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		closeAfterChunks(w, r)
		next.ServeHTTP(w, r.WithContext(callContext(r)))
	})
}

// closeAfterChunks ends the connection after a request with a transfer encoding: a proxy may have read
// a length beside it, and another request after this one.
func closeAfterChunks(w http.ResponseWriter, r *http.Request) {
	if len(r.TransferEncoding) > 0 {
		w.Header().Set("Connection", "close")
	}
}

// check refuses a request, or answers it as a preflight: done.
func (g *Gate) check(w http.ResponseWriter, r *http.Request, kinds []string) (done bool, err error) {
	closeAfterChunks(w, r)
	keyless := g.keyless(r.Context())
	if (g.loopback || keyless) && !g.serves(r.Host) {
		return false, refuse(http.StatusMisdirectedRequest, engine.KindDenied,
			"this server does not serve the host "+quoted(r.Host)+"; if it is a name of it, start it with --http-host")
	}
	if keyless {
		if name := forwarded(r.Header); name != "" {
			return false, refuse(http.StatusForbidden, engine.KindDenied,
				"the header "+name+" says that a proxy forwards to this server, which needs no key: "+
					"make one with kagzi key create, or connect to the server itself")
		}
	}
	preflight := r.Method == http.MethodOptions && r.Header.Get("Access-Control-Request-Method") != ""
	if g.share(w, r.Header.Get("Origin"), preflight) && preflight {
		w.WriteHeader(http.StatusNoContent)
		return true, nil
	}
	if isWrite(r.Method) && !accepted(r, kinds) {
		return false, errType(kinds...)
	}
	if g.sites.Check(r) != nil {
		return false, refuse(http.StatusForbidden, engine.KindDenied,
			"a page of another site sent this; if it may use the API, start the server with --http-cors and its origin")
	}
	return false, nil
}

// serves reports whether a host is this machine or a name of the server.
func (g *Gate) serves(host string) bool {
	name := host
	if h, _, err := net.SplitHostPort(host); err == nil {
		name = h
	}
	name = strings.ToLower(strings.Trim(name, "[]"))
	if name == "localhost" || slices.Contains(g.hosts, name) {
		return true
	}
	address, err := netip.ParseAddr(name)
	return err == nil && address.Unmap().IsLoopback()
}

// forwarded returns the name of a header that a proxy added; empty if there is none.
func forwarded(h http.Header) string {
	for name := range h {
		if name == "Forwarded" || name == "X-Real-Ip" || strings.HasPrefix(name, "X-Forwarded-") {
			return name
		}
	}
	return ""
}

// share lets a page of a known origin read the answer, and reports whether it may. Cookies are
// never shared.
func (g *Gate) share(w http.ResponseWriter, origin string, preflight bool) bool {
	if len(g.origins) == 0 {
		return false
	}
	header := w.Header()
	header.Add("Vary", "Origin")
	if !slices.Contains(g.origins, origin) {
		return false
	}
	header.Set("Access-Control-Allow-Origin", origin)
	header.Set("Access-Control-Expose-Headers", "Link, Retry-After, WWW-Authenticate")
	if preflight {
		header.Set("Access-Control-Allow-Methods", "GET, POST, PATCH, DELETE")
		header.Set("Access-Control-Allow-Headers", "Authorization, Content-Type, Idempotency-Key, Last-Event-ID")
		header.Set("Access-Control-Max-Age", "600")
	}
	return true
}

func isWrite(method string) bool {
	return method != http.MethodGet && method != http.MethodHead && method != http.MethodOptions
}

// accepted reports whether a write has one of the media types, none of which a form of another site
// can have without a preflight.
func accepted(r *http.Request, kinds []string) bool {
	text := r.Header.Values("Content-Type")
	if len(text) == 0 && r.Method == http.MethodDelete && r.ContentLength == 0 {
		return true
	}
	if len(text) != 1 {
		return false
	}
	kind, parameters, err := mime.ParseMediaType(text[0])
	charset := parameters["charset"]
	return err == nil && slices.Contains(kinds, kind) && (charset == "" || strings.EqualFold(charset, "utf-8"))
}

func errType(kinds ...string) error {
	text := "Content-Type: want " + strings.Join(kinds, " or ")
	if slices.Contains(kinds, jsonType) {
		text += "; curl --json sends application/json"
	}
	return refuse(http.StatusUnsupportedMediaType, engine.KindInvalid, text)
}

func quoted(text string) string { return `"` + wire.Cut(strings.ToValidUTF8(text, "?")) + `"` }

// callContext returns the context of a request with what calls read of a connection of gRPC: the
// caller's address and certificate, its key, and its trace.
func callContext(r *http.Request) context.Context {
	from := &peer.Peer{Addr: &net.TCPAddr{}}
	if address, err := netip.ParseAddrPort(r.RemoteAddr); err == nil {
		from.Addr = net.TCPAddrFromAddrPort(address)
	}
	if r.TLS != nil {
		from.AuthInfo = credentials.TLSInfo{State: *r.TLS,
			CommonAuthInfo: credentials.CommonAuthInfo{SecurityLevel: credentials.PrivacyAndIntegrity}}
	}
	md := metadata.MD{}
	for _, name := range []string{"authorization", "traceparent", "tracestate"} {
		if values := r.Header.Values(name); len(values) > 0 {
			md[name] = values
		}
	}
	return metadata.NewIncomingContext(peer.NewContext(r.Context(), from), md)
}

// EnterStream counts a stream that a caller opens: the id of a key or, if it is empty, the address.
// Call leave at its end.
func (g *Gate) EnterStream(r *http.Request, caller string) (leave func(), err error) {
	if caller == "" {
		caller, _, _ = net.SplitHostPort(r.RemoteAddr)
	}
	g.mu.Lock()
	defer g.mu.Unlock()
	if g.open >= maxStreams || g.streams[caller] >= maxCallerStreams {
		return nil, errStreams
	}
	g.open++
	g.streams[caller]++
	return func() {
		g.mu.Lock()
		defer g.mu.Unlock()
		g.open--
		if g.streams[caller]--; g.streams[caller] == 0 {
			delete(g.streams, caller)
		}
	}, nil
}
