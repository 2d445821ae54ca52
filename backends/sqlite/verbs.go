package sqlite

import (
	"context"
	"time"

	"github.com/kagzi/kagzi/backends/internal/storelogic"
	"github.com/kagzi/kagzi/engine"
)

// The verbs of this file are package storelogic's: what they do here is to open the transaction.

// verb carries out one of them. size is the bytes of payloads that it writes, about.
func verb[P, V any](ctx context.Context, s *Store, name string, size int, do func(storelogic.Tx, P) (V, error), p P) (V, error) {
	return write(ctx, s, name, size, func(t *tx) (V, error) { return do(t, p) })
}

// silent makes a verb that answers nothing one that answers nothing of interest.
func silent[P any](do func(storelogic.Tx, P) error) func(storelogic.Tx, P) (struct{}, error) {
	return func(t storelogic.Tx, p P) (none struct{}, err error) { return none, do(t, p) }
}

// newRun is verb for those by which new runs come from outside, which a nearly full disk has no room for.
func newRun[P, V any](ctx context.Context, s *Store, name string, size int, do func(storelogic.Tx, P) (V, error), p P) (V, error) {
	if s.lacksRoom() {
		var none V
		return none, errExhausted
	}
	return verb(ctx, s, name, size, do, p)
}

// CancelRun ends the run, or tells its code.
func (s *Store) CancelRun(ctx context.Context, p engine.EndRunParams) (engine.RunEnd, error) {
	return verb(ctx, s, "CancelRun", 0, storelogic.CancelRun, p)
}

// TerminateRun ends the run.
func (s *Store) TerminateRun(ctx context.Context, p engine.EndRunParams) (engine.RunEnd, error) {
	return verb(ctx, s, "TerminateRun", 0, storelogic.TerminateRun, p)
}

// PauseRun keeps the run from the workers.
func (s *Store) PauseRun(ctx context.Context, p engine.SteerParams) (engine.Run, error) {
	return verb(ctx, s, "PauseRun", 0, storelogic.PauseRun, p)
}

// ResumeRun gives a paused run back.
func (s *Store) ResumeRun(ctx context.Context, p engine.SteerParams) (engine.Run, error) {
	return verb(ctx, s, "ResumeRun", 0, storelogic.ResumeRun, p)
}

// PinRun keeps a run from Prune.
func (s *Store) PinRun(ctx context.Context, p engine.PinRunParams) (engine.Run, error) {
	return verb(ctx, s, "PinRun", 0, storelogic.PinRun, p)
}

// SignalRun keeps a signal for the run.
func (s *Store) SignalRun(ctx context.Context, p engine.SignalRunParams) (engine.Signalled, error) {
	return verb(ctx, s, "SignalRun", p.Payload.Size(), storelogic.SignalRun, p)
}

// RetryRun makes a new run out of one that has ended.
func (s *Store) RetryRun(ctx context.Context, p engine.RetryRunParams) (engine.Started, error) {
	size := 0
	if p.Input != nil {
		size = p.Input.Size()
	}
	return newRun(ctx, s, "RetryRun", size, storelogic.RetryRun, p)
}

// OverrideStep records a result for a step.
func (s *Store) OverrideStep(ctx context.Context, p engine.OverrideStepParams) (engine.Step, error) {
	size := 0
	if p.Output != nil {
		size = p.Output.Size()
	}
	return verb(ctx, s, "OverrideStep", size, storelogic.OverrideStep, p)
}

// ImportRuns makes runs as they are given. It shares its commit with nobody, not even calls of no size, which would wait for all of it.
func (s *Store) ImportRuns(ctx context.Context, p engine.ImportRunsParams) (engine.Started, error) {
	return newRun(ctx, s, "ImportRuns", maxGroupBytes+1, storelogic.ImportRuns, p)
}

// BeginStep says what is known about the step, or that its code is to run.
func (s *Store) BeginStep(ctx context.Context, p engine.BeginStepParams) (engine.Begun, error) {
	return verb(ctx, s, "BeginStep", p.Input.Size(), storelogic.BeginStep, p)
}

// FailStep records the failure and what follows from it.
func (s *Store) FailStep(ctx context.Context, p engine.FailStepParams) (engine.Verdict, error) {
	return verb(ctx, s, "FailStep", p.Failure.Size(), storelogic.FailStep, p)
}

// Sleep sets the timer and parks the run.
func (s *Store) Sleep(ctx context.Context, p engine.SleepParams) error {
	_, err := verb(ctx, s, "Sleep", 0, silent(storelogic.Sleep), p)
	return err
}

// AwaitSignal has the step consume a signal, or wait for one.
func (s *Store) AwaitSignal(ctx context.Context, p engine.AwaitSignalParams) (engine.AwaitedSignal, error) {
	return verb(ctx, s, "AwaitSignal", 0, storelogic.AwaitSignal, p)
}

// StartChild records the step and makes the run.
func (s *Store) StartChild(ctx context.Context, p engine.StartChildParams) (engine.Step, error) {
	return verb(ctx, s, "StartChild", p.Child.Input.Size(), storelogic.StartChild, p)
}

// AwaitChildren answers the steps of children that have ended, or parks the run.
func (s *Store) AwaitChildren(ctx context.Context, p engine.AwaitChildrenParams) ([]engine.Step, error) {
	return verb(ctx, s, "AwaitChildren", 0, storelogic.AwaitChildren, p)
}

// SetNote writes the run's own line.
func (s *Store) SetRunNote(ctx context.Context, p engine.SetNoteParams) error {
	_, err := verb(ctx, s, "SetNote", 0, silent(storelogic.SetNote), p)
	return err
}

// FailRun ends the run or has it tried again.
func (s *Store) FailRun(ctx context.Context, p engine.FailRunParams) (engine.RunVerdict, error) {
	return verb(ctx, s, "FailRun", p.Failure.Size(), storelogic.FailRun, p)
}

// Release hands the run back.
func (s *Store) Release(ctx context.Context, p engine.ReleaseParams) error {
	_, err := verb(ctx, s, "Release", 0, silent(storelogic.Release), p)
	return err
}

// CreateSchedule makes a schedule.
func (s *Store) CreateSchedule(ctx context.Context, p engine.ScheduleParams) (engine.Schedule, error) {
	return verb(ctx, s, "CreateSchedule", p.Schedule.Input.Size(), storelogic.CreateSchedule, p)
}

// UpdateSchedule replaces what a person decides about a schedule.
func (s *Store) UpdateSchedule(ctx context.Context, p engine.ScheduleParams) (engine.Schedule, error) {
	return verb(ctx, s, "UpdateSchedule", p.Schedule.Input.Size(), storelogic.UpdateSchedule, p)
}

// DeleteSchedule deletes a schedule; its runs stay.
func (s *Store) DeleteSchedule(ctx context.Context, p engine.DeleteScheduleParams) error {
	_, err := verb(ctx, s, "DeleteSchedule", 0, silent(storelogic.DeleteSchedule), p)
	return err
}

// FireSchedule starts the runs of ticks.
func (s *Store) FireSchedule(ctx context.Context, p engine.FireScheduleParams) (engine.Fired, error) {
	return newRun(ctx, s, "FireSchedule", 0, storelogic.FireSchedule, p)
}

// TriggerSchedule starts one run beside the ticks.
func (s *Store) TriggerSchedule(ctx context.Context, p engine.TriggerScheduleParams) (engine.Started, error) {
	return newRun(ctx, s, "TriggerSchedule", 0, storelogic.TriggerSchedule, p)
}

// CreateNamespace makes a namespace.
func (s *Store) CreateNamespace(ctx context.Context, p engine.NamespaceParams) (engine.Namespace, error) {
	return verb(ctx, s, "CreateNamespace", 0, storelogic.CreateNamespace, p)
}

// UpdateNamespace replaces what a person decides about a namespace.
func (s *Store) UpdateNamespace(ctx context.Context, p engine.NamespaceParams) (engine.Namespace, error) {
	return verb(ctx, s, "UpdateNamespace", 0, storelogic.UpdateNamespace, p)
}

// FreeLost comes for the leases that OfflineWorker left.
func (s *Store) FreeLost(ctx context.Context, now time.Time) (engine.Freed, error) {
	return verb(ctx, s, "FreeLost", 0, storelogic.FreeLost, now)
}

// TimeoutSteps fails attempts that ran too long.
func (s *Store) TimeoutSteps(ctx context.Context, p engine.TimeoutStepsParams) (engine.TimedOut, error) {
	return verb(ctx, s, "TimeoutSteps", 0, storelogic.TimeoutSteps, p)
}

// EndExpired ends runs whose time is over.
func (s *Store) EndExpired(ctx context.Context, p engine.EndExpiredParams) (engine.Expired, error) {
	return verb(ctx, s, "EndExpired", 0, storelogic.EndExpired, p)
}
