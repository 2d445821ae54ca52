package daemon

import (
	"context"
	"errors"
	"net"

	"github.com/kagzi/kagzi/engine/agq"
	"github.com/kagzi/kagzi/engine/server"
)

func parseAGQ(c *Config, text string) error {
	if text == off {
		c.AGQ = ""
		return nil
	}
	if !isHostPort(text) {
		return errors.New("want host:port such as 127.0.0.1:6380, or off")
	}
	c.AGQ = text
	return nil
}

// agqEncrypted reports whether AGQ uses TLS: if other machines can reach it, the server has a certificate,
// and --agq-insecure does not allow plaintext. On loopback it is plain, because AGW speaks no TLS.
func (c *Config) agqEncrypted(e *endpoint) bool { return e.exposed && c.encrypted() && !c.AGQInsecure }

// checkAGQ refuses to serve AGQ without TLS where other machines can reach it, unless --agq-insecure is given.
func (c *Config) checkAGQ(e *endpoint) error {
	if !e.exposed || c.AGQInsecure || c.agqEncrypted(e) {
		return nil
	}
	return unsafef("%s %q: other machines could reach this port without encryption. "+
		"Listen on 127.0.0.1 and use a tunnel; or pass --tls-cert and --tls-key, which AGW workers cannot use; "+
		"or add --agq-insecure to allow it", e.flag, e.text)
}

// startAGQ serves AGQ's protocol on l, if it is wanted. shared says that other servers may use the store.
func (p *process) startAGQ(l net.Listener, srv *server.Server, e *endpoint, shared bool) {
	if l == nil {
		return
	}
	c := p.config.Load()
	o := agq.Options{Log: p.log, Now: p.store.Now, Shared: shared, Verify: c.AGQVerify}
	if c.agqEncrypted(e) {
		o.TLS = p.certs.RPC()
	}
	door := agq.New(srv.Direct(), o)
	p.parts.Start("AGQ", func(ctx context.Context) error { return door.Serve(ctx, l) })
}
