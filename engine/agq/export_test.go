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

// Alone makes a door take its server for the only one on its database, as it is on SQLite. It must not serve yet.
func (d *Door) Alone() { d.shared = false }

// UseTLS makes a door speak TLS, with a deadline for each write. It must not serve yet.
func (d *Door) UseTLS(c *tls.Config, write time.Duration, log *slog.Logger) {
	d.tls, d.writing, d.log = c, write, log
}
