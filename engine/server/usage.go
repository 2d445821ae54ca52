package server

import (
	"context"
	"time"

	"google.golang.org/protobuf/types/known/durationpb"
	"google.golang.org/protobuf/types/known/timestamppb"

	"github.com/kagzi/kagzi/engine"
	"github.com/kagzi/kagzi/engine/server/internal/async"
	"github.com/kagzi/kagzi/engine/server/internal/auth"
	"github.com/kagzi/kagzi/engine/server/internal/metrics"
	"github.com/kagzi/kagzi/engine/server/internal/wire"
	kagziv1 "github.com/kagzi/kagzi/proto/kagzi/v1"
)

// GetStats counts everything, at most about a second old. Its rates are averages since this server
// started; WatchStats has current ones.
func (s *Server) GetStats(ctx context.Context, request *kagziv1.GetStatsRequest) (*kagziv1.GetStatsResponse, error) {
	return s.statsSince(ctx, request.Namespace, s.recorder.Origin())
}

func (s *Server) statsSince(ctx context.Context, namespace *string,
	since metrics.Totals) (*kagziv1.GetStatsResponse, error) {
	name := ""
	if namespace != nil {
		var err error
		if name, err = wire.NamespaceOf(*namespace); err != nil {
			return nil, err
		}
	}
	stats, err := s.readings.Stats(ctx, name)
	if err != nil {
		return nil, err
	}
	now := s.now()
	response := &kagziv1.GetStatsResponse{
		PendingWorkflows: stats.ByStatus[engine.RunPending], RunningWorkflows: stats.ByStatus[engine.RunRunning],
		CompletedWorkflows: stats.ByStatus[engine.RunCompleted], FailedWorkflows: stats.ByStatus[engine.RunFailed],
		TotalWorkers: stats.Workers, OnlineWorkers: stats.OnlineWorkers,
		TotalSchedules: stats.Schedules, EnabledSchedules: stats.EnabledSchedules,
		WorkflowsByStatus: map[string]int64{}, WorkflowsByType: stats.ByType, At: timestamppb.New(now),
		OldestPendingSeconds: waited(stats.OldestDue, now),
	}
	for status, n := range stats.ByStatus {
		response.TotalWorkflows += n
		response.WorkflowsByStatus[status.String()] = n
	}
	if key := auth.CallerOf(ctx); key != nil && !key.ReachesAll() {
		return response, nil // the rates include all namespaces
	}
	done := s.recorder.Since(since)
	response.RunsStartedPerSecond, response.RunsFinishedPerSecond, response.StepsCompletedPerSecond = done.Started,
		done.Finished, done.Steps
	return response, nil
}

// WatchStats sends GetStats at an interval, with the rates of that interval.
func (s *Server) WatchStats(request *kagziv1.WatchStatsRequest, stream kagziv1.AdminService_WatchStatsServer) error {
	interval := time.Second
	if request.Interval != nil {
		var err error
		if interval, err = wire.DurationOf("interval", request.Interval); err != nil {
			return err
		}
		if interval < 250*time.Millisecond || interval > time.Hour {
			return engine.Invalid("interval", "must be between 250 ms and 1 h, got %s", interval)
		}
	}
	ticker := time.NewTicker(interval)
	defer ticker.Stop()
	for last := s.recorder.Mark(); ; {
		response, err := s.statsSince(stream.Context(), request.Namespace, last)
		if err != nil {
			return err
		}
		last = s.recorder.Mark()
		if err := stream.Send(response); err != nil {
			return err
		}
		if err := async.Await(stream.Context(), s.stopping, ticker.C); err != nil {
			return err
		}
	}
}

// GetActivity returns how much this server did in recent steps of time, without the current step.
func (s *Server) GetActivity(_ context.Context,
	request *kagziv1.GetActivityRequest) (*kagziv1.GetActivityResponse, error) {
	if s.options.Beside {
		return nil, errBeside
	}
	step, err := wire.DurationOf("step", request.Step)
	if err != nil {
		return nil, err
	}
	switch step {
	case 0:
		step = time.Second
	case time.Second, time.Minute:
	default:
		return nil, engine.Invalid("step", "must be 1s or 1m0s, got %s", step)
	}
	points, underWay := s.recorder.Activity(step == time.Minute)
	return &kagziv1.GetActivityResponse{
		At: timestamppb.New(s.now().Add(-underWay)), Step: durationpb.New(step), Points: points,
	}, nil
}
