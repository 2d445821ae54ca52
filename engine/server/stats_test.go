package server

import (
	"context"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"
	"google.golang.org/grpc"
	"google.golang.org/protobuf/testing/protocmp"
	"google.golang.org/protobuf/types/known/durationpb"
	"google.golang.org/protobuf/types/known/timestamppb"

	"github.com/kagzi/kagzi/engine"
	"github.com/kagzi/kagzi/engine/server/internal/auth"
	"github.com/kagzi/kagzi/engine/server/internal/metrics"
	"github.com/kagzi/kagzi/engine/server/internal/servertest"
	kagziv1 "github.com/kagzi/kagzi/proto/kagzi/v1"
)

// counted is a store with these counts.
type counted struct {
	servertest.StubStore
	stats engine.Stats
}

func (c counted) GetStats(context.Context, string, time.Time) (engine.Stats, error) {
	return c.stats, nil
}

func TestStatsHaveCountsAndRatesOnlyForKeysForAll(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := New(counted{stats: engine.Stats{
			ByStatus: map[engine.RunStatus]int64{
				engine.RunPending: 1, engine.RunRunning: 2, engine.RunSleeping: 3, engine.RunCompleted: 4,
				engine.RunFailed: 5, engine.RunCancelled: 6,
			},
			ByType: map[string]int64{"t": 21}, Workers: 7, OnlineWorkers: 8, Schedules: 9, EnabledSchedules: 10,
			OldestDue: time.Now(),
		}}, nil, Options{Trusted: true})
		time.Sleep(10 * time.Second)
		s.recorder.CountN(metrics.RunStarted, 10)
		s.recorder.CountN(metrics.RunCompleted, 5)
		s.recorder.CountN(metrics.RunFailed, 10)
		s.recorder.CountN(metrics.RunStopped, 5)
		s.recorder.CountN(metrics.StepCompleted, 30)
		want := &kagziv1.GetStatsResponse{
			PendingWorkflows: 1, RunningWorkflows: 2, CompletedWorkflows: 4, FailedWorkflows: 5, TotalWorkflows: 21,
			TotalWorkers: 7, OnlineWorkers: 8, TotalSchedules: 9, EnabledSchedules: 10,
			WorkflowsByStatus: map[string]int64{"PENDING": 1, "RUNNING": 2, "SLEEPING": 3, "COMPLETED": 4, "FAILED": 5,
				"CANCELLED": 6},
			WorkflowsByType: map[string]int64{"t": 21}, At: timestamppb.Now(), OldestPendingSeconds: 10,
			RunsStartedPerSecond: 1, RunsFinishedPerSecond: 2, StepsCompletedPerSecond: 3,
		}
		admin := engine.APIKey{Role: engine.RoleAdmin}
		for _, c := range []struct {
			who   string
			key   *auth.Key
			rates bool
		}{
			{"a local caller", nil, true},
			{"an admin of all namespaces", &auth.Key{APIKey: admin}, true},
			{"an admin of one", &auth.Key{APIKey: engine.APIKey{Role: engine.RoleAdmin, Namespaces: []string{"shop"}}},
				false},
			{"a viewer", &auth.Key{APIKey: engine.APIKey{Role: engine.RoleViewer, Namespaces: []string{"shop"}}},
				false},
		} {
			ctx := t.Context()
			if c.key != nil {
				ctx = auth.WithCaller(ctx, c.key)
			}
			got, err := s.GetStats(ctx, &kagziv1.GetStatsRequest{Namespace: new("shop")})
			if err != nil {
				t.Fatal(err)
			}
			if !c.rates {
				got.RunsStartedPerSecond, got.RunsFinishedPerSecond, got.StepsCompletedPerSecond =
					got.RunsStartedPerSecond+1, got.RunsFinishedPerSecond+2, got.StepsCompletedPerSecond+3
			}
			if diff := cmp.Diff(want, got, protocmp.Transform()); diff != "" {
				t.Errorf("%s is told other stats:\n%s", c.who, diff)
			}
		}
	})
}

func TestStatsAreWatchedAtAnIntervalWithinItsLimits(t *testing.T) {
	for interval, want := range map[time.Duration]engine.Kind{
		250 * time.Millisecond: 0, 250*time.Millisecond - 1: engine.KindInvalid, time.Hour: 0,
		time.Hour + 1: engine.KindInvalid, -1: engine.KindInvalid,
	} {
		synctest.Test(t, func(t *testing.T) {
			s := New(counted{}, nil, Options{Trusted: true})
			ctx, stop := context.WithCancel(t.Context())
			w := &statsStream{ctx: ctx}
			over := make(chan error, 1)
			go func() { over <- s.WatchStats(&kagziv1.WatchStatsRequest{Interval: durationpb.New(interval)}, w) }()
			time.Sleep(2*interval + 1)
			synctest.Wait()
			sent := w.sent
			stop()
			if err := <-over; want == 0 && sent != 3 || want != 0 && (sent != 0 || engine.KindOf(err) != want) {
				t.Errorf("every %s: %d were sent within two, %v", interval, sent, err)
			}
		})
	}
}

// statsStream is the server's end of a stream of stats.
type statsStream struct {
	grpc.ServerStream
	ctx  context.Context
	sent int
}

func (w *statsStream) Context() context.Context             { return w.ctx }
func (w *statsStream) Send(*kagziv1.GetStatsResponse) error { w.sent++; return nil }
