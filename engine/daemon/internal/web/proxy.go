package web

import (
	"net/http"
	"net/netip"
	"net/url"
	"slices"
	"strings"
)

// behindProxy returns next with each request as the browser sent it: if the connection is from a
// trusted proxy, the caller's address, the host and the scheme are those of X-Forwarded-For, -Host and
// -Proto. Headers of everybody else change nothing. The scheme of the request's URL is always set.
func behindProxy(next http.Handler, trusted []netip.Prefix) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		next.ServeHTTP(w, original(r, trusted))
	})
}

// original returns a copy of the request as the browser sent it.
func original(r *http.Request, trusted []netip.Prefix) *http.Request {
	sent, at := *r, url.URL{}
	if r.URL != nil {
		at = *r.URL
	}
	sent.URL, at.Scheme = &at, "http"
	if r.TLS != nil {
		at.Scheme = "https"
	}
	peer, err := netip.ParseAddrPort(r.RemoteAddr)
	if err != nil || !trusts(trusted, peer.Addr()) {
		return &sent
	}
	if scheme := last(r.Header, "X-Forwarded-Proto"); scheme == "https" || scheme == "http" {
		at.Scheme = scheme
	}
	if host := last(r.Header, "X-Forwarded-Host"); host != "" {
		sent.Host = host
	}
	if from, known := client(r.Header, trusted); known {
		sent.RemoteAddr = netip.AddrPortFrom(from, 0).String()
	}
	return &sent
}

// client returns the address that the outermost trusted proxy has seen: the last one in
// X-Forwarded-For that is no trusted proxy. Those before it are the client's own claims.
func client(h http.Header, trusted []netip.Prefix) (from netip.Addr, known bool) {
	for _, text := range slices.Backward(strings.Split(strings.Join(h.Values("X-Forwarded-For"), ","), ",")) {
		address, err := netip.ParseAddr(strings.Trim(strings.TrimSpace(text), "[]"))
		if err != nil {
			return from, known
		}
		if from, known = address.Unmap().WithZone(""), true; !trusts(trusted, from) {
			return from, true
		}
	}
	return from, known
}

// last returns the last value of a header that is a list: the one that the nearest proxy added.
func last(h http.Header, name string) string {
	values := strings.Split(strings.Join(h.Values(name), ","), ",")
	return strings.ToLower(strings.TrimSpace(values[len(values)-1]))
}

func trusts(trusted []netip.Prefix, address netip.Addr) bool {
	address = address.Unmap().WithZone("")
	return slices.ContainsFunc(trusted, func(p netip.Prefix) bool { return p.Contains(address) })
}

// secure reports whether the browser's side of a request uses TLS. It needs behindProxy.
func secure(r *http.Request) bool { return r.URL.Scheme == "https" }

// below returns next for the paths below base, which next does not see; others go to outside. An empty
// base is the whole port.
func below(base string, next, outside http.Handler) http.Handler {
	if base == "" {
		return next
	}
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.URL.Path == base {
			http.Redirect(w, r, base+"/", http.StatusSeeOther)
			return
		}
		path, inside := strings.CutPrefix(r.URL.Path, base+"/")
		raw, insideRaw := strings.CutPrefix(r.URL.EscapedPath(), base+"/")
		if !inside || !insideRaw {
			outside.ServeHTTP(w, r)
			return
		}
		short, at := *r, *r.URL
		at.Path, at.RawPath = "/"+path, "/"+raw
		short.URL = &at
		next.ServeHTTP(w, &short)
	})
}
