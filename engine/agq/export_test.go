package agq

import (
	"crypto/tls"
	"log/slog"
	"time"
)

// BeatEvery changes how often a door passes heartbeats on. It must not serve yet.
func (d *Door) BeatEvery(interval time.Duration) { d.beat = interval }

// AllowVerify makes a door serve WORKER.VERIFY. It must not serve yet.
func (d *Door) AllowVerify() { d.verify = true }

// UseTLS makes a door speak TLS, with a deadline for each write. It must not serve yet.
func (d *Door) UseTLS(c *tls.Config, write time.Duration, log *slog.Logger) {
	d.tls, d.writing, d.log = c, write, log
}
