package daemon

import (
	"context"
	"crypto/tls"
	"errors"
	"net"
	"net/http"

	"github.com/kagzi/kagzi/engine/daemon/internal/platform"
	"github.com/kagzi/kagzi/engine/daemon/internal/web"
)

// listenHTTP listens for the web page, HTTP API, metrics and health, if wanted. If the address is the
// default and is taken, for example by another server, the server runs without them.
func (p *process) listenHTTP(ctx context.Context, address string, encrypted bool) (net.Listener, error) {
	if address == "" {
		return nil, nil
	}
	l, err := listen(ctx, "--http", address)
	if err == nil && encrypted {
		l = tls.NewListener(l, p.certs.Web())
	}
	if err == nil || p.config.Load().Sources["http"] != "" {
		return l, err
	}
	if errors.Is(err, platform.ErrInUse) {
		p.log.Warn(
			"the web page, HTTP API, metrics and health are not served: the address is in use, perhaps by another server; "+
				"choose another with --http, or off",
			"http", address)
	} else {
		p.log.Warn("the web page, HTTP API, metrics and health are not served", "error", err)
	}
	return nil, nil
}

// webEncrypted reports whether HTTP uses TLS: if other machines can reach them and the
// server has a certificate. On loopback they are plain, so that health checks need no certificate.
func (p *process) webEncrypted(at *addresses) bool { return p.certs != nil && at.http.exposed }

// page returns the web page for what the port knows.
func (p *process) page(of web.Page) http.Handler {
	o := Page{Conn: of.Conn, Base: of.Base, ReadOnly: p.config.Load().WebReadOnly, Secure: of.Secure}
	if of.Sessions != nil {
		o.Sessions = of.Sessions
	}
	return p.backends.Page(o)
}
