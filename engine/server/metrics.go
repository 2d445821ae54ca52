package server

import (
	"context"

	"github.com/kagzi/kagzi/engine"
	"github.com/kagzi/kagzi/engine/server/internal/metrics"
)

// What a server measures, for the process that runs it.
type (
	// Events is the latest facts that a server noted, in memory. The zero value is ready for use, from any goroutine.
	Events = metrics.Events
	// Metrics is what a server has counted since it started, and what is in progress.
	Metrics = metrics.Metrics
	// MethodMetrics is how a method of the API was used.
	MethodMetrics = metrics.MethodMetrics
	// Lengths is how long something took, each time that it was done.
	Lengths = metrics.Lengths
	// Reading is what the store holds at one moment.
	Reading = metrics.Reading
	// QueueReading is what waits and runs in a queue.
	QueueReading = metrics.QueueReading
)

// Metrics returns what was counted. It waits for nothing.
func (s *Server) Metrics() metrics.Metrics {
	m := s.recorder.Metrics()
	m.Sessions, m.Connections, m.Streams = s.workers.Sessions(), int(s.connections.Load()), int(s.methods.OpenStreams())
	watch := s.watch.Count()
	m.RunWatchers, m.RunWaiters, m.NamespaceWatchers = watch.RunWatchers, watch.RunWaiters, watch.NamespaceWatchers
	if store, ok := s.store.(engine.Commits); ok {
		m.CommitSizes = store.CommitSizes()
	}
	m.Methods = s.methods.Metrics()
	return m
}

// Read counts what the store holds. All who ask within a while, as long as counting may cost a scan, share one answer.
func (s *Server) Read(ctx context.Context) (metrics.Reading, error) { return s.readings.Read(ctx) }
