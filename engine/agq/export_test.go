package agq

import "time"

// BeatEvery changes how often a door passes heartbeats on. It must not serve yet.
func (d *Door) BeatEvery(interval time.Duration) { d.beat = interval }

// AllowVerify makes a door serve WORKER.VERIFY. It must not serve yet.
func (d *Door) AllowVerify() { d.verify = true }
