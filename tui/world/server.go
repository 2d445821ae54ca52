package world

import (
	"context"
	"fmt"
	"strings"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	kagziv1 "github.com/kagzi/kagzi/proto/kagzi/v1"
	"github.com/kagzi/kagzi/tui/render"
)

// services are those that a server has.
var services = []string{"", "kagzi.v1.WorkflowService", "kagzi.v1.WorkflowScheduleService", "kagzi.v1.AdminService", "kagzi.v1.NamespaceService", "kagzi.v1.WorkerService"}

// HealthCheck says that all is well.
func (w *World) HealthCheck(ctx context.Context, request *kagziv1.HealthCheckRequest, _ ...grpc.CallOption) (*kagziv1.HealthCheckResponse, error) {
	return call(w, ctx, "AdminService/HealthCheck", func() (*kagziv1.HealthCheckResponse, error) {
		for _, service := range services {
			if service == request.GetService() {
				return &kagziv1.HealthCheckResponse{Status: kagziv1.ServingStatus_SERVING_STATUS_SERVING, Message: "ok", Timestamp: stamp(w.now)}, nil
			}
		}
		return nil, status.Error(codes.NotFound, "unknown service")
	})
}

// GetServerInfo tells what this server is.
func (w *World) GetServerInfo(ctx context.Context, _ *kagziv1.GetServerInfoRequest, _ ...grpc.CallOption) (*kagziv1.GetServerInfoResponse, error) {
	return call(w, ctx, "AdminService/GetServerInfo", func() (*kagziv1.GetServerInfoResponse, error) {
		workers := int32(0)
		for _, h := range w.workers {
			if h.Status != offline && !h.silent {
				workers++
			}
		}
		return &kagziv1.GetServerInfoResponse{
			Version: "0.4.0-demo", ApiVersion: "kagzi.v1", MinSdkVersion: "0.1.0",
			SupportedFeatures: []string{"session", "batch-start", "wait", "watch", "requirements", "concurrency-limits", "graceful-cancel", "signals",
				"children", "schedules", "namespaces", "repair", "explain", "bulk", "audit", "activity", "events"},
			Backend: "sqlite", BackendVersion: "3.53.0", Database: "kagzi.db", DatabaseBytes: w.databaseBytes(), StartedAt: stamp(w.activity.since),
			Notifications: "in-process", SchemaVersion: 9, HeartbeatIntervalMs: heartbeat.Milliseconds(), LeaseMs: lease.Milliseconds(),
			Facts: w.facts(), Methods: w.methodStats(), OpenConnections: workers + 1, OpenStreams: workers + w.streams,
			Warnings: w.keyring.warnings,
		}, nil
	})
}

// databaseBytes grows with what was ever written.
func (w *World) databaseBytes() int64 {
	return 2<<20 + 900*w.activity.all.step + 1500*w.activity.all.started + 4000*int64(w.archive.n)
}

func (w *World) facts() []*kagziv1.ServerFact {
	look := w.now.Truncate(5 * time.Second)
	next := "nothing"
	if s := w.nextSchedule(); s != nil {
		next = "schedule " + s.Name + " " + in(moment(s.NextFireAt), w.now)
	}
	fact := func(section, name, value, source string) *kagziv1.ServerFact {
		return &kagziv1.ServerFact{Section: section, Name: name, Value: value, Source: source}
	}
	return []*kagziv1.ServerFact{
		fact("database", "file", size(w.databaseBytes()), ""),
		fact("database", "write-ahead log", size(int64(1<<20+mix(w.seed, uint64(look.Unix()))%(3<<20))), ""),
		fact("database", "last checkpoint", render.Brief(w.now.Sub(look)+time.Second)+" ago", ""),
		fact("database", "free disk space", "41.7 GiB", ""),
		fact("database", "readers", "1 of 4 in use", ""),
		fact("coordinator", "last look", render.Brief(w.now.Sub(look))+" ago", ""),
		fact("coordinator", "took", fmt.Sprintf("%.1f ms", 0.6+float64(mix(w.seed, uint64(look.Unix()), 1)%20)/10), ""),
		fact("coordinator", "next due", next, ""),
		fact("coordinator", "interval", "5 s", ""),
		fact("settings", "listen", "127.0.0.1:50051", "default"),
		fact("settings", "http", "127.0.0.1:50052", "default"),
		fact("settings", "db", "sqlite:kagzi.db", "flag"),
		fact("settings", "worker-lease", "30s", "default"),
		fact("settings", "retention", "720h", "environment KAGZI_RETENTION"),
		fact("settings", "log-level", "info", "kagzi.toml"),
	}
}

// nextSchedule is the schedule that fires first, nil when none fires.
func (w *World) nextSchedule() (next *schedule) {
	for _, s := range w.schedules {
		if s.Enabled && s.NextFireAt != nil && (next == nil || moment(s.NextFireAt).Before(moment(next.NextFireAt))) {
			next = s
		}
	}
	return next
}

// methodStats is how the API was used: by the calls made here, and by the workers of the world.
func (w *World) methodStats() []*kagziv1.MethodStats {
	all := map[string]*kagziv1.MethodStats{}
	for name, m := range w.methods {
		all[name] = &kagziv1.MethodStats{Method: name, Calls: m.Calls, Errors: m.Errors}
	}
	if n := w.activity.all.step; n > 0 {
		all["WorkerService/CompleteStep"] = &kagziv1.MethodStats{Method: "WorkerService/CompleteStep", Calls: n}
		all["WorkerService/Session"] = &kagziv1.MethodStats{Method: "WorkerService/Session", Calls: 3, Errors: 1, InFlight: int32(len(w.workers))}
	}
	var list []*kagziv1.MethodStats
	for _, name := range sortedKeys(all) {
		m := all[name]
		if !streams(name) {
			dice := mix(uint64(len(name)), uint64(name[len(name)-1]))
			m.P50Ms, m.P95Ms = 0.3+float64(dice%30)/10, 2.5+float64(dice>>8%90)/10
		}
		list = append(list, m)
	}
	return list
}

func streams(method string) bool {
	_, name, _ := strings.Cut(method, "/")
	return strings.HasPrefix(name, "Watch") || name == "Session" || name == "BulkWorkflows"
}

// size is a number of bytes for people.
func size(n int64) string {
	if n < 1<<30 {
		return fmt.Sprintf("%.1f MiB", float64(n)/(1<<20))
	}
	return fmt.Sprintf("%.1f GiB", float64(n)/(1<<30))
}
