package view

import (
	"context"
	"fmt"
	"strings"
	"testing"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	kagziv1 "github.com/kagzi/kagzi/proto/kagzi/v1"
	"github.com/kagzi/kagzi/tui"
)

// serverTold is a server with fixed call statistics and the health that a test sets.
type serverTold struct {
	tui.API
	sick string
}

func (a *serverTold) GetServerInfo(ctx context.Context, request *kagziv1.GetServerInfoRequest,
	options ...grpc.CallOption) (*kagziv1.GetServerInfoResponse, error) {
	info, err := a.API.GetServerInfo(ctx, request, options...)
	if err == nil {
		info.Methods = []*kagziv1.MethodStats{
			{Method: "AdminService/GetQueueDepth", Calls: 812, P50Ms: 0.9, P95Ms: 2.1},
			{Method: "AdminService/Watch", Calls: 4, InFlight: 2},
			{Method: "WorkerService/CompleteStep", Calls: 1_204_511, Errors: 3, InFlight: 7, P50Ms: 1.4, P95Ms: 6.25},
			{Method: "WorkerService/Session", Calls: 12, Errors: 1, InFlight: 5},
			{Method: "WorkflowScheduleService/ListWorkflowSchedules", Calls: 77, P50Ms: 1.2, P95Ms: 38},
			{Method: "WorkflowService/StartWorkflow", Calls: 40_917, Errors: 112, InFlight: 1, P50Ms: 2.2, P95Ms: 1250},
		}
	}
	return info, err
}

func (a *serverTold) HealthCheck(ctx context.Context, request *kagziv1.HealthCheckRequest,
	options ...grpc.CallOption) (*kagziv1.HealthCheckResponse, error) {
	answer, err := a.API.HealthCheck(ctx, request, options...)
	if err == nil && a.sick != "" {
		answer.Status, answer.Message = kagziv1.ServingStatus_SERVING_STATUS_NOT_SERVING, a.sick
	}
	return answer, err
}

func TestTheServerLooksRight(t *testing.T) {
	var all strings.Builder
	for _, state := range states {
		for _, size := range sizes {
			var w *shop
			options := func() Options {
				w = state.shop()
				if state.before != nil {
					state.before(w)
				}
				return Options{API: &serverTold{API: w}, Open: "server", Now: w.Now, Source: "the default"}
			}
			onFixture(t, options, size.width, size.height, func(r *fixture) {
				if state.after != nil {
					state.after(r, w)
				}
				fmt.Fprintf(&all, "== server, %s, %dx%d\n%s", state.name, size.width, size.height, r.draw())
			})
		}
	}
	golden(t, "server", jitter.ReplaceAllString(all.String(), "reconnecting in 2s"))
}

// programsOnly is a server that reports only the public facts.
type programsOnly struct{ tui.API }

func (a programsOnly) GetServerInfo(ctx context.Context, request *kagziv1.GetServerInfoRequest,
	options ...grpc.CallOption) (*kagziv1.GetServerInfoResponse, error) {
	info, err := a.API.GetServerInfo(ctx, request, options...)
	return &kagziv1.GetServerInfoResponse{
		Version: info.GetVersion(), ApiVersion: info.GetApiVersion(), MinSdkVersion: info.GetMinSdkVersion(),
		Backend:             info.GetBackend(),
		HeartbeatIntervalMs: info.GetHeartbeatIntervalMs(), LeaseMs: info.GetLeaseMs(),
	}, err
}

func TestWhatAKeyIsNotToldOfAServerIsNotShownAsZero(t *testing.T) {
	onFixture(t, func() Options {
		w := newShop()
		return Options{API: programsOnly{w}, Open: "server", Now: w.Now}
	}, 120, 32, func(r *fixture) {
		r.shows("version", "heartbeat", "backend           memory", "Only admins, operators and viewers see the rest.",
			"The server does not report its calls.")
		r.lacks("schema", "size", "connections", "started")
	})
}

// fileAlone answers for a database file without a server.
type fileAlone struct{ tui.API }

func (a fileAlone) GetServerInfo(ctx context.Context, request *kagziv1.GetServerInfoRequest,
	options ...grpc.CallOption) (*kagziv1.GetServerInfoResponse, error) {
	info, err := a.API.GetServerInfo(ctx, request, options...)
	return &kagziv1.GetServerInfoResponse{
		Version: info.GetVersion(), ApiVersion: info.GetApiVersion(), SupportedFeatures: []string{"wait"},
		Backend: info.GetBackend(), Database: info.GetDatabase(),
		DatabaseBytes: info.GetDatabaseBytes(), SchemaVersion: info.GetSchemaVersion(),
		Facts: []*kagziv1.ServerFact{{Section: "database", Name: "access", Value: "read-only"}},
	}, err
}

func (fileAlone) GetActivity(context.Context, *kagziv1.GetActivityRequest,
	...grpc.CallOption) (*kagziv1.GetActivityResponse, error) {
	return nil, status.Error(codes.Unimplemented, "only a server knows this")
}

func TestADatabaseFileIsNotShownAsAServer(t *testing.T) {
	for _, size := range sizes {
		onFixture(t, func() Options {
			w := newShop()
			return Options{API: fileAlone{w}, File: true, ReadOnly: true, Note: "x.db", Address: "/tmp/x.db",
				Source: "--db", Now: w.Now}
		}, size.width, size.height, func(r *fixture) {
			nothingLive := func() {
				t.Helper()
				r.lacks("● live", "up ", "/s, peak", "done ", "Server, last", "on server", "<}>", "1ms")
			}
			r.shows("● following", "failed")
			nothingLive()
			r.press(":")
			r.enter("server")
			r.press("enter")
			r.shows("Database file /tmp/x.db", "schema", "access            read-only", "Opened read-only")
			r.lacks("serving", "started", "round trip", "connections", "heartbeat", "Calls", "Settings", "Features",
				"<l> log", "next part")
			nothingLive()
			r.press(":")
			r.enter("events")
			r.press("enter")
			r.shows("a database file has no events")
			r.shows("Database file /tmp/x.db")
		})
	}
}

func TestAnEmptyDatabaseFileNamesNoCommandsForAServer(t *testing.T) {
	onFixture(t, func() Options {
		w := emptyShop()
		return Options{API: fileAlone{w}, File: true, ReadOnly: true, Now: w.Now}
	}, 80, 24, func(r *fixture) {
		r.shows(`Nothing has happened in "default" of this database yet.`)
		r.lacks("kagzi workflow start", "kagzi demo")
	})
}

func TestAServerThatIsNotWellSaysSoFirst(t *testing.T) {
	api := &serverTold{}
	onFixture(t, func() Options {
		w := newShop()
		api.API = w
		return Options{API: api, Open: "server", Now: w.Now}
	}, 80, 24, func(r *fixture) {
		r.shows("● serving")
		api.sick = "the database cannot be written"
		r.pass(6 * time.Second)
		r.shows("✗ NOT SERVING: the database cannot be written")
		r.lacks("● serving")
		api.sick = ""
		r.pass(6 * time.Second)
		r.shows("● serving")
	})
}

func TestCallsOfTheServerAreSortedByAnyColumn(t *testing.T) {
	onFixture(t, func() Options {
		w := newShop()
		return Options{API: &serverTold{API: w}, Open: "server", Now: w.Now}
	}, 80, 24, func(r *fixture) {
		r.press("tab", "tab")
		order := func() string {
			p := r.app.trails.top().(*serverPage)
			_, rows := p.Rows()
			return rows[0][0] + " " + rows[len(rows)-1][0]
		}
		for _, c := range []struct{ command, want string }{
			{"", "CompleteStep Watch"}, // by calls, most first
			{"sort p95", "StartWorkflow Session"},
			{"sort errors", "StartWorkflow ListWorkflowSchedules"},
			{"reverse", "GetQueueDepth StartWorkflow"},
			{"sort method", "CompleteStep Watch"},
			{"sort service", "GetQueueDepth StartWorkflow"},
		} {
			if err := r.app.command(c.command); err != nil {
				t.Fatalf(":%s: %v", c.command, err)
			}
			r.draw()
			if got := order(); got != c.want {
				t.Errorf("after :%s the first and the last are %s, want %s", c.command, got, c.want)
			}
		}
		if err := r.app.command("sort nonsense"); err == nil {
			t.Error("a column that there is not was taken")
		}
	})
}

func TestTheServersLogIsOneKeyAway(t *testing.T) {
	var w *shop
	onFixture(t, inShop(&w, "server"), 100, 24, func(r *fixture) {
		r.press("l")
		r.shows("Events (", "schedule fired")
		r.press("esc")
		r.shows("Server at ")
	})
}
