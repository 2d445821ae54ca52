package cli

import (
	"cmp"
	"context"
	"crypto/tls"
	"crypto/x509"
	"encoding/json"
	"fmt"
	"strings"
	"testing"
	"time"

	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	kagziv1 "github.com/kagzi/kagzi/proto/kagzi/v1"
	"github.com/kagzi/kagzi/tui/cli/internal/diagnosis"
)

// diagnosed returns the output of doctor by check: "state text / advice", the worst of several.
func diagnosed(t *testing.T, s *session, code int) map[string]string {
	t.Helper()
	out, _ := s.want(t, code, "doctor", "-o", "json")
	var document struct {
		Sound  bool
		Checks []Check
	}
	if err := json.Unmarshal([]byte(out), &document); err != nil {
		t.Fatal(err)
	}
	if document.Sound != (code == ExitOK) {
		t.Errorf("sound = %t with exit code %d", document.Sound, code)
	}
	found := map[string]string{}
	for _, c := range document.Checks {
		if (c.State == diagnosis.OK) != (c.Advice == "") {
			t.Errorf("%+v: want advice just where it is not well", c)
		}
		if old, there := found[c.Name]; !there || strings.HasPrefix(old, diagnosis.OK) {
			found[c.Name] = fmt.Sprintf("%s %s / %s", c.State, c.Text, c.Advice)
		}
	}
	return found
}

// manned gives a namespace online workers with these versions; "" is a worker without one.
func manned(versions ...string) func(*fake) {
	return func(f *fake) {
		f.workers = nil
		for i, v := range versions {
			f.workers = append(f.workers, &kagziv1.Worker{
				WorkerId: fmt.Sprint("w", i), Status: kagziv1.WorkerStatus_WORKER_STATUS_ONLINE, Version: v,
				LastHeartbeatAt: at(0),
			})
		}
	}
}

func TestDoctor(t *testing.T) {
	fact := func(section, name, value string) func(*fake) {
		return func(f *fake) {
			f.info.Facts = append(f.info.Facts, &kagziv1.ServerFact{Section: section, Name: name, Value: value})
		}
	}
	for name, c := range map[string]struct {
		change func(*fake)
		check  string
		want   string
		code   int
	}{
		"a server that is well": {func(f *fake) { f.info.Version = "1.2.3" }, "versions", "ok server 1.2.3", ExitOK},
		"a server that is ill": {func(f *fake) {
			f.health = &kagziv1.HealthCheckResponse{
				Status: kagziv1.ServingStatus_SERVING_STATUS_NOT_SERVING, Message: "disk full", Timestamp: at(0)}
		}, "server", "bad unhealthy: disk full", ExitError},
		"a clock that is a little off": {func(f *fake) {
			f.health = &kagziv1.HealthCheckResponse{Timestamp: at(5 * time.Second)}
		}, "clock", "warn the server's clock is 5s ahead of", ExitOK},
		"a clock that is far off": {func(f *fake) {
			f.health = &kagziv1.HealthCheckResponse{Timestamp: at(-time.Minute)}
		}, "clock", "bad the server's clock is 1m0s behind", ExitError},
		"a disk that fills": {fact("database", "free disk space", "700.0 MiB"), "disk",
			"warn 700.0 MiB free", ExitOK},
		"a disk that is full": {fact("database", "free disk space", "12.0 MiB"), "disk",
			"bad only 12.0 MiB free", ExitError},
		"polling": {func(f *fake) {
			f.info.Notifications = "polling"
		}, "notifications", "warn servers see", ExitOK},
		"backups": {fact("backups", "last", "2026-11-20T11:00:00.000Z"), "backups",
			"ok last backup 2026-11-20T11", ExitOK},
		"backups that fail": {func(f *fake) {
			fact("backups", "last", "none yet")(f)
			fact("backups", "last error", "no room")(f)
		}, "backups", "bad the last backup failed: no room", ExitError},
		"a schema": {fact("database", "schema", "shop"), "database",
			"ok sqlite 3.51, kagzi.db, 3.0 MiB, schema 1 in the Postgres schema shop", ExitOK},
		"an encoding": {fact("database", "warning", "move to UTF8"), "database",
			"warn sqlite 3.51, kagzi.db, 3.0 MiB, schema 1 / move to UTF8", ExitOK},
		"an exposed server": {func(f *fake) {
			f.info.Warnings = []string{"other machines can reach it"}
		}, "exposure", "warn other machines can reach it", ExitOK},
		"workers of one version": {manned("2.0", "2.0"), "workers",
			"ok 2 online, 0 draining in namespace default, of version 2.0 /", ExitOK},
		"a version that some tell": {manned("2.0", "", ""), "workers",
			"ok 3 online, 0 draining in namespace default: 1 of version 2.0, 2 without a version /", ExitOK},
		"workers of several versions": {manned("2.0", "1.9", "2.0"), "workers",
			"ok 3 online, 0 draining in namespace default: 1 of version 1.9, 2 of version 2.0 /", ExitOK},
		"workers without a version": {manned("", ""), "workers",
			"ok 2 online, 0 draining in namespace default /", ExitOK},
		"a silent worker": {func(f *fake) {
			f.workers[0].WorkerId, f.workers[0].Hostname, f.workers[0].LastHeartbeatAt = "worker-7", "vm",
				at(-time.Minute)
		}, "workers", "warn no heartbeat for more than two intervals: worker-7 /", ExitOK},
		"a queue that nobody serves": {func(*fake) {}, "queues", "warn queue orders: 1 of type mail", ExitOK},
		"a key that ends soon": {func(*fake) {}, "keys",
			"warn 2 valid keys; key \"shop\" expires in 10d", ExitOK},
		"keys that all have expired": {func(f *fake) {
			f.keys = f.keys[:1]
		}, "keys", "bad every key has expired", ExitError},
		"no keys": {func(f *fake) {
			f.keys, f.me = nil, &kagziv1.WhoAmIResponse{}
		}, "keys", "ok none", ExitOK},
		"a caller with a key": {func(*fake) {}, "caller", "ok key ada (", ExitOK},
		"a caller whose key opens nothing": {func(f *fake) {
			f.fail = map[string]error{"WhoAmI": status.Error(codes.Unauthenticated, "the key is revoked")}
		}, "caller", "bad the key is revoked / give a key with --api-key-file", ExitError},
		"what the caller's key may not see": {func(f *fake) {
			f.fail = map[string]error{"ListKeys": status.Error(codes.PermissionDenied, "no"),
				"ListWorkers": status.Error(codes.PermissionDenied, "no")}
		}, "left out", "warn not checked, the key may not see them: workers, keys", ExitOK},
		"what a worker's key is told of the database": {func(f *fake) {
			f.info = &kagziv1.GetServerInfoResponse{Version: "1.2.3", Backend: "postgres", HeartbeatIntervalMs: 10_000}
		}, "database", "ok postgres / ", ExitOK},
		"what a worker's key is not told": {func(f *fake) {
			f.info = &kagziv1.GetServerInfoResponse{Version: "1.2.3", Backend: "postgres", HeartbeatIntervalMs: 10_000}
		}, "left out",
			"warn not checked, the key may not see them: how the server is set up / use an admin's key to check everything", ExitOK},
		"what a worker's key does not know of the servers": {func(f *fake) {
			f.info = &kagziv1.GetServerInfoResponse{Version: "1.2.3", Backend: "postgres", HeartbeatIntervalMs: 10_000}
		}, "notifications", "nothing", ExitOK},
		"a certificate that ends soon": {func(f *fake) {
			f.tls = &tls.ConnectionState{Version: tls.VersionTLS13,
				PeerCertificates: []*x509.Certificate{{NotAfter: noon.Add(50 * time.Hour)}}}
		}, "certificate", "warn the server's certificate expires in 2d", ExitOK},
		"an encrypted connection": {func(f *fake) {
			f.tls = &tls.ConnectionState{Version: tls.VersionTLS13,
				PeerCertificates: []*x509.Certificate{{NotAfter: noon.Add(900 * time.Hour)}}}
		}, "server", "ok answers at 127.0.0.1:50051 in 0s, TLS 1.3", ExitOK},
	} {
		t.Run(name, func(t *testing.T) {
			s := &session{server: sampleServer()}
			c.change(s.server)
			if got := cmp.Or(diagnosed(t, s, c.code)[c.check], "nothing"); !strings.HasPrefix(got, c.want) {
				t.Errorf("%s: %q, want %q", c.check, got, c.want)
			}
		})
	}
	t.Run("checks this machine if no server answers", func(t *testing.T) {
		s := &session{server: &fake{fail: map[string]error{"HealthCheck": unavailable}}}
		s.local.Examine = func(context.Context) []Check {
			return []Check{{Name: "disk", State: diagnosis.OK, Text: "room\x1b"}}
		}
		found := diagnosed(t, s, ExitError)
		if !strings.HasPrefix(found["server"],
			"bad no server answers at 127.0.0.1:50051 / start one with: kagzi server") || found["disk"] == "" {
			t.Errorf("found %q", found)
		}
		if out, _ := s.want(t, ExitError, "doctor"); !strings.Contains(out, `room\x1b`) {
			t.Errorf("stdout %q", out)
		}
	})
	t.Run("reports what a server without its database answers", func(t *testing.T) {
		const lost = "the database could not be reached; try again"
		for method, c := range map[string]struct{ check, want, known string }{
			"WhoAmI": {"caller", "bad unknown: " + lost + " / this is temporary; try again in a moment", "server"},
			"GetServerInfo": {"left out", "bad no answer about the server's settings, workers, queues, keys: " + lost +
				" / this is temporary; try again in a moment", "clock"},
			"GetQueueDepth": {"left out", "bad no answer about queues, keys: " + lost +
				" / this is temporary; try again in a moment", "workers"},
		} {
			t.Run(method, func(t *testing.T) {
				s := &session{server: sampleServer()}
				s.server.health = &kagziv1.HealthCheckResponse{
					Status: kagziv1.ServingStatus_SERVING_STATUS_NOT_SERVING, Message: "database lost",
					Timestamp: at(0)}
				answer, err := status.New(codes.Unavailable, lost).WithDetails(
					&kagziv1.ErrorDetail{Code: kagziv1.ErrorCode_ERROR_CODE_UNAVAILABLE})
				if err != nil {
					t.Fatal(err)
				}
				s.server.fail = map[string]error{method: answer.Err()}
				found := diagnosed(t, s, ExitError)
				if found["server"] !=
					"bad unhealthy: database lost / see the server's log (installed as a service: kagzi service logs)" ||
					found[c.check] != c.want || found[c.known] == "" || found["keys"] != "" {
					t.Errorf("found %q, want of %s %q, something of %s, and nothing of keys", found, c.check,
						c.want, c.known)
				}
			})
		}
	})
	t.Run("reports what is known after a timeout", func(t *testing.T) {
		s := &session{server: sampleServer()}
		s.server.fail = map[string]error{"ListWorkers": status.Error(
			codes.DeadlineExceeded, "context deadline exceeded")}
		found := diagnosed(t, s, ExitError)
		if want :=
			"bad no answer about workers, queues, keys: no answer from 127.0.0.1:50051 in time"; !strings.HasPrefix(
			found["left out"], want) || found["database"] == "" {
			t.Errorf("found %q, want %q, and what is known of the database", found, want)
		}
	})
	t.Run("reports why it failed", func(t *testing.T) {
		s := &session{server: sampleServer()}
		s.server.fail = map[string]error{"ListWorkers": unavailable}
		s.want(t, ExitUnavailable, "doctor")
	})
}
