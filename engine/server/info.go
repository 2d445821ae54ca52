package server

import (
	"context"

	"google.golang.org/protobuf/types/known/timestamppb"

	kagziv1 "github.com/kagzi/kagzi/proto/kagzi/v1"
)

// Fact is one line about a server process, for people. It never holds a secret.
type Fact struct {
	Section string // "coordinator", "settings"
	Name    string
	Value   string
	Source  string // of a setting: where its value comes from
}

// features is what this server can do, for clients that know more versions of it than one.
var features = []string{
	"session", "batch-start", "wait", "watch", "requirements", "concurrency-limits", "parallel-hold", "graceful-cancel", "continue-as-new",
	"signals", "children", "schedules", "failure-handlers", "namespaces", "repair", "explain", "bulk", "capsule", "audit", "activity", "events",
}

// GetServerInfo tells what this server is.
func (s *Server) GetServerInfo(ctx context.Context, _ *kagziv1.GetServerInfoRequest) (*kagziv1.GetServerInfoResponse, error) {
	d, err := s.store.Describe(ctx)
	if err != nil {
		return nil, err
	}
	response := &kagziv1.GetServerInfoResponse{
		Version: s.options.Version, ApiVersion: "kagzi.v1", MinSdkVersion: "0.1.0", SupportedFeatures: features,
		Backend: d.Backend, BackendVersion: d.Version, Database: d.Database, DatabaseBytes: d.Bytes,
		StartedAt: timestamppb.New(s.started), Notifications: d.Notifications, SchemaVersion: int32(d.Schema),
		HeartbeatIntervalMs: s.options.HeartbeatInterval.Milliseconds(), LeaseMs: s.options.WorkerLease.Milliseconds(),
		Methods: s.methods.stats(), OpenConnections: s.connections.Load(), OpenStreams: s.methods.openStreams(),
	}
	for _, f := range d.Facts {
		response.Facts = append(response.Facts, &kagziv1.ServerFact{Section: "database", Name: f.Name, Value: f.Value})
	}
	if s.options.Facts != nil {
		for _, f := range s.options.Facts() {
			response.Facts = append(response.Facts, &kagziv1.ServerFact{Section: f.Section, Name: f.Name, Value: f.Value, Source: f.Source})
		}
	}
	return response, nil
}
