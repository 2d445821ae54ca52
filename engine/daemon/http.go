package daemon

import (
	"context"
	"crypto/tls"
	"errors"
	"net"

	"github.com/kagzi/kagzi/engine/daemon/internal/platform"
)

// listenHTTP listens for metrics and health, if they are to be served. Where nobody asked for its
// address and it cannot be had, as when another server on this machine has it, the server goes on
// without.
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
			"metrics and health are not served: another program, perhaps a server, listens there; choose another address with --http, or off", "http", address)
	} else {
		p.log.Warn("metrics and health are not served", "error", err)
	}
	return nil, nil
}

// webEncrypted says whether metrics and health are served over TLS: where other machines can reach
// them, if the server has a certificate. On this machine they are plain, so that a health check
// needs no certificate.
func (p *process) webEncrypted(at *addresses) bool { return p.certs != nil && at.http.exposed }
