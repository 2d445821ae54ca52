package server

import (
	"time"

	"github.com/kagzi/kagzi/engine/server/internal/metrics"
)

// Past holds a server's counts and events since it started. Another server can continue from it,
// over a copy of the database. It is read-only.
type Past struct {
	started time.Time
	counted *metrics.Past
}

// Past returns the counts and events of this server up to now. Call it while the server is idle.
func (s *Server) Past() *Past {
	return &Past{started: s.started, counted: s.recorder.Past(s.methods)}
}

// resume makes a new server continue from p, which may be nil.
func (p *Past) resume(s *Server) {
	if p == nil {
		return
	}
	s.started = p.started
	s.recorder.Resume(p.counted, s.methods)
}
