package storelogic

import (
	"context"
	"time"

	"github.com/kagzi/kagzi/engine"
)

// Operations implements the methods of engine.Store that are the same for every backend: each opens
// a transaction and runs the function of the same name in it. A Store embeds Operations. It
// overrides methods with a statement of their own for the common case (StartRuns, Claim,
// CompleteStep, CompleteRun, Heartbeat), and operations that need a lock before their transaction.
type Operations struct {
	transact func(ctx context.Context, c Call, do func(Tx) (any, error)) (any, error)
}

// NewOperations returns operations that run in the transactions of a store. transact calls do,
// commits what it wrote and returns its answer; or it returns an error, and nothing has changed. It
// may call do again with a new Tx. It may return before do does if the caller has given up.
func NewOperations(transact func(ctx context.Context, c Call, do func(Tx) (any, error)) (any, error)) Operations {
	return Operations{transact}
}

// Call names the operation of a transaction, with what decides how the transaction is carried out.
type Call struct {
	Name       string         // of the method of engine.Store
	Doing      string         // the same in words, for errors: "cancel a run"
	Params     any            // of the method, without the context
	Lease      *engine.Lease  // the caller's lease; nil: not a worker's write
	Ticket     *engine.Ticket // nil: no place in a sequence
	Size       int            // approximate bytes of payloads that it writes
	Alone      bool           // it shares its commit with no other call
	StartsRuns bool           // it adds runs for a client, so it is refused when the disk is nearly full
}

// operate runs an operation that returns a value.
func operate[P, V any](ctx context.Context, o Operations, c Call, do func(Tx, P) (V, error), p P) (V, error) {
	c.Params = p
	answer, err := o.transact(ctx, c, func(tx Tx) (any, error) { return do(tx, p) })
	if err != nil {
		var none V
		return none, err
	}
	return answer.(V), nil
}

// carryOut is operate for an operation that returns only an error. Call.Answer is struct{} then.
func carryOut[P any](ctx context.Context, o Operations, c Call, do func(Tx, P) error, p P) error {
	c.Params = p
	_, err := o.transact(ctx, c, func(tx Tx) (any, error) { return struct{}{}, do(tx, p) })
	return err
}

// sizeOf returns the size of a payload that may be nil.
func sizeOf(p *engine.Payload) int {
	if p == nil {
		return 0
	}
	return p.Size()
}

// CancelRun ends a run as CANCELLED or, with a Grace, asks its code to stop.
func (o Operations) CancelRun(ctx context.Context, p engine.EndRunParams) (engine.RunEnd, error) {
	return operate(ctx, o, Call{Name: "CancelRun", Doing: "cancel a run"}, CancelRun, p)
}

// TerminateRun ends a run as TERMINATED, even if a worker holds it.
func (o Operations) TerminateRun(ctx context.Context, p engine.EndRunParams) (engine.RunEnd, error) {
	return operate(ctx, o, Call{Name: "TerminateRun", Doing: "terminate a run"}, TerminateRun, p)
}

// PauseRun keeps a run from being claimed.
func (o Operations) PauseRun(ctx context.Context, p engine.PauseRunParams) (engine.Run, error) {
	return operate(ctx, o, Call{Name: "PauseRun", Doing: "pause a run"}, PauseRun, p)
}

// ResumeRun makes a paused run claimable again.
func (o Operations) ResumeRun(ctx context.Context, p engine.ResumeRunParams) (engine.Run, error) {
	return operate(ctx, o, Call{Name: "ResumeRun", Doing: "resume a run"}, ResumeRun, p)
}

// PinRun exempts a run from retention, or ends the exemption.
func (o Operations) PinRun(ctx context.Context, p engine.PinRunParams) (engine.Run, error) {
	return operate(ctx, o, Call{Name: "PinRun", Doing: "pin a run"}, PinRun, p)
}

// SignalRun stores a signal for a run and wakes the run if it waits for it.
func (o Operations) SignalRun(ctx context.Context, p engine.SignalRunParams) (engine.Signalled, error) {
	return operate(ctx, o, Call{Name: "SignalRun", Doing: "signal a run", Size: p.Payload.Size()}, SignalRun, p)
}

// RetryRun starts a new run from one that has ended.
func (o Operations) RetryRun(ctx context.Context, p engine.RetryRunParams) (engine.Started, error) {
	return operate(ctx, o, Call{Name: "RetryRun", Doing: "retry a run", Size: sizeOf(p.Input), StartsRuns: true},
		RetryRun, p)
}

// OverrideStep records a result for a step, in place of its own.
func (o Operations) OverrideStep(ctx context.Context, p engine.OverrideStepParams) (engine.Step, error) {
	return operate(ctx, o, Call{Name: "OverrideStep", Doing: "override a step", Size: sizeOf(p.Output)},
		OverrideStep, p)
}

// ImportRuns inserts exported runs. It does not share its commit, because calls with small payloads
// would wait for its large ones.
func (o Operations) ImportRuns(ctx context.Context, p engine.ImportRunsParams) (engine.Started, error) {
	return operate(ctx, o, Call{Name: "ImportRuns", Doing: "import runs", Alone: true, StartsRuns: true}, ImportRuns, p)
}

// BeginStep returns what is recorded of a step, or says that its code must run.
func (o Operations) BeginStep(ctx context.Context, p engine.BeginStepParams) (engine.Begun, error) {
	return operate(ctx, o, Call{Name: "BeginStep", Doing: "begin a step", Lease: &p.Lease, Ticket: p.Ticket,
		Size: p.Input.Size()}, BeginStep, p)
}

// FailStep records the failure of a step and decides whether it is tried again.
func (o Operations) FailStep(ctx context.Context, p engine.FailStepParams) (engine.Verdict, error) {
	return operate(ctx, o, Call{Name: "FailStep", Doing: "fail a step", Lease: &p.Lease, Ticket: p.Ticket,
		Size: p.Failure.Size()}, FailStep, p)
}

// Sleep sets a timer and parks the run until it fires.
func (o Operations) Sleep(ctx context.Context, p engine.SleepParams) (engine.Step, error) {
	return operate(ctx, o, Call{Name: "Sleep", Doing: "set a timer", Lease: &p.Lease, Ticket: p.Ticket}, Sleep, p)
}

// AwaitSignal consumes a signal, or parks the run until one comes.
func (o Operations) AwaitSignal(ctx context.Context, p engine.AwaitSignalParams) (engine.AwaitedSignal, error) {
	return operate(ctx, o, Call{Name: "AwaitSignal", Doing: "wait for a signal", Lease: &p.Lease, Ticket: p.Ticket},
		AwaitSignal, p)
}

// StartChild records a step that starts a child run, and starts it.
func (o Operations) StartChild(ctx context.Context, p engine.StartChildParams) (engine.Step, error) {
	return operate(ctx, o, Call{Name: "StartChild", Doing: "start a child", Lease: &p.Lease, Ticket: p.Ticket,
		Size: p.Child.Input.Size()}, StartChild, p)
}

// AwaitChildren returns the steps of children that have ended, or parks the run until one does.
func (o Operations) AwaitChildren(ctx context.Context, p engine.AwaitChildrenParams) ([]engine.Step, error) {
	return operate(ctx, o, Call{Name: "AwaitChildren", Doing: "wait for children", Lease: &p.Lease, Ticket: p.Ticket},
		AwaitChildren, p)
}

// SetRunNote sets the run's note, which lists show.
func (o Operations) SetRunNote(ctx context.Context, p engine.SetNoteParams) error {
	return carryOut(ctx, o, Call{Name: "SetRunNote", Doing: "note a run's progress", Lease: &p.Lease, Ticket: p.Ticket},
		SetRunNote, p)
}

// FailRun ends a run as failed, or schedules its next attempt.
func (o Operations) FailRun(ctx context.Context, p engine.FailRunParams) (engine.RunVerdict, error) {
	return operate(ctx, o, Call{Name: "FailRun", Doing: "fail a run", Lease: &p.Lease, Ticket: p.Ticket,
		Size: p.Failure.Size()}, FailRun, p)
}

// Release gives a lease back without a result.
func (o Operations) Release(ctx context.Context, p engine.ReleaseParams) error {
	return carryOut(ctx, o, Call{Name: "Release", Doing: "release a run", Lease: &p.Lease, Ticket: p.Ticket},
		Release, p)
}

// CreateSchedule creates a schedule.
func (o Operations) CreateSchedule(ctx context.Context, p engine.ScheduleParams) (engine.Schedule, error) {
	return operate(ctx, o, Call{Name: "CreateSchedule", Doing: "create a schedule", Size: p.Schedule.Input.Size()},
		CreateSchedule, p)
}

// UpdateSchedule replaces the settings of a schedule.
func (o Operations) UpdateSchedule(ctx context.Context, p engine.ScheduleParams) (engine.Schedule, error) {
	return operate(ctx, o, Call{Name: "UpdateSchedule", Doing: "update a schedule", Size: p.Schedule.Input.Size()},
		UpdateSchedule, p)
}

// DeleteSchedule deletes a schedule; its runs stay.
func (o Operations) DeleteSchedule(ctx context.Context, p engine.DeleteScheduleParams) error {
	return carryOut(ctx, o, Call{Name: "DeleteSchedule", Doing: "delete a schedule"}, DeleteSchedule, p)
}

// FireSchedule starts the runs of ticks that are due.
func (o Operations) FireSchedule(ctx context.Context, p engine.FireScheduleParams) (engine.Fired, error) {
	return operate(ctx, o, Call{Name: "FireSchedule", Doing: "fire a schedule", StartsRuns: true}, FireSchedule, p)
}

// BackfillSchedule starts the runs of past ticks.
func (o Operations) BackfillSchedule(ctx context.Context, p engine.BackfillScheduleParams) ([]engine.Started, error) {
	return operate(ctx, o, Call{Name: "BackfillSchedule", Doing: "backfill a schedule", StartsRuns: true},
		BackfillSchedule, p)
}

// TriggerSchedule starts one run of a schedule outside its ticks.
func (o Operations) TriggerSchedule(ctx context.Context, p engine.TriggerScheduleParams) (engine.Started, error) {
	return operate(ctx, o, Call{Name: "TriggerSchedule", Doing: "trigger a schedule", StartsRuns: true},
		TriggerSchedule, p)
}

// CreateNamespace creates a namespace.
func (o Operations) CreateNamespace(ctx context.Context, p engine.NamespaceParams) (engine.Namespace, error) {
	return operate(ctx, o, Call{Name: "CreateNamespace", Doing: "create a namespace"}, CreateNamespace, p)
}

// UpdateNamespace replaces the settings of a namespace.
func (o Operations) UpdateNamespace(ctx context.Context, p engine.NamespaceParams) (engine.Namespace, error) {
	return operate(ctx, o, Call{Name: "UpdateNamespace", Doing: "update a namespace"}, UpdateNamespace, p)
}

// DeleteNamespace deletes an empty namespace.
func (o Operations) DeleteNamespace(ctx context.Context, p engine.DeleteNamespaceParams) error {
	return carryOut(ctx, o, Call{Name: "DeleteNamespace", Doing: "delete a namespace", Alone: true}, DeleteNamespace, p)
}

// EmptyNamespace deletes part of what a namespace holds.
func (o Operations) EmptyNamespace(ctx context.Context, p engine.EmptyNamespaceParams) (engine.Emptied, error) {
	return operate(ctx, o, Call{Name: "EmptyNamespace", Doing: "empty a namespace", Alone: true}, EmptyNamespace, p)
}

// CreateKey creates an API key.
func (o Operations) CreateKey(ctx context.Context, p engine.CreateKeyParams) (engine.APIKey, error) {
	return operate(ctx, o, Call{Name: "CreateKey", Doing: "create a key"}, CreateKey, p)
}

// RevokeKey revokes an API key.
func (o Operations) RevokeKey(ctx context.Context, p engine.RevokeKeyParams) (engine.APIKey, error) {
	return operate(ctx, o, Call{Name: "RevokeKey", Doing: "revoke a key"}, RevokeKey, p)
}

// CreateSession makes a session of an API key.
func (o Operations) CreateSession(ctx context.Context, p engine.CreateSessionParams) (engine.Session, error) {
	return operate(ctx, o, Call{Name: "CreateSession", Doing: "create a session"}, CreateSession, p)
}

// NoteSessionUse records that sessions were used.
func (o Operations) NoteSessionUse(ctx context.Context, uses []engine.KeyUse) error {
	return carryOut(ctx, o, Call{Name: "NoteSessionUse", Doing: "record the use of sessions"}, NoteSessionUse, uses)
}

// EndSession deletes a session.
func (o Operations) EndSession(ctx context.Context, p engine.EndSessionParams) error {
	return carryOut(ctx, o, Call{Name: "EndSession", Doing: "end a session"}, EndSession, p)
}

// CreateHook creates a hook.
func (o Operations) CreateHook(ctx context.Context, p engine.CreateHookParams) (engine.Hook, error) {
	return operate(ctx, o, Call{Name: "CreateHook", Doing: "create a hook"}, CreateHook, p)
}

// RotateHook gives a hook a new secret.
func (o Operations) RotateHook(ctx context.Context, p engine.RotateHookParams) (engine.Hook, error) {
	return operate(ctx, o, Call{Name: "RotateHook", Doing: "rotate the secret of a hook"}, RotateHook, p)
}

// DeleteHook deletes a hook; its runs stay.
func (o Operations) DeleteHook(ctx context.Context, p engine.DeleteHookParams) error {
	return carryOut(ctx, o, Call{Name: "DeleteHook", Doing: "delete a hook"}, DeleteHook, p)
}

// FreeLost frees the leases that workers left behind when they went offline.
func (o Operations) FreeLost(ctx context.Context, now time.Time) (engine.Freed, error) {
	return operate(ctx, o, Call{Name: "FreeLost", Doing: "free the runs of lost workers"}, FreeLost, now)
}

// TimeoutSteps fails attempts of steps that ran longer than their timeout.
func (o Operations) TimeoutSteps(ctx context.Context, p engine.TimeoutStepsParams) (engine.TimedOut, error) {
	return operate(ctx, o, Call{Name: "TimeoutSteps", Doing: "time steps out"}, TimeoutSteps, p)
}

// PauseDiverged pauses runs that no build in service can continue.
func (o Operations) PauseDiverged(ctx context.Context, p engine.PauseDivergedParams) ([]engine.ID, error) {
	return operate(ctx, o, Call{Name: "PauseDiverged", Doing: "pause diverged runs"}, PauseDiverged, p)
}

// EndExpired ends runs whose deadline has passed.
func (o Operations) EndExpired(ctx context.Context, p engine.EndExpiredParams) (engine.Expired, error) {
	return operate(ctx, o, Call{Name: "EndExpired", Doing: "end expired runs"}, EndExpired, p)
}
