package server

import (
	"context"
	"sync"
	"sync/atomic"
	"time"

	"google.golang.org/protobuf/types/known/timestamppb"

	"github.com/kagzi/kagzi/engine"
	kagziv1 "github.com/kagzi/kagzi/proto/kagzi/v1"
)

// statsCache keeps counts for a while, because counting everything may cost a scan: twenty times as long as they took to count, and
// at least a quarter of a second, so that dashboards cost at most a twentieth of the database however many there are.
type statsCache struct {
	mu      sync.Mutex
	entries map[string]*cached[engine.Stats] // by namespace; "" is all
	places  chan struct{}                    // has room for statsAtOnce
}

// cached is something that may be costly to find.
type cached[T any] struct {
	mu     sync.Mutex // held while finding, so that all who ask share one
	value  T
	until  time.Time
	places chan struct{} // taken while finding; nil: none is needed
}

const (
	statsAtOnce  = 2 // counts, of several namespaces: those who need the store for their work are not to wait for them
	statsFor     = 250 * time.Millisecond
	statsShare   = 20
	maxStatsKeys = 1000
)

func (c *statsCache) get(ctx context.Context, namespace string, count func() (engine.Stats, error)) (engine.Stats, error) {
	c.mu.Lock()
	if c.entries == nil || len(c.entries) >= maxStatsKeys {
		c.entries = map[string]*cached[engine.Stats]{}
	}
	entry := c.entries[namespace]
	if entry == nil {
		entry = &cached[engine.Stats]{places: c.places}
		c.entries[namespace] = entry
	}
	c.mu.Unlock()
	return entry.get(ctx, count)
}

// countAll is the counts of a namespace, "" of all, as of a moment ago.
func (s *Server) countAll(ctx context.Context, namespace string) (engine.Stats, error) {
	return s.stats.get(ctx, namespace, func() (engine.Stats, error) { return s.store.Stats(ctx, namespace, s.now()) })
}

func (c *cached[T]) get(ctx context.Context, find func() (T, error)) (none T, err error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if time.Now().Before(c.until) {
		return c.value, nil
	}
	if c.places != nil {
		select {
		case c.places <- struct{}{}:
			defer func() { <-c.places }()
		case <-ctx.Done():
			return none, ctx.Err()
		}
	}
	began := time.Now()
	value, err := find()
	if err != nil {
		return none, err
	}
	c.value = value
	c.until = time.Now().Add(max(statsFor, statsShare*time.Since(began)))
	return value, nil
}

// counters are what this server has acknowledged since it started.
type counters [deeds]atomic.Int64

func (c *counters) started() int64 { return c[runStarted].Load() }

func (c *counters) finished() int64 {
	return c[runCompleted].Load() + c[runFailed].Load() + c[runStopped].Load()
}

func (c *counters) steps() int64 { return c[stepCompleted].Load() }

// rates turns the server's counters into rates between two looks.
type rates struct {
	at                       time.Time
	started, finished, steps int64
}

func (c *counters) read(now time.Time) rates {
	return rates{at: now, started: c.started(), finished: c.finished(), steps: c.steps()}
}

// GetStats counts everything, as of the last second or so. Its rates are those since this server started; WatchStats has the current
// ones.
func (s *Server) GetStats(ctx context.Context, request *kagziv1.GetStatsRequest) (*kagziv1.GetStatsResponse, error) {
	return s.statsSince(ctx, request.Namespace, s.origin)
}

func (s *Server) statsSince(ctx context.Context, namespace *string, since rates) (*kagziv1.GetStatsResponse, error) {
	name := ""
	if namespace != nil {
		var err error
		if name, err = namespaceOf(*namespace); err != nil {
			return nil, err
		}
	}
	stats, err := s.countAll(ctx, name)
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
	if key := callerOf(ctx); key != nil && !key.reachesAll() {
		return response, nil // the rates are those of all namespaces together
	}
	read := s.counters.read(s.options.Clock())
	if seconds := read.at.Sub(since.at).Seconds(); seconds > 0 {
		response.RunsStartedPerSecond = float64(read.started-since.started) / seconds
		response.RunsFinishedPerSecond = float64(read.finished-since.finished) / seconds
		response.StepsCompletedPerSecond = float64(read.steps-since.steps) / seconds
	}
	return response, nil
}

// WatchStats sends GetStats at an interval, with the rates of that interval.
func (s *Server) WatchStats(request *kagziv1.WatchStatsRequest, stream kagziv1.AdminService_WatchStatsServer) error {
	interval := time.Second
	if request.Interval != nil {
		var err error
		if interval, err = durationOf("interval", request.Interval); err != nil {
			return err
		}
		if interval < 250*time.Millisecond || interval > time.Hour {
			return engine.Invalid("interval", "must be between 250 ms and 1 h, got %s", interval)
		}
	}
	ticker := time.NewTicker(interval)
	defer ticker.Stop()
	for last := s.counters.read(s.options.Clock()); ; {
		response, err := s.statsSince(stream.Context(), request.Namespace, last)
		if err != nil {
			return err
		}
		last = s.counters.read(s.options.Clock())
		if err := stream.Send(response); err != nil {
			return err
		}
		if err := await(stream.Context(), s, ticker.C); err != nil {
			return err
		}
	}
}
