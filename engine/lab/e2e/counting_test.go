package e2e

import (
	"context"
	"sync/atomic"
	"time"

	"github.com/kagzi/kagzi/engine"
)

// counting is a store that counts calls that may reach the database. It embeds nothing, so that the
// compiler finds a missing method.
type counting struct {
	store engine.Store
	calls atomic.Int64 // started
	over  atomic.Int64 // answered
}

// call counts the start of a call; call the returned function when the call is answered.
func (c *counting) call() (answered func()) {
	c.calls.Add(1)
	return func() { c.over.Add(1) }
}

var _ engine.Store = (*counting)(nil)

func (c *counting) Now() time.Time { return c.store.Now() }

func (c *counting) Uncertainty() time.Duration { return c.store.Uncertainty() }

func (c *counting) Health(ctx context.Context) error {
	defer c.call()()
	return c.store.Health(ctx)
}

func (c *counting) Describe(ctx context.Context) (engine.Description, error) {
	defer c.call()()
	return c.store.Describe(ctx)
}

func (c *counting) Fatal() <-chan struct{} { return c.store.Fatal() }

func (c *counting) Failure() error { return c.store.Failure() }

func (c *counting) Close() error { return c.store.Close() }

func (c *counting) StartRuns(ctx context.Context, p engine.StartRunsParams) ([]engine.Started, error) {
	defer c.call()()
	return c.store.StartRuns(ctx, p)
}

func (c *counting) CancelRun(ctx context.Context, p engine.EndRunParams) (engine.RunEnd, error) {
	defer c.call()()
	return c.store.CancelRun(ctx, p)
}

func (c *counting) TerminateRun(ctx context.Context, p engine.EndRunParams) (engine.RunEnd, error) {
	defer c.call()()
	return c.store.TerminateRun(ctx, p)
}

func (c *counting) PauseRun(ctx context.Context, p engine.PauseRunParams) (engine.Run, error) {
	defer c.call()()
	return c.store.PauseRun(ctx, p)
}

func (c *counting) ResumeRun(ctx context.Context, p engine.ResumeRunParams) (engine.Run, error) {
	defer c.call()()
	return c.store.ResumeRun(ctx, p)
}

func (c *counting) PinRun(ctx context.Context, p engine.PinRunParams) (engine.Run, error) {
	defer c.call()()
	return c.store.PinRun(ctx, p)
}

func (c *counting) SignalRun(ctx context.Context, p engine.SignalRunParams) (engine.Signalled, error) {
	defer c.call()()
	return c.store.SignalRun(ctx, p)
}

func (c *counting) RetryRun(ctx context.Context, p engine.RetryRunParams) (engine.Started, error) {
	defer c.call()()
	return c.store.RetryRun(ctx, p)
}

func (c *counting) OverrideStep(ctx context.Context, p engine.OverrideStepParams) (engine.Step, error) {
	defer c.call()()
	return c.store.OverrideStep(ctx, p)
}

func (c *counting) ImportRuns(ctx context.Context, p engine.ImportRunsParams) (engine.Started, error) {
	defer c.call()()
	return c.store.ImportRuns(ctx, p)
}

func (c *counting) Claim(ctx context.Context, p engine.ClaimParams) (engine.Claimed, error) {
	defer c.call()()
	return c.store.Claim(ctx, p)
}

func (c *counting) BeginStep(ctx context.Context, p engine.BeginStepParams) (engine.Begun, error) {
	defer c.call()()
	return c.store.BeginStep(ctx, p)
}

func (c *counting) CompleteStep(ctx context.Context, p engine.CompleteStepParams) (engine.Step, error) {
	defer c.call()()
	return c.store.CompleteStep(ctx, p)
}

func (c *counting) FailStep(ctx context.Context, p engine.FailStepParams) (engine.Verdict, error) {
	defer c.call()()
	return c.store.FailStep(ctx, p)
}

func (c *counting) Sleep(ctx context.Context, p engine.SleepParams) (engine.Step, error) {
	defer c.call()()
	return c.store.Sleep(ctx, p)
}

func (c *counting) AwaitSignal(ctx context.Context, p engine.AwaitSignalParams) (engine.AwaitedSignal, error) {
	defer c.call()()
	return c.store.AwaitSignal(ctx, p)
}

func (c *counting) StartChild(ctx context.Context, p engine.StartChildParams) (engine.Step, error) {
	defer c.call()()
	return c.store.StartChild(ctx, p)
}

func (c *counting) AwaitChildren(ctx context.Context, p engine.AwaitChildrenParams) ([]engine.Step, error) {
	defer c.call()()
	return c.store.AwaitChildren(ctx, p)
}

func (c *counting) SetRunNote(ctx context.Context, p engine.SetNoteParams) error {
	defer c.call()()
	return c.store.SetRunNote(ctx, p)
}

func (c *counting) CompleteRun(ctx context.Context, p engine.CompleteRunParams) (engine.Completed, error) {
	defer c.call()()
	return c.store.CompleteRun(ctx, p)
}

func (c *counting) FailRun(ctx context.Context, p engine.FailRunParams) (engine.RunVerdict, error) {
	defer c.call()()
	return c.store.FailRun(ctx, p)
}

func (c *counting) Release(ctx context.Context, p engine.ReleaseParams) error {
	defer c.call()()
	return c.store.Release(ctx, p)
}

func (c *counting) CreateSchedule(ctx context.Context, p engine.ScheduleParams) (engine.Schedule, error) {
	defer c.call()()
	return c.store.CreateSchedule(ctx, p)
}

func (c *counting) UpdateSchedule(ctx context.Context, p engine.ScheduleParams) (engine.Schedule, error) {
	defer c.call()()
	return c.store.UpdateSchedule(ctx, p)
}

func (c *counting) DeleteSchedule(ctx context.Context, p engine.DeleteScheduleParams) error {
	defer c.call()()
	return c.store.DeleteSchedule(ctx, p)
}

func (c *counting) FireSchedule(ctx context.Context, p engine.FireScheduleParams) (engine.Fired, error) {
	defer c.call()()
	return c.store.FireSchedule(ctx, p)
}

func (c *counting) TriggerSchedule(ctx context.Context, p engine.TriggerScheduleParams) (engine.Started, error) {
	defer c.call()()
	return c.store.TriggerSchedule(ctx, p)
}

func (c *counting) BackfillSchedule(ctx context.Context, p engine.BackfillScheduleParams) ([]engine.Started, error) {
	defer c.call()()
	return c.store.BackfillSchedule(ctx, p)
}

func (c *counting) CreateNamespace(ctx context.Context, p engine.NamespaceParams) (engine.Namespace, error) {
	defer c.call()()
	return c.store.CreateNamespace(ctx, p)
}

func (c *counting) UpdateNamespace(ctx context.Context, p engine.NamespaceParams) (engine.Namespace, error) {
	defer c.call()()
	return c.store.UpdateNamespace(ctx, p)
}

func (c *counting) DeleteNamespace(ctx context.Context, p engine.DeleteNamespaceParams) error {
	defer c.call()()
	return c.store.DeleteNamespace(ctx, p)
}

func (c *counting) EmptyNamespace(ctx context.Context, p engine.EmptyNamespaceParams) (engine.Emptied, error) {
	defer c.call()()
	return c.store.EmptyNamespace(ctx, p)
}

func (c *counting) RegisterWorker(ctx context.Context, p engine.RegisterWorkerParams) (engine.Worker, error) {
	defer c.call()()
	return c.store.RegisterWorker(ctx, p)
}

func (c *counting) Heartbeat(ctx context.Context, p engine.HeartbeatParams) (engine.Beat, error) {
	defer c.call()()
	return c.store.Heartbeat(ctx, p)
}

func (c *counting) DrainWorker(ctx context.Context, p engine.DrainWorkerParams) error {
	defer c.call()()
	return c.store.DrainWorker(ctx, p)
}

func (c *counting) ForceOfflineWorker(ctx context.Context, p engine.OfflineWorkerParams) (engine.Deregistered, error) {
	defer c.call()()
	return c.store.ForceOfflineWorker(ctx, p)
}

func (c *counting) GetRun(ctx context.Context, namespace string, id engine.ID) (engine.Run, error) {
	defer c.call()()
	return c.store.GetRun(ctx, namespace, id)
}

func (c *counting) GetRuns(ctx context.Context, namespace string, ids []engine.ID) ([]engine.Run, error) {
	defer c.call()()
	return c.store.GetRuns(ctx, namespace, ids)
}

func (c *counting) GetRunByExternalID(ctx context.Context, namespace, externalID string) (engine.Run, error) {
	defer c.call()()
	return c.store.GetRunByExternalID(ctx, namespace, externalID)
}

func (c *counting) ListRuns(ctx context.Context, f engine.RunFilter, p engine.Page) ([]engine.Run,
	engine.PageInfo, error) {
	defer c.call()()
	return c.store.ListRuns(ctx, f, p)
}

func (c *counting) ListSteps(ctx context.Context, namespace string, run engine.ID, f engine.StepFilter,
	p engine.Page) ([]engine.Step, engine.PageInfo, error) {
	defer c.call()()
	return c.store.ListSteps(ctx, namespace, run, f, p)
}

func (c *counting) GetStep(ctx context.Context, namespace string, step engine.ID) (engine.Step, error) {
	defer c.call()()
	return c.store.GetStep(ctx, namespace, step)
}

func (c *counting) GetHistory(ctx context.Context, p engine.HistoryParams) ([]engine.Step, int64, error) {
	defer c.call()()
	return c.store.GetHistory(ctx, p)
}

func (c *counting) CurrentLease(ctx context.Context, namespace string, run engine.ID) (engine.Lease, error) {
	defer c.call()()
	return c.store.CurrentLease(ctx, namespace, run)
}

func (c *counting) HeldBy(ctx context.Context, workerID string) ([]engine.Held, error) {
	defer c.call()()
	return c.store.HeldBy(ctx, workerID)
}

func (c *counting) ListSignals(ctx context.Context, namespace string, run engine.ID, p engine.Page) ([]engine.Signal,
	engine.PageInfo, error) {
	defer c.call()()
	return c.store.ListSignals(ctx, namespace, run, p)
}

func (c *counting) ListHandlers(ctx context.Context, namespace string, run engine.ID) ([]engine.Run, error) {
	defer c.call()()
	return c.store.ListHandlers(ctx, namespace, run)
}

func (c *counting) ListRetries(ctx context.Context, namespace string, run engine.ID) ([]engine.Run, error) {
	defer c.call()()
	return c.store.ListRetries(ctx, namespace, run)
}

func (c *counting) LatestOfChain(ctx context.Context, namespace string, first engine.ID) (engine.ID, error) {
	defer c.call()()
	return c.store.LatestOfChain(ctx, namespace, first)
}

func (c *counting) ExplainInputs(ctx context.Context, namespace string, run engine.ID) (engine.Circumstances, error) {
	defer c.call()()
	return c.store.ExplainInputs(ctx, namespace, run)
}

func (c *counting) GetSchedule(ctx context.Context, namespace, ref string) (engine.Schedule, error) {
	defer c.call()()
	return c.store.GetSchedule(ctx, namespace, ref)
}

func (c *counting) ListSchedules(ctx context.Context, f engine.ScheduleFilter, p engine.Page) ([]engine.Schedule,
	engine.PageInfo, error) {
	defer c.call()()
	return c.store.ListSchedules(ctx, f, p)
}

func (c *counting) GetNamespace(ctx context.Context, name string) (engine.Namespace, error) {
	defer c.call()()
	return c.store.GetNamespace(ctx, name)
}

func (c *counting) ListNamespaces(ctx context.Context, p engine.Page) ([]engine.Namespace, engine.PageInfo, error) {
	defer c.call()()
	return c.store.ListNamespaces(ctx, p)
}

func (c *counting) ListAuditEvents(ctx context.Context, f engine.AuditFilter, p engine.Page) ([]engine.AuditEvent,
	engine.PageInfo, error) {
	defer c.call()()
	return c.store.ListAuditEvents(ctx, f, p)
}

func (c *counting) GetWorker(ctx context.Context, id string) (engine.Worker, error) {
	defer c.call()()
	return c.store.GetWorker(ctx, id)
}

func (c *counting) ListWorkers(ctx context.Context, f engine.WorkerFilter, p engine.Page) ([]engine.Worker,
	engine.PageInfo, error) {
	defer c.call()()
	return c.store.ListWorkers(ctx, f, p)
}

func (c *counting) GetQueueDepth(ctx context.Context, namespace, queue string,
	now time.Time) ([]engine.QueueDepth, error) {
	defer c.call()()
	return c.store.GetQueueDepth(ctx, namespace, queue, now)
}

func (c *counting) GetStats(ctx context.Context, namespace string, now time.Time) (engine.Stats, error) {
	defer c.call()()
	return c.store.GetStats(ctx, namespace, now)
}

func (c *counting) ListTypes(ctx context.Context, namespace string, p engine.Page) ([]engine.TypeInfo,
	engine.PageInfo, error) {
	defer c.call()()
	return c.store.ListTypes(ctx, namespace, p)
}

func (c *counting) LiveWorkers(ctx context.Context) ([]engine.LiveWorker, error) {
	defer c.call()()
	return c.store.LiveWorkers(ctx)
}

func (c *counting) FreeLost(ctx context.Context, now time.Time) (engine.Freed, error) {
	defer c.call()()
	return c.store.FreeLost(ctx, now)
}

func (c *counting) PauseDiverged(ctx context.Context, p engine.PauseDivergedParams) ([]engine.ID, error) {
	defer c.call()()
	return c.store.PauseDiverged(ctx, p)
}

func (c *counting) TimeoutSteps(ctx context.Context, p engine.TimeoutStepsParams) (engine.TimedOut, error) {
	defer c.call()()
	return c.store.TimeoutSteps(ctx, p)
}

func (c *counting) EndExpired(ctx context.Context, p engine.EndExpiredParams) (engine.Expired, error) {
	defer c.call()()
	return c.store.EndExpired(ctx, p)
}

func (c *counting) DueSchedules(ctx context.Context, now time.Time, limit int) ([]engine.Schedule, time.Time, error) {
	defer c.call()()
	return c.store.DueSchedules(ctx, now, limit)
}

func (c *counting) Prune(ctx context.Context, p engine.PruneParams) (int, error) {
	defer c.call()()
	return c.store.Prune(ctx, p)
}

func (c *counting) PruneRecords(ctx context.Context, p engine.PruneRecordsParams) (bool, error) {
	defer c.call()()
	return c.store.PruneRecords(ctx, p)
}

func (c *counting) Listen(ctx context.Context, notify func(engine.Notification), o engine.Outcomes) error {
	return c.store.Listen(ctx, notify, o)
}

func (c *counting) CreateKey(ctx context.Context, p engine.CreateKeyParams) (engine.APIKey, error) {
	defer c.call()()
	return c.store.CreateKey(ctx, p)
}

func (c *counting) RevokeKey(ctx context.Context, p engine.RevokeKeyParams) (engine.APIKey, error) {
	defer c.call()()
	return c.store.RevokeKey(ctx, p)
}

func (c *counting) CreateSession(ctx context.Context, p engine.CreateSessionParams) (engine.Session, error) {
	defer c.call()()
	return c.store.CreateSession(ctx, p)
}

func (c *counting) GetSession(ctx context.Context, id engine.ID) (engine.Session, error) {
	defer c.call()()
	return c.store.GetSession(ctx, id)
}

func (c *counting) NoteSessionUse(ctx context.Context, uses []engine.KeyUse) error {
	defer c.call()()
	return c.store.NoteSessionUse(ctx, uses)
}

func (c *counting) EndSession(ctx context.Context, p engine.EndSessionParams) error {
	defer c.call()()
	return c.store.EndSession(ctx, p)
}

func (c *counting) Keyring(ctx context.Context) ([]engine.APIKey, error) {
	defer c.call()()
	return c.store.Keyring(ctx)
}

func (c *counting) ListKeys(ctx context.Context, p engine.Page) ([]engine.APIKey, engine.PageInfo, error) {
	defer c.call()()
	return c.store.ListKeys(ctx, p)
}

func (c *counting) NoteKeyUse(ctx context.Context, uses []engine.KeyUse) error {
	defer c.call()()
	return c.store.NoteKeyUse(ctx, uses)
}

func (c *counting) NoteRefusal(ctx context.Context, e engine.AuditEvent) error {
	defer c.call()()
	return c.store.NoteRefusal(ctx, e)
}

func (c *counting) CreateHook(ctx context.Context, p engine.CreateHookParams) (engine.Hook, error) {
	defer c.call()()
	return c.store.CreateHook(ctx, p)
}

func (c *counting) RotateHook(ctx context.Context, p engine.RotateHookParams) (engine.Hook, error) {
	defer c.call()()
	return c.store.RotateHook(ctx, p)
}

func (c *counting) DeleteHook(ctx context.Context, p engine.DeleteHookParams) error {
	defer c.call()()
	return c.store.DeleteHook(ctx, p)
}

func (c *counting) GetHookByID(ctx context.Context, id engine.ID) (engine.Hook, error) {
	defer c.call()()
	return c.store.GetHookByID(ctx, id)
}

func (c *counting) GetHook(ctx context.Context, namespace, name string) (engine.Hook, error) {
	defer c.call()()
	return c.store.GetHook(ctx, namespace, name)
}

func (c *counting) ListHooks(ctx context.Context, namespace string, p engine.Page) ([]engine.Hook, engine.PageInfo,
	error) {
	defer c.call()()
	return c.store.ListHooks(ctx, namespace, p)
}
