package postgres

import (
	"context"
	_ "embed"
	"time"

	"github.com/kagzi/kagzi/backends/internal/storelogic"
	"github.com/kagzi/kagzi/engine"
)

// The verbs that package storelogic holds, each in a transaction of its own.

// verb carries out a verb with an answer.
func verb[P, A any](s *Store, doing string, do func(storelogic.Tx, P) (A, error), p P) (A, error) {
	return write(s, doing, func(t *tx) (A, error) { return do(t, p) })
}

// plain carries out a verb without one.
func plain[P any](s *Store, doing string, do func(storelogic.Tx, P) error, p P) error {
	_, err := write(s, doing, func(t *tx) (none struct{}, err error) { return none, do(t, p) })
	return err
}

// leased carries out a verb about a run that is leased, in the line of that run.
func leased[P, A any](ctx context.Context, s *Store, doing string, l engine.Lease, do func(storelogic.Tx, P) (A, error), p P) (A, error) {
	return inLine(ctx, s, l.RunID, doing, func(t *tx) (A, error) { return do(t, p) })
}

// leasedPlain is leased for a verb without an answer.
func leasedPlain[P any](ctx context.Context, s *Store, doing string, l engine.Lease, do func(storelogic.Tx, P) error, p P) error {
	_, err := inLine(ctx, s, l.RunID, doing, func(t *tx) (none struct{}, err error) { return none, do(t, p) })
	return err
}

// CancelRun is storelogic.CancelRun.
func (s *Store) CancelRun(_ context.Context, p engine.EndRunParams) (engine.RunEnd, error) {
	return verb(s, "cancel a run", storelogic.CancelRun, p)
}

// TerminateRun is storelogic.TerminateRun.
func (s *Store) TerminateRun(_ context.Context, p engine.EndRunParams) (engine.RunEnd, error) {
	return verb(s, "terminate a run", storelogic.TerminateRun, p)
}

// PauseRun is storelogic.PauseRun.
func (s *Store) PauseRun(_ context.Context, p engine.SteerParams) (engine.Run, error) {
	return verb(s, "pause a run", storelogic.PauseRun, p)
}

// ResumeRun is storelogic.ResumeRun.
func (s *Store) ResumeRun(_ context.Context, p engine.SteerParams) (engine.Run, error) {
	return verb(s, "resume a run", storelogic.ResumeRun, p)
}

// PinRun is storelogic.PinRun.
func (s *Store) PinRun(_ context.Context, p engine.PinRunParams) (engine.Run, error) {
	return verb(s, "pin a run", storelogic.PinRun, p)
}

// SignalRun is storelogic.SignalRun.
func (s *Store) SignalRun(_ context.Context, p engine.SignalRunParams) (engine.Signalled, error) {
	return verb(s, "signal a run", storelogic.SignalRun, p)
}

// RetryRun is storelogic.RetryRun.
func (s *Store) RetryRun(_ context.Context, p engine.RetryRunParams) (engine.Started, error) {
	return verb(s, "retry a run", storelogic.RetryRun, p)
}

// OverrideStep is storelogic.OverrideStep.
func (s *Store) OverrideStep(_ context.Context, p engine.OverrideStepParams) (engine.Step, error) {
	return verb(s, "override a step", storelogic.OverrideStep, p)
}

// ImportRuns is storelogic.ImportRuns.
func (s *Store) ImportRuns(_ context.Context, p engine.ImportRunsParams) (engine.Started, error) {
	return verb(s, "import runs", storelogic.ImportRuns, p)
}

// BeginStep is storelogic.BeginStep.
func (s *Store) BeginStep(ctx context.Context, p engine.BeginStepParams) (engine.Begun, error) {
	return leased(ctx, s, "begin a step", p.Lease, storelogic.BeginStep, p)
}

// FailStep is storelogic.FailStep.
func (s *Store) FailStep(ctx context.Context, p engine.FailStepParams) (engine.Verdict, error) {
	return leased(ctx, s, "fail a step", p.Lease, storelogic.FailStep, p)
}

// Sleep is storelogic.Sleep.
func (s *Store) Sleep(ctx context.Context, p engine.SleepParams) error {
	return leasedPlain(ctx, s, "set a timer", p.Lease, storelogic.Sleep, p)
}

// AwaitSignal is storelogic.AwaitSignal.
func (s *Store) AwaitSignal(ctx context.Context, p engine.AwaitSignalParams) (engine.AwaitedSignal, error) {
	return leased(ctx, s, "wait for a signal", p.Lease, storelogic.AwaitSignal, p)
}

// StartChild is storelogic.StartChild.
func (s *Store) StartChild(ctx context.Context, p engine.StartChildParams) (engine.Step, error) {
	return leased(ctx, s, "start a child", p.Lease, storelogic.StartChild, p)
}

// AwaitChildren is storelogic.AwaitChildren.
func (s *Store) AwaitChildren(ctx context.Context, p engine.AwaitChildrenParams) ([]engine.Step, error) {
	return leased(ctx, s, "wait for children", p.Lease, storelogic.AwaitChildren, p)
}

// SetNote is storelogic.SetNote.
func (s *Store) SetRunNote(ctx context.Context, p engine.SetNoteParams) error {
	return leasedPlain(ctx, s, "note a run's progress", p.Lease, storelogic.SetNote, p)
}

// FailRun is storelogic.FailRun.
func (s *Store) FailRun(ctx context.Context, p engine.FailRunParams) (engine.RunVerdict, error) {
	return leased(ctx, s, "fail a run", p.Lease, storelogic.FailRun, p)
}

// Release is storelogic.Release.
func (s *Store) Release(ctx context.Context, p engine.ReleaseParams) error {
	return leasedPlain(ctx, s, "release a run", p.Lease, storelogic.Release, p)
}

// CreateSchedule is storelogic.CreateSchedule.
func (s *Store) CreateSchedule(_ context.Context, p engine.ScheduleParams) (engine.Schedule, error) {
	return verb(s, "create a schedule", storelogic.CreateSchedule, p)
}

// UpdateSchedule is storelogic.UpdateSchedule.
func (s *Store) UpdateSchedule(_ context.Context, p engine.ScheduleParams) (engine.Schedule, error) {
	return verb(s, "update a schedule", storelogic.UpdateSchedule, p)
}

// DeleteSchedule is storelogic.DeleteSchedule.
func (s *Store) DeleteSchedule(_ context.Context, p engine.DeleteScheduleParams) error {
	return plain(s, "delete a schedule", storelogic.DeleteSchedule, p)
}

// FireSchedule is storelogic.FireSchedule.
func (s *Store) FireSchedule(_ context.Context, p engine.FireScheduleParams) (engine.Fired, error) {
	return verb(s, "fire a schedule", storelogic.FireSchedule, p)
}

// TriggerSchedule is storelogic.TriggerSchedule.
func (s *Store) TriggerSchedule(_ context.Context, p engine.TriggerScheduleParams) (engine.Started, error) {
	return verb(s, "trigger a schedule", storelogic.TriggerSchedule, p)
}

// CreateNamespace is storelogic.CreateNamespace.
func (s *Store) CreateNamespace(_ context.Context, p engine.NamespaceParams) (engine.Namespace, error) {
	return verb(s, "create a namespace", storelogic.CreateNamespace, p)
}

//go:embed sql/lock_namespace.sql
var lockNamespaceSQL string

// UpdateNamespace is storelogic.UpdateNamespace, for one at a time.
func (s *Store) UpdateNamespace(_ context.Context, p engine.NamespaceParams) (engine.Namespace, error) {
	return write(s, "update a namespace", func(t *tx) (engine.Namespace, error) {
		if err := t.queue(lockNamespaceSQL, args{"namespace": p.Namespace.Name}); err != nil {
			return engine.Namespace{}, err
		}
		return storelogic.UpdateNamespace(t, p)
	})
}

// FreeLost is storelogic.FreeLost.
func (s *Store) FreeLost(_ context.Context, now time.Time) (engine.Freed, error) {
	return write(s, "free the runs of lost workers", func(t *tx) (engine.Freed, error) { return storelogic.FreeLost(t, now) })
}

// TimeoutSteps is storelogic.TimeoutSteps.
func (s *Store) TimeoutSteps(_ context.Context, p engine.TimeoutStepsParams) (engine.TimedOut, error) {
	return write(s, "time steps out", func(t *tx) (engine.TimedOut, error) { return storelogic.TimeoutSteps(t, p) })
}

// EndExpired is storelogic.EndExpired.
func (s *Store) EndExpired(_ context.Context, p engine.EndExpiredParams) (engine.Expired, error) {
	return write(s, "end expired runs", func(t *tx) (engine.Expired, error) { return storelogic.EndExpired(t, p) })
}
