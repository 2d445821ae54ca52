package server

import (
	"slices"
	"time"

	kagziv1 "github.com/kagzi/kagzi/proto/kagzi/v1"
)

// Past is what a server has in memory of the time since it started: counts and events. Another server can go on from it, over a copy of
// the database. Nobody changes it.
type Past struct {
	started          time.Time
	origin           rates
	counters         [deeds]int64
	begun            time.Time
	seconds, minutes series
	lastEvent        int64
	events           []*kagziv1.ServerEvent
	methods          map[string]usage
}

// usage is how often a method was called.
type usage struct {
	calls, errors int64
	micros        []uint32
}

// Past is that of this server up to now. Call it when the server is at rest.
func (s *Server) Past() *Past {
	p := &Past{started: s.started, origin: s.origin, methods: map[string]usage{}}
	for i := range s.counters {
		p.counters[i] = s.counters[i].Load()
	}
	s.activity.mu.Lock()
	p.begun, p.seconds, p.minutes = s.activity.begun, s.activity.seconds.clone(), s.activity.minutes.clone()
	s.activity.mu.Unlock()
	s.events.mu.Lock()
	p.lastEvent, p.events = s.events.last, slices.Clone(s.events.ring)
	s.events.mu.Unlock()
	for name, m := range s.methods {
		if n := m.calls.Load(); n > 0 {
			p.methods[name] = usage{n, m.errors.Load(), m.recent.Load().lengths()}
		}
	}
	return p
}

// resume has a new server go on from the past; nil is none.
func (p *Past) resume(s *Server) {
	if p == nil {
		return
	}
	s.started, s.origin = p.started, p.origin
	for i, n := range p.counters {
		s.counters[i].Store(n)
	}
	s.activity.begun, s.activity.seconds, s.activity.minutes = p.begun, p.seconds.clone(), p.minutes.clone()
	s.events.last, s.events.ring = p.lastEvent, slices.Clone(p.events)
	for name, u := range p.methods {
		m := s.methods[name]
		m.calls.Store(u.calls)
		m.errors.Store(u.errors)
		m.recent.Store(recentOf(u.micros))
	}
}

func (s *series) clone() series {
	c := *s
	c.past = slices.Clone(s.past)
	return c
}

// lengths is how long the latest calls took, oldest first as far as they are known.
func (r *recent) lengths() []uint32 {
	if r == nil {
		return nil
	}
	var took []uint32
	for i := range r.micros {
		if us := r.micros[i].Load(); us > 0 {
			took = append(took, us)
		}
	}
	return took
}

func recentOf(micros []uint32) *recent {
	if micros == nil {
		return nil
	}
	r := &recent{}
	for i, us := range micros {
		r.micros[i].Store(us)
	}
	r.next.Store(uint32(len(micros)))
	return r
}
