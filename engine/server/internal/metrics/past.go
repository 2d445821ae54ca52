package metrics

import (
	"slices"
	"time"

	kagziv1 "github.com/kagzi/kagzi/proto/kagzi/v1"
)

// Past holds the counts and events of a server at one moment. Another server can continue from it.
// It is read-only.
type Past struct {
	origin           Totals
	counters         [numCounted]int64
	begun            time.Time
	seconds, minutes series
	lastEvent        int64
	events           []*kagziv1.ServerEvent
	methods          map[string]usage // by full name
}

// usage says how a method was used.
type usage struct {
	calls, errors int64
	micros        []uint32
}

// Past returns the recorder's counts and events, and the use of its server's methods. Call it while
// the server is idle.
func (r *Recorder) Past(methods Methods) *Past {
	p := &Past{origin: r.origin, methods: map[string]usage{}}
	for i := range r.counters {
		p.counters[i] = r.counters[i].Load()
	}
	r.activity.mu.Lock()
	p.begun, p.seconds, p.minutes = r.activity.begun, r.activity.seconds.clone(), r.activity.minutes.clone()
	r.activity.mu.Unlock()
	r.Events.mu.Lock()
	p.lastEvent, p.events = r.Events.last, slices.Clone(r.Events.kept)
	r.Events.mu.Unlock()
	for name, m := range methods {
		if n := m.calls.Load(); n > 0 {
			p.methods[name] = usage{n, m.errors.Load(), m.recent.Load().lengths()}
		}
	}
	return p
}

// Resume makes a new recorder, and the methods of its server, continue from p.
func (r *Recorder) Resume(p *Past, methods Methods) {
	r.origin = p.origin
	for i, n := range p.counters {
		r.counters[i].Store(n)
	}
	r.activity.begun, r.activity.seconds, r.activity.minutes = p.begun, p.seconds.clone(), p.minutes.clone()
	r.Events.last, r.Events.kept = p.lastEvent, slices.Clone(p.events)
	for name, u := range p.methods {
		m := methods[name]
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

// lengths returns the durations of the latest calls, as stored.
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
