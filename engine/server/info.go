package server

import (
	"context"
	"slices"

	"google.golang.org/protobuf/types/known/timestamppb"

	"github.com/kagzi/kagzi/engine"
	"github.com/kagzi/kagzi/engine/server/internal/auth"
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
	"session", "batch-start", "wait", "watch", "requirements", "concurrency-limits", "parallel-hold", "graceful-cancel",
	"continue-as-new",
	"signals", "children", "schedules", "failure-handlers", "namespaces", "repair", "explain", "bulk", "capsule",
	"audit", "activity", "events", "keys",
}

// errBeside refuses what only a server can tell: zeros would look like those of one that does nothing.
var errBeside = &engine.Error{Kind: engine.KindUnsupported,
	Message: "no server is asked here, and only a server knows this"}

// GetServerInfo tells what this server is, or beside one what its database is. A client or a worker
// is told what its program has to know; how the server is set up, where its database is and how
// others use it are for those who look after it.
func (s *Server) GetServerInfo(ctx context.Context,
	_ *kagziv1.GetServerInfoRequest) (*kagziv1.GetServerInfoResponse, error) {
	d, err := s.store.Describe(ctx)
	if err != nil {
		return nil, err
	}
	response := &kagziv1.GetServerInfoResponse{
		Version: s.options.Version, ApiVersion: "kagzi.v1", MinSdkVersion: "0.1.0", SupportedFeatures: features,
		Backend:  d.Backend,
		Warnings: slices.Concat(s.options.Warnings, d.Warnings),
	}
	if !s.options.Beside {
		response.HeartbeatIntervalMs, response.LeaseMs = s.options.HeartbeatInterval.Milliseconds(),
			s.options.WorkerLease.Milliseconds()
	}
	if key := auth.CallerOf(ctx); key != nil && !auth.KeepsSystem(key.Role) {
		return response, nil
	}
	response.BackendVersion, response.Database, response.DatabaseBytes = d.Version, d.Database, d.Bytes
	response.SchemaVersion = int32(d.Schema)
	if !s.options.Beside {
		response.StartedAt, response.Notifications = timestamppb.New(s.started), d.Notifications
		response.OpenConnections, response.OpenStreams = s.connections.Load(), s.methods.OpenStreams()
		// after that, so that a stream which is not open any more is counted as ended
		response.Methods = s.methods.Stats()
	}
	for _, f := range d.Facts {
		response.Facts = append(response.Facts, &kagziv1.ServerFact{Section: "database", Name: f.Name, Value: f.Value})
	}
	if s.options.Facts != nil {
		for _, f := range s.options.Facts() {
			response.Facts = append(response.Facts,
				&kagziv1.ServerFact{Section: f.Section, Name: f.Name, Value: f.Value, Source: f.Source})
		}
	}
	return response, nil
}
