package server

import (
	"time"

	"github.com/kagzi/kagzi/engine/server/internal/metrics"
)

// Past is what a server has in memory of the time since it started: counts and events. Another
// server can go on from it, over a copy of the database. Nobody changes it.
type Past struct {
	started time.Time
	counted *metrics.Past
}

// Past returns that of this server up to now. Call it when the server is at rest.
func (s *Server) Past() *Past {
	return &Past{started: s.started, counted: s.recorder.Past(s.methods)}
}

// resume has a new server go on from the past; nil is none.
func (p *Past) resume(s *Server) {
	if p == nil {
		return
	}
	s.started = p.started
	s.recorder.Resume(p.counted, s.methods)
}
