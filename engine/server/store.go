package server

import (
	"context"

	"github.com/kagzi/kagzi/engine"
	"github.com/kagzi/kagzi/engine/server/internal/auth"
	"github.com/kagzi/kagzi/engine/server/internal/bundle"
	"github.com/kagzi/kagzi/engine/server/internal/metrics"
	"github.com/kagzi/kagzi/engine/server/internal/session"
	"github.com/kagzi/kagzi/engine/server/internal/watch"
)

// Store is the part of a store that a Server needs: for its parts, and for its own handlers. Every
// engine.Store implements it.
type Store interface {
	auth.Store
	session.Store
	watch.Store
	metrics.Store
	bundle.Reader
	bundle.Importing

	runStore
	scheduleStore
	namespaceStore
	adminStore
}

// runStore is for the calls about runs.
type runStore interface {
	StartRuns(ctx context.Context, p engine.StartRunsParams) ([]engine.Started, error)
	GetRunByExternalID(ctx context.Context, namespace, externalID string) (engine.Run, error)
	GetStep(ctx context.Context, namespace string, step engine.ID) (engine.Step, error)
	ListRetries(ctx context.Context, namespace string, run engine.ID) ([]engine.Run, error)
	ListTypes(ctx context.Context, namespace string, p engine.Page) ([]engine.TypeInfo, engine.PageInfo, error)
	ExplainInputs(ctx context.Context, namespace string, run engine.ID) (engine.Circumstances, error)

	SignalRun(ctx context.Context, p engine.SignalRunParams) (engine.Signalled, error)
	CancelRun(ctx context.Context, p engine.EndRunParams) (engine.RunEnd, error)
	TerminateRun(ctx context.Context, p engine.EndRunParams) (engine.RunEnd, error)
	PauseRun(ctx context.Context, p engine.PauseRunParams) (engine.Run, error)
	ResumeRun(ctx context.Context, p engine.ResumeRunParams) (engine.Run, error)
	PinRun(ctx context.Context, p engine.PinRunParams) (engine.Run, error)
	RetryRun(ctx context.Context, p engine.RetryRunParams) (engine.Started, error)
	OverrideStep(ctx context.Context, p engine.OverrideStepParams) (engine.Step, error)
}

// scheduleStore is for the calls about schedules.
type scheduleStore interface {
	CreateSchedule(ctx context.Context, p engine.ScheduleParams) (engine.Schedule, error)
	UpdateSchedule(ctx context.Context, p engine.ScheduleParams) (engine.Schedule, error)
	DeleteSchedule(ctx context.Context, p engine.DeleteScheduleParams) error
	TriggerSchedule(ctx context.Context, p engine.TriggerScheduleParams) (engine.Started, error)
	BackfillSchedule(ctx context.Context, p engine.BackfillScheduleParams) ([]engine.Started, error)
	GetSchedule(ctx context.Context, namespace, ref string) (engine.Schedule, error)
	ListSchedules(ctx context.Context, f engine.ScheduleFilter, p engine.Page) ([]engine.Schedule,
		engine.PageInfo, error)
}

// namespaceStore is for the calls about namespaces.
type namespaceStore interface {
	GetNamespace(ctx context.Context, name string) (engine.Namespace, error)
	CreateNamespace(ctx context.Context, p engine.NamespaceParams) (engine.Namespace, error)
	UpdateNamespace(ctx context.Context, p engine.NamespaceParams) (engine.Namespace, error)
	DeleteNamespace(ctx context.Context, p engine.DeleteNamespaceParams) error
	EmptyNamespace(ctx context.Context, p engine.EmptyNamespaceParams) (engine.Emptied, error)
}

// adminStore is for the calls of operators.
type adminStore interface {
	Health(ctx context.Context) error
	ListWorkers(ctx context.Context, f engine.WorkerFilter, p engine.Page) ([]engine.Worker, engine.PageInfo, error)
	CreateKey(ctx context.Context, p engine.CreateKeyParams) (engine.APIKey, error)
	RevokeKey(ctx context.Context, p engine.RevokeKeyParams) (engine.APIKey, error)
	CreateSession(ctx context.Context, p engine.CreateSessionParams) (engine.Session, error)
	EndSession(ctx context.Context, p engine.EndSessionParams) error
	engine.Hooks
}
