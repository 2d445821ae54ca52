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

// nameWithin is how soon after its claim a run must be named in a heartbeat that names all; in a
// session, after the network has taken its task.
func (s *Service) nameWithin() time.Duration { return min(10*time.Second, s.options.WorkerLease) }

// clockWatch tells whether the clock that claims are dated by goes as the machine's own does, which
// nobody can set. Ahead of that by a day, or after a machine has slept, a run that was claimed a
// moment ago looks as if its worker should have named it long ago.
type clockWatch struct {
	mu         sync.Mutex
	clock, own time.Time // the last reading of both
	// by the machine's own, when the clock was last found to be ahead of where it should be; unset: it never was
	set time.Time
}

// slack is how much the clock may gain without counting as set: it is corrected now and then.
const slack = time.Second

// steady notes a reading of both clocks. It is false when the clock was found to have been set
// ahead less than so long ago.
func (s *clockWatch) steady(clock, own time.Time, within time.Duration) bool {
	clock = clock.Round(0) // or the machine's own would be compared with itself
	s.mu.Lock()
	defer s.mu.Unlock()
	if !s.own.IsZero() && clock.Sub(s.clock)-own.Sub(s.own) > slack {
		s.set = own
	}
	if !own.Before(s.own) { // another heartbeat may have overtaken this one
		s.clock, s.own = clock, own
	}
	return s.set.IsZero() || own.Sub(s.set) >= within
}

// maxBeatWait is how long a session's heartbeat may wait for others to be noted with where its
// worker holds nothing: many thousands of idle workers then cost the database a few commits a
// second.
func (s *Service) maxBeatWait() time.Duration {
	return min(250*time.Millisecond, s.options.HeartbeatInterval/40)
}

// heartbeat notes a worker's sign of life. inTransit are leases that it does not name because their
// tasks are on their way to it: they count as named, and the answer, which may overtake the tasks,
// says nothing of them. maxWait is how long it may wait where there are no leases to keep.
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
			// it is for answers, and not looked at otherwise
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
	return response, nil
}

// statusesOf is where the runs of these leases stand, as far as they are of the worker's namespace
// and the database says: the heartbeat has counted, whatever comes of this.
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

// What a worker may say about itself at most: past that, times are no durations any more, and numbers fill a screen.
const (
	maxCPUPercent = 100 * 1024 // so many processors
	maxUptime     = float64(engine.MaxDelay / time.Second)
	maxAverageRun = float64(engine.MaxDelay / time.Millisecond)
)

// statsOf reads what a worker measured about itself; absent is nil.
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
