package server

import (
	"context"

	"github.com/kagzi/kagzi/engine"
	"github.com/kagzi/kagzi/engine/server/internal/metrics"
)

// Types of what a server measures, for the process that runs it.
type (
	// Events holds a server's latest events in memory. The zero value is ready for use, from any
	// goroutine.
	Events = metrics.Events
	// Metrics holds a server's counts since it started, and what is in progress.
	Metrics = metrics.Metrics
	// MethodMetrics says how a method of the API was used.
	MethodMetrics = metrics.MethodMetrics
	// Lengths is a histogram of durations.
	Lengths = metrics.Lengths
	// Reading counts what the store holds at one moment.
	Reading = metrics.Reading
	// QueueReading counts the open runs of a queue.
	QueueReading = metrics.QueueReading
)

// Metrics returns the counts. It does not block.
func (s *Server) Metrics() metrics.Metrics {
	m := s.recorder.Metrics()
	m.Sessions, m.Connections, m.Streams = s.workers.Sessions(), int(s.connections.Load()), int(s.methods.OpenStreams())
	watch := s.watch.Count()
	m.RunWatchers, m.RunWaiters, m.NamespaceWatchers = watch.RunWatchers, watch.RunWaiters, watch.NamespaceWatchers
	if store, ok := s.store.(engine.Commits); ok {
		m.CommitSizes = store.CommitSizes()
	}
	m.Methods = s.methods.Metrics()
	if s.options.LogDropped != nil {
		m.LogLinesDropped = s.options.LogDropped()
	}
	return m
}

// Read counts what the store holds. Because that may cost a scan, calls within a short time share
// one answer.
func (s *Server) Read(ctx context.Context) (metrics.Reading, error) { return s.readings.Read(ctx) }
