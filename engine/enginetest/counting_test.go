package enginetest

import (
	"context"
	"sync/atomic"
	"time"

	"github.com/kagzi/kagzi/engine"
)

// counting is a store that counts what may reach the database. It embeds nothing, so that a new method cannot be forgotten.
type counting struct {
	store engine.Store
	calls atomic.Int64
}

var _ engine.Store = (*counting)(nil)

func (c *counting) Now() time.Time { return c.store.Now() }

func (c *counting) Health(ctx context.Context) error {
	c.calls.Add(1)
	return c.store.Health(ctx)
}

func (c *counting) Describe(ctx context.Context) (engine.Description, error) {
	c.calls.Add(1)
	return c.store.Describe(ctx)
}

func (c *counting) Fatal() <-chan struct{} { return c.store.Fatal() }

func (c *counting) Failure() error { return c.store.Failure() }

func (c *counting) Close() error { return c.store.Close() }

func (c *counting) StartRuns(ctx context.Context, starts []engine.StartRun) ([]engine.Started, error) {
	c.calls.Add(1)
	return c.store.StartRuns(ctx, starts)
}

func (c *counting) CancelRun(ctx context.Context, p engine.EndRunParams) (engine.RunEnd, error) {
	c.calls.Add(1)
	return c.store.CancelRun(ctx, p)
}

func (c *counting) TerminateRun(ctx context.Context, p engine.EndRunParams) (engine.RunEnd, error) {
	c.calls.Add(1)
	return c.store.TerminateRun(ctx, p)
}

func (c *counting) Claim(ctx context.Context, p engine.ClaimParams) (engine.Claimed, error) {
	c.calls.Add(1)
	return c.store.Claim(ctx, p)
}

func (c *counting) BeginStep(ctx context.Context, p engine.BeginStepParams) (engine.Begun, error) {
	c.calls.Add(1)
	return c.store.BeginStep(ctx, p)
}

func (c *counting) CompleteStep(ctx context.Context, p engine.CompleteStepParams) (engine.Step, error) {
	c.calls.Add(1)
	return c.store.CompleteStep(ctx, p)
}

func (c *counting) FailStep(ctx context.Context, p engine.FailStepParams) (engine.Verdict, error) {
	c.calls.Add(1)
	return c.store.FailStep(ctx, p)
}

func (c *counting) Sleep(ctx context.Context, p engine.SleepParams) error {
	c.calls.Add(1)
	return c.store.Sleep(ctx, p)
}

func (c *counting) CompleteRun(ctx context.Context, p engine.CompleteRunParams) error {
	c.calls.Add(1)
	return c.store.CompleteRun(ctx, p)
}

func (c *counting) FailRun(ctx context.Context, p engine.FailRunParams) (engine.Verdict, error) {
	c.calls.Add(1)
	return c.store.FailRun(ctx, p)
}

func (c *counting) Release(ctx context.Context, p engine.ReleaseParams) error {
	c.calls.Add(1)
	return c.store.Release(ctx, p)
}

func (c *counting) RegisterWorker(ctx context.Context, p engine.RegisterWorkerParams) (engine.Worker, error) {
	c.calls.Add(1)
	return c.store.RegisterWorker(ctx, p)
}

func (c *counting) Heartbeat(ctx context.Context, p engine.HeartbeatParams) (engine.Beat, error) {
	c.calls.Add(1)
	return c.store.Heartbeat(ctx, p)
}

func (c *counting) DrainWorker(ctx context.Context, workerID string, now time.Time) error {
	c.calls.Add(1)
	return c.store.DrainWorker(ctx, workerID, now)
}

func (c *counting) OfflineWorker(ctx context.Context, p engine.OfflineWorkerParams) (int, error) {
	c.calls.Add(1)
	return c.store.OfflineWorker(ctx, p)
}

func (c *counting) GetRun(ctx context.Context, namespace string, id engine.ID) (engine.Run, error) {
	c.calls.Add(1)
	return c.store.GetRun(ctx, namespace, id)
}

func (c *counting) GetRunByExternalID(ctx context.Context, namespace, externalID string) (engine.Run, error) {
	c.calls.Add(1)
	return c.store.GetRunByExternalID(ctx, namespace, externalID)
}

func (c *counting) ListRuns(ctx context.Context, f engine.RunFilter, p engine.Page) ([]engine.Run, engine.PageInfo, error) {
	c.calls.Add(1)
	return c.store.ListRuns(ctx, f, p)
}

func (c *counting) ListSteps(ctx context.Context, namespace string, run engine.ID, name string, p engine.Page) ([]engine.Step, engine.PageInfo, error) {
	c.calls.Add(1)
	return c.store.ListSteps(ctx, namespace, run, name, p)
}

func (c *counting) GetStep(ctx context.Context, namespace string, step engine.ID) (engine.Step, error) {
	c.calls.Add(1)
	return c.store.GetStep(ctx, namespace, step)
}

func (c *counting) History(ctx context.Context, p engine.HistoryParams) ([]engine.Step, int64, error) {
	c.calls.Add(1)
	return c.store.History(ctx, p)
}

func (c *counting) CurrentLease(ctx context.Context, namespace string, run engine.ID) (engine.Lease, error) {
	c.calls.Add(1)
	return c.store.CurrentLease(ctx, namespace, run)
}

func (c *counting) HeldBy(ctx context.Context, workerID string) ([]engine.Lease, error) {
	c.calls.Add(1)
	return c.store.HeldBy(ctx, workerID)
}

func (c *counting) GetWorker(ctx context.Context, id string) (engine.Worker, error) {
	c.calls.Add(1)
	return c.store.GetWorker(ctx, id)
}

func (c *counting) ListWorkers(ctx context.Context, f engine.WorkerFilter, p engine.Page) ([]engine.Worker, engine.PageInfo, error) {
	c.calls.Add(1)
	return c.store.ListWorkers(ctx, f, p)
}

func (c *counting) QueueDepths(ctx context.Context, namespace, queue string, now time.Time) ([]engine.QueueDepth, error) {
	c.calls.Add(1)
	return c.store.QueueDepths(ctx, namespace, queue, now)
}

func (c *counting) Stats(ctx context.Context, namespace string, now time.Time) (engine.Stats, error) {
	c.calls.Add(1)
	return c.store.Stats(ctx, namespace, now)
}

func (c *counting) ListTypes(ctx context.Context, namespace string, p engine.Page) ([]engine.TypeInfo, engine.PageInfo, error) {
	c.calls.Add(1)
	return c.store.ListTypes(ctx, namespace, p)
}

func (c *counting) LiveWorkers(ctx context.Context) ([]engine.LiveWorker, error) {
	c.calls.Add(1)
	return c.store.LiveWorkers(ctx)
}

func (c *counting) FreeLost(ctx context.Context, now time.Time) (int, time.Time, error) {
	c.calls.Add(1)
	return c.store.FreeLost(ctx, now)
}

func (c *counting) TimeoutSteps(ctx context.Context, p engine.TimeoutStepsParams) (int, time.Time, error) {
	c.calls.Add(1)
	return c.store.TimeoutSteps(ctx, p)
}

func (c *counting) Prune(ctx context.Context, p engine.PruneParams) (int, error) {
	c.calls.Add(1)
	return c.store.Prune(ctx, p)
}

func (c *counting) Listen(ctx context.Context, ring func(engine.Ring)) error {
	return c.store.Listen(ctx, ring)
}
