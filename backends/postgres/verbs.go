package postgres

import (
	"context"
	_ "embed"
	"time"

	"github.com/kagzi/kagzi/engine"
	"github.com/kagzi/kagzi/engine/ledger"
)

// The verbs that package ledger holds, each in a transaction of its own.

// verb carries out a verb with an answer.
func verb[P, A any](s *Store, doing string, do func(ledger.Tx, P) (A, error), p P) (A, error) {
	return write(s, doing, func(t *tx) (A, error) { return do(t, p) })
}

// plain carries out a verb without one.
func plain[P any](s *Store, doing string, do func(ledger.Tx, P) error, p P) error {
	_, err := write(s, doing, func(t *tx) (none struct{}, err error) { return none, do(t, p) })
	return err
}

// leased carries out a verb about a run that is leased, in the line of that run.
func leased[P, A any](ctx context.Context, s *Store, doing string, l engine.Lease, do func(ledger.Tx, P) (A, error), p P) (A, error) {
	return inLine(ctx, s, l.RunID, doing, func(t *tx) (A, error) { return do(t, p) })
}

// leasedPlain is leased for a verb without an answer.
func leasedPlain[P any](ctx context.Context, s *Store, doing string, l engine.Lease, do func(ledger.Tx, P) error, p P) error {
	_, err := inLine(ctx, s, l.RunID, doing, func(t *tx) (none struct{}, err error) { return none, do(t, p) })
	return err
}

// CancelRun is ledger.CancelRun.
func (s *Store) CancelRun(_ context.Context, p engine.EndRunParams) (engine.RunEnd, error) {
	return verb(s, "cancel a run", ledger.CancelRun, p)
}

// TerminateRun is ledger.TerminateRun.
func (s *Store) TerminateRun(_ context.Context, p engine.EndRunParams) (engine.RunEnd, error) {
	return verb(s, "terminate a run", ledger.TerminateRun, p)
}

// PauseRun is ledger.PauseRun.
func (s *Store) PauseRun(_ context.Context, p engine.SteerParams) (engine.Run, error) {
	return verb(s, "pause a run", ledger.PauseRun, p)
}

// ResumeRun is ledger.ResumeRun.
func (s *Store) ResumeRun(_ context.Context, p engine.SteerParams) (engine.Run, error) {
	return verb(s, "resume a run", ledger.ResumeRun, p)
}

// PinRun is ledger.PinRun.
func (s *Store) PinRun(_ context.Context, p engine.PinRunParams) (engine.Run, error) {
	return verb(s, "pin a run", ledger.PinRun, p)
}

// SignalRun is ledger.SignalRun.
func (s *Store) SignalRun(_ context.Context, p engine.SignalRunParams) (engine.Signalled, error) {
	return verb(s, "signal a run", ledger.SignalRun, p)
}

// RetryRun is ledger.RetryRun.
func (s *Store) RetryRun(_ context.Context, p engine.RetryRunParams) (engine.Started, error) {
	return verb(s, "retry a run", ledger.RetryRun, p)
}

// OverrideStep is ledger.OverrideStep.
func (s *Store) OverrideStep(_ context.Context, p engine.OverrideStepParams) (engine.Step, error) {
	return verb(s, "override a step", ledger.OverrideStep, p)
}

// ImportRuns is ledger.ImportRuns.
func (s *Store) ImportRuns(_ context.Context, p engine.ImportRunsParams) (engine.Started, error) {
	return verb(s, "import runs", ledger.ImportRuns, p)
}

// BeginStep is ledger.BeginStep.
func (s *Store) BeginStep(ctx context.Context, p engine.BeginStepParams) (engine.Begun, error) {
	return leased(ctx, s, "begin a step", p.Lease, ledger.BeginStep, p)
}

// FailStep is ledger.FailStep.
func (s *Store) FailStep(ctx context.Context, p engine.FailStepParams) (engine.Verdict, error) {
	return leased(ctx, s, "fail a step", p.Lease, ledger.FailStep, p)
}

// Sleep is ledger.Sleep.
func (s *Store) Sleep(ctx context.Context, p engine.SleepParams) error {
	return leasedPlain(ctx, s, "set a timer", p.Lease, ledger.Sleep, p)
}

// AwaitSignal is ledger.AwaitSignal.
func (s *Store) AwaitSignal(ctx context.Context, p engine.AwaitSignalParams) (engine.AwaitedSignal, error) {
	return leased(ctx, s, "wait for a signal", p.Lease, ledger.AwaitSignal, p)
}

// StartChild is ledger.StartChild.
func (s *Store) StartChild(ctx context.Context, p engine.StartChildParams) (engine.Step, error) {
	return leased(ctx, s, "start a child", p.Lease, ledger.StartChild, p)
}

// AwaitChildren is ledger.AwaitChildren.
func (s *Store) AwaitChildren(ctx context.Context, p engine.AwaitChildrenParams) ([]engine.Step, error) {
	return leased(ctx, s, "wait for children", p.Lease, ledger.AwaitChildren, p)
}

// SetNote is ledger.SetNote.
func (s *Store) SetNote(ctx context.Context, p engine.SetNoteParams) error {
	return leasedPlain(ctx, s, "note a run's progress", p.Lease, ledger.SetNote, p)
}

// FailRun is ledger.FailRun.
func (s *Store) FailRun(ctx context.Context, p engine.FailRunParams) (engine.RunVerdict, error) {
	return leased(ctx, s, "fail a run", p.Lease, ledger.FailRun, p)
}

// Release is ledger.Release.
func (s *Store) Release(ctx context.Context, p engine.ReleaseParams) error {
	return leasedPlain(ctx, s, "release a run", p.Lease, ledger.Release, p)
}

// CreateSchedule is ledger.CreateSchedule.
func (s *Store) CreateSchedule(_ context.Context, p engine.ScheduleParams) (engine.Schedule, error) {
	return verb(s, "create a schedule", ledger.CreateSchedule, p)
}

// UpdateSchedule is ledger.UpdateSchedule.
func (s *Store) UpdateSchedule(_ context.Context, p engine.ScheduleParams) (engine.Schedule, error) {
	return verb(s, "update a schedule", ledger.UpdateSchedule, p)
}

// DeleteSchedule is ledger.DeleteSchedule.
func (s *Store) DeleteSchedule(_ context.Context, p engine.DeleteScheduleParams) error {
	return plain(s, "delete a schedule", ledger.DeleteSchedule, p)
}

// FireSchedule is ledger.FireSchedule.
func (s *Store) FireSchedule(_ context.Context, p engine.FireScheduleParams) (engine.Fired, error) {
	return verb(s, "fire a schedule", ledger.FireSchedule, p)
}

// TriggerSchedule is ledger.TriggerSchedule.
func (s *Store) TriggerSchedule(_ context.Context, p engine.TriggerScheduleParams) (engine.Started, error) {
	return verb(s, "trigger a schedule", ledger.TriggerSchedule, p)
}

// CreateNamespace is ledger.CreateNamespace.
func (s *Store) CreateNamespace(_ context.Context, p engine.NamespaceParams) (engine.Namespace, error) {
	return verb(s, "create a namespace", ledger.CreateNamespace, p)
}

//go:embed sql/lock_namespace.sql
var lockNamespaceSQL string

// UpdateNamespace is ledger.UpdateNamespace, for one at a time.
func (s *Store) UpdateNamespace(_ context.Context, p engine.NamespaceParams) (engine.Namespace, error) {
	return write(s, "update a namespace", func(t *tx) (engine.Namespace, error) {
		if err := t.queue(lockNamespaceSQL, args{"namespace": p.Namespace.Name}); err != nil {
			return engine.Namespace{}, err
		}
		return ledger.UpdateNamespace(t, p)
	})
}

// FreeLost is ledger.FreeLost.
func (s *Store) FreeLost(_ context.Context, now time.Time) (engine.Freed, error) {
	return write(s, "free the runs of lost workers", func(t *tx) (engine.Freed, error) { return ledger.FreeLost(t, now) })
}

// TimeoutSteps is ledger.TimeoutSteps.
func (s *Store) TimeoutSteps(_ context.Context, p engine.TimeoutStepsParams) (engine.TimedOut, error) {
	return write(s, "time steps out", func(t *tx) (engine.TimedOut, error) { return ledger.TimeoutSteps(t, p) })
}

// EndExpired is ledger.EndExpired.
func (s *Store) EndExpired(_ context.Context, p engine.EndExpiredParams) (engine.Expired, error) {
	return write(s, "end expired runs", func(t *tx) (engine.Expired, error) { return ledger.EndExpired(t, p) })
}
