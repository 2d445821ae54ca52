package session

import (
	"context"
	"log/slog"
	"math"
	"slices"
	"sync"
	"time"

	"github.com/kagzi/kagzi/engine"
	"github.com/kagzi/kagzi/engine/server/internal/auth"
	"github.com/kagzi/kagzi/engine/server/internal/wire"
	kagziv1 "github.com/kagzi/kagzi/proto/kagzi/v1"
)

// nameWithin returns how soon after its claim a whole heartbeat (held_is_whole) must name a run; in
// a session, after its task was sent.
func (s *Service) nameWithin() time.Duration { return min(10*time.Second, s.options.WorkerLease) }

// clockWatch detects that the store's clock was set ahead, by comparing it with the monotonic
// clock. If it was, or if the machine slept, a run that was just claimed looks as if its worker
// should have named it long ago.
type clockWatch struct {
	mu         sync.Mutex
	clock, own time.Time // the last reading of the store's and the monotonic clock
	// when the store's clock was last found to be set ahead, by the monotonic clock; unset: never
	set time.Time
}

// slack is how much the clock may gain without counting as set, because it is corrected now and
// then.
const slack = time.Second

// steady records a reading of both clocks. It returns false if the clock was found to be set ahead
// less than within ago.
func (s *clockWatch) steady(clock, own time.Time, within time.Duration) bool {
	clock = clock.Round(0) // removes its monotonic reading, so that Sub compares wall clock times
	s.mu.Lock()
	defer s.mu.Unlock()
	if !s.own.IsZero() && clock.Sub(s.clock)-own.Sub(s.own) > slack {
		s.set = own
	}
	if !own.Before(s.own) { // a later heartbeat may have come first
		s.clock, s.own = clock, own
	}
	return s.set.IsZero() || own.Sub(s.set) >= within
}

// maxBeatWait returns how long a session's heartbeat may wait to share a commit with others if its
// worker holds nothing. So many thousands of idle workers cost the database a few commits per
// second.
func (s *Service) maxBeatWait() time.Duration {
	return min(250*time.Millisecond, s.options.HeartbeatInterval/40)
}

// heartbeat handles a worker's heartbeat. underWay holds leases that the worker does not name
// because their tasks are in transit to it. They count as named, and the answer, which may overtake
// the tasks, does not mention them. maxWait applies only if there are no leases to keep.
func (s *Service) heartbeat(
	ctx context.Context, r *kagziv1.HeartbeatRequest, underWay []engine.Lease, maxWait time.Duration,
) (*kagziv1.HeartbeatResponse, error) {
	if err := engine.CheckWorkerID("worker_id", r.WorkerId); err != nil {
		return nil, err
	}
	for _, n := range []struct {
		field string
		value int32
	}{{"active_count", r.ActiveCount}, {"completed_delta", r.CompletedDelta}, {"failed_delta", r.FailedDelta}} {
		if n.value < 0 {
			return nil, engine.Invalid(n.field, "must not be negative, got %d", n.value)
		}
	}
	if n := r.GetTasksReceived(); n < 0 {
		return nil, engine.Invalid("tasks_received", "must not be negative, got %d", n)
	}
	now, within := s.store.Now(), s.nameWithin()
	p := engine.HeartbeatParams{
		WorkerID: r.WorkerId, Active: int(r.ActiveCount), Completed: int(r.CompletedDelta), Failed: int(r.FailedDelta),
		Whole: r.HeldIsWhole && s.clock.steady(now, time.Now(), within), NameWithin: within, Now: now,
	}
	var err error
	if p.Stats, err = statsOf(r.Stats); err != nil {
		return nil, err
	}
	blocked, err := wire.BlockedOf(r.Blocked)
	if err != nil {
		return nil, err
	}
	for i := range blocked {
		if blocked[i].Since.IsZero() {
			blocked[i].Since = now
		}
	}
	if len(blocked) > 0 {
		if p.Stats == nil {
			p.Stats = &engine.WorkerStats{}
		}
		p.Stats.Blocked = blocked
	}
	if n := len(r.Held); n > engine.MaxConcurrent {
		return nil, engine.Invalid("held", "names %d runs, at most %d are allowed", n, engine.MaxConcurrent)
	}
	for _, l := range r.Held {
		id, err := wire.IDOf("held.run_id", l.RunId)
		if err != nil {
			return nil, err
		}
		token, err := engine.ParseToken(l.LeaseToken)
		if err != nil {
			return nil, engine.Invalid("held.lease_token", "is not a token that a task carried")
		}
		if _, known := kagziv1.WorkflowStatus_name[int32(l.RunStatus)]; !known {
			// a request must not set it: it is for answers
			return nil, engine.Invalid("held.run_status", "is an unknown status, %d; leave it out", l.RunStatus)
		}
		p.Held = append(p.Held, engine.Lease{RunID: id, Token: token})
	}
	if p.Held = append(p.Held, underWay...); len(p.Held) == 0 {
		p.MaxWait = maxWait
	}
	beat, err := s.store.Heartbeat(ctx, p)
	if err != nil {
		return nil, err
	}
	beat.Lost = slices.DeleteFunc(beat.Lost, func(l engine.Lease) bool { return slices.Contains(underWay, l) })
	beat.Cancelling = slices.DeleteFunc(beat.Cancelling, func(h engine.Held) bool {
		return slices.Contains(underWay, h.Lease)
	})
	response := &kagziv1.HeartbeatResponse{Accepted: true, ShouldDrain: beat.Status == engine.WorkerDraining}
	statuses := s.statusesOf(ctx, r.WorkerId, beat.Lost)
	for _, l := range beat.Lost {
		response.Lost = append(response.Lost, &kagziv1.Lease{
			RunId: l.RunID.String(), LeaseToken: l.Token.Wire(), RunStatus: kagziv1.WorkflowStatus(statuses[l.RunID]),
		})
	}
	for _, h := range beat.Cancelling {
		response.Cancelling = append(response.Cancelling, wire.CancellingTo(h))
	}
	for _, l := range beat.Pausing {
		response.Pausing = append(response.Pausing,
			&kagziv1.Lease{RunId: l.RunID.String(), LeaseToken: l.Token.Wire()})
	}
	return response, nil
}

// statusesOf returns the statuses of the runs of these leases, if they are in the worker's
// namespace. It ignores errors, because the heartbeat has already taken effect.
func (s *Service) statusesOf(ctx context.Context, worker string, leases []engine.Lease) map[engine.ID]engine.RunStatus {
	if len(leases) == 0 {
		return nil
	}
	w, err := s.store.GetWorker(ctx, worker)
	if err != nil {
		return nil
	}
	ids := make([]engine.ID, len(leases))
	for i, l := range leases {
		ids[i] = l.RunID
	}
	statuses := make(map[engine.ID]engine.RunStatus, len(ids))
	for page := range slices.Chunk(ids, engine.MaxPage) {
		runs, err := s.store.GetRuns(ctx, w.Namespace, page)
		if err != nil {
			return statuses
		}
		for i := range runs {
			statuses[runs[i].ID] = runs[i].Status
		}
	}
	return statuses
}

// Limits of what a worker reports about itself. Larger times overflow a Duration, and larger
// numbers fill a screen.
const (
	maxCPUPercent = 100 * 1024 // 1024 CPUs
	maxUptime     = float64(engine.MaxDelay / time.Second)
	maxAverageRun = float64(engine.MaxDelay / time.Millisecond)
)

// statsOf reads what a worker measured about itself; nil if t is nil.
func statsOf(t *kagziv1.WorkerStats) (*engine.WorkerStats, error) {
	if t == nil {
		return nil, nil
	}
	for _, n := range []struct {
		field string
		value float64
		most  float64
	}{
		{"cpu_percent", t.CpuPercent, maxCPUPercent}, {"memory_bytes", float64(t.MemoryBytes), math.MaxInt64},
		{"disk_available_bytes", float64(t.DiskAvailableBytes), math.MaxInt64},
		{"uptime_seconds", float64(t.UptimeSeconds), maxUptime}, {"average_run_ms", t.AverageRunMs, maxAverageRun},
	} {
		if !(n.value >= 0 && n.value <= n.most) { // also refuses NaN
			return nil, engine.Invalid("stats."+n.field, "must be a number from 0 to %.0f, got %v", n.most, n.value)
		}
	}
	return &engine.WorkerStats{
		CPUPercent: t.CpuPercent, MemoryBytes: t.MemoryBytes, DiskAvailableBytes: t.DiskAvailableBytes,
		UptimeSeconds: t.UptimeSeconds, AverageRunMS: t.AverageRunMs,
	}, nil
}

func (s *Service) deregister(ctx context.Context, r *kagziv1.DeregisterRequest) (*kagziv1.DeregisterResponse, error) {
	if err := engine.CheckWorkerID("worker_id", r.WorkerId); err != nil {
		return nil, err
	}
	if r.Drain {
		if err := s.store.DrainWorker(ctx, engine.DrainWorkerParams{
			WorkerID: r.WorkerId, Now: s.store.Now()}); err != nil {
			return nil, err
		}
		s.recorder.NoteWorker(auth.ActorOf(ctx), "worker draining", r.WorkerId)
		return &kagziv1.DeregisterResponse{Drained: true}, nil
	}
	taken, err := s.store.ForceOfflineWorker(
		ctx, engine.OfflineWorkerParams{WorkerID: r.WorkerId, Reason: engine.OfflineDeregistered, Now: s.store.Now()})
	if err != nil {
		return nil, err
	}
	s.recorder.NoteWorker(auth.ActorOf(ctx), "worker left", r.WorkerId, slog.Int("runs_freed", taken.Freed))
	return &kagziv1.DeregisterResponse{}, nil
}
