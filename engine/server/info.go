package server

import (
	"context"
	"strings"

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

// features names what this server can do, for clients that support several versions.
var features = []string{
	"session", "batch-start", "wait", "watch", "requirements", "concurrency-limits", "parallel-hold", "graceful-cancel",
	"continue-as-new",
	"signals", "children", "schedules", "failure-handlers", "namespaces", "repair", "explain", "bulk", "capsule",
	"audit", "activity", "events", "keys", "hooks",
}

// errBeside refuses a call about a server's own state: zeros would look like an idle server.
var errBeside = &engine.Error{Kind: engine.KindUnsupported,
	Message: "only a running server knows this, and this database was opened without one; " +
		"connect to the server instead"}

// GetServerInfo describes this server or, with Options.Beside, its database. Keys of clients and
// workers get only what their programs need. Configuration, database and usage are only for the
// roles of operators.
func (s *Server) GetServerInfo(ctx context.Context,
	_ *kagziv1.GetServerInfoRequest) (*kagziv1.GetServerInfoResponse, error) {
	d, err := s.store.Describe(ctx)
	if err != nil {
		return nil, err
	}
	response := &kagziv1.GetServerInfoResponse{
		Version: s.options.Version, ApiVersion: "kagzi.v1", MinSdkVersion: "0.1.0", SupportedFeatures: features,
		Backend:  d.Backend,
		Warnings: s.options.Warnings,
	}
	if !s.options.Beside {
		response.HeartbeatIntervalMs, response.LeaseMs = s.options.HeartbeatInterval.Milliseconds(),
			s.options.WorkerLease.Milliseconds()
	}
	if key := auth.CallerOf(ctx); key != nil && !auth.MonitorsSystem(key.Role) {
		return response, nil
	}
	response.BackendVersion, response.Database, response.DatabaseBytes = d.Version, d.Database, d.Bytes
	response.SchemaVersion = int32(d.Schema)
	if !s.options.Beside {
		response.StartedAt, response.Notifications = timestamppb.New(s.started), d.Notifications
		response.OpenConnections, response.OpenStreams = s.connections.Load(), s.methods.OpenStreams()
		// read after OpenStreams, so that a stream that is no longer open counts as ended
		response.Methods = s.methods.Stats()
	}
	if len(d.Warnings) > 0 {
		response.Facts = append(response.Facts,
			&kagziv1.ServerFact{Section: "database", Name: "warning", Value: strings.Join(d.Warnings, "; ")})
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
