package web

import (
	"net"
	"net/netip"
	"net/url"
	"strings"
)

// RunPath returns the path of the page of a run, below a base path. It stays the same for the life of
// the run.
func RunPath(base, namespace, run string) string {
	return strings.TrimRight(base, "/") + "/n/" + url.PathEscape(namespace) + "/runs/" + url.PathEscape(run)
}

// nsURL returns a page of a namespace: "" is the overview, "runs" the list of runs.
func (s *server) nsURL(ns, path string, query ...string) string {
	return s.Base + "/n/" + url.PathEscape(ns) + "/" + path + queryOf(query...)
}

// at returns a page of the page's own namespace.
func (p *page) at(path string, query ...string) string { return p.nsURL(p.ns, path, query...) }

// admin returns a page of the server.
func (s *server) admin(path string, query ...string) string {
	return s.Base + "/admin/" + path + queryOf(query...)
}

// runURL returns the page of a run, or one below it.
func (p *page) runURL(run, below string, query ...string) string {
	if below != "" {
		below = "/" + below
	}
	return RunPath(p.Base, p.ns, run) + below + queryOf(query...)
}

func (p *page) workerURL(id string) string   { return p.at("workers/" + url.PathEscape(id)) }
func (p *page) scheduleURL(id string) string { return p.at("schedules/" + url.PathEscape(id)) }

// queryOf writes pairs of names and values as a query; pairs without a value are left out.
func queryOf(pairs ...string) string {
	var b strings.Builder
	for i := 0; i+1 < len(pairs); i += 2 {
		if pairs[i+1] == "" {
			continue
		}
		sign := "&"
		if b.Len() == 0 {
			sign = "?"
		}
		b.WriteString(sign + url.QueryEscape(pairs[i]) + "=" + url.QueryEscape(pairs[i+1]))
	}
	return b.String()
}

// within returns a path of this page that was asked for, as it may be used after a login: one without
// a host, under the base path. Otherwise it is the first page.
func (s *server) within(next string) string {
	home := s.Base + "/"
	u, err := url.Parse(next)
	if err != nil || u.Scheme != "" || u.Host != "" || u.User != nil || u.Opaque != "" ||
		strings.ContainsAny(next, "\\\r\n\t") || !strings.HasPrefix(next, home) || strings.HasPrefix(next, "//") {
		return home
	}
	for part := range strings.SplitSeq(u.Path, "/") {
		if part == ".." || part == "." {
			return home
		}
	}
	if strings.HasPrefix(u.Path, "//") {
		return home
	}
	return u.EscapedPath() + queryText(u)
}

func queryText(u *url.URL) string {
	if u.RawQuery == "" {
		return ""
	}
	return "?" + u.RawQuery
}

// loopback reports whether a host is this machine's own.
func loopback(host string) bool {
	if h, _, err := net.SplitHostPort(host); err == nil {
		host = h
	}
	if host = strings.Trim(host, "[]"); strings.EqualFold(host, "localhost") {
		return true
	}
	address, err := netip.ParseAddr(host)
	return err == nil && address.Unmap().IsLoopback()
}
