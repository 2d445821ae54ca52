package server

import (
	"bytes"
	"cmp"
	"context"
	"slices"
	"sync"
	"time"

	"github.com/kagzi/kagzi/engine"
)

// books is a store that keeps what tests put in, and notes what it is asked to change. Calls that it has no words for are panics.
type books struct {
	stubStore
	mu         sync.Mutex
	runs       []engine.Run // newest first
	steps      map[engine.ID][]engine.Step
	signals    map[engine.ID][]engine.Signal
	audit      map[string][]engine.AuditEvent
	held       []engine.Held
	schedules  map[string]engine.Schedule // by name
	namespaces map[string]engine.Namespace

	asked       []any // the parameters of what changes something, in order
	conflicts   int   // so many changes of schedules meet another one
	refuse      func(engine.ID) error
	imported    engine.Started
	awaited     engine.AwaitedSignal
	children    []engine.Step
	verdict     engine.RunVerdict
	stepVerdict engine.Verdict
	end         engine.RunEnd
	repeat      bool // RetryRun was asked for this before
	beat        engine.Beat
	status      engine.WorkerStatus // of every worker; 0: ONLINE
	leaves      func() error        // what becomes of a goodbye; nil: it counts
	slow        time.Duration       // how long the writes of workers take
	pages       []engine.Page       // of ListRuns
}

func (b *books) note(p any) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.asked = append(b.asked, p)
}

// last is the parameters of the latest change.
func last[P any](b *books) P {
	b.mu.Lock()
	defer b.mu.Unlock()
	p, _ := b.asked[len(b.asked)-1].(P)
	return p
}

func (b *books) changes() int {
	b.mu.Lock()
	defer b.mu.Unlock()
	return len(b.asked)
}

func (b *books) GetRun(_ context.Context, _ string, id engine.ID) (engine.Run, error) {
	for _, r := range b.runs {
		if r.ID == id {
			return r, nil
		}
	}
	return engine.Run{}, engine.RunNotFound(id)
}

func (b *books) GetRuns(_ context.Context, _ string, ids []engine.ID) ([]engine.Run, error) {
	var runs []engine.Run
	for _, r := range b.runs {
		if slices.Contains(ids, r.ID) {
			runs = append(runs, r)
		}
	}
	return runs, nil
}

// part is a page of a list of which before says what stands before a place.
func part[T any](list []T, p engine.Page, before func(T, engine.Cursor) bool) ([]T, engine.PageInfo) {
	info := engine.PageInfo{Total: int64(len(list))}
	from := 0
	for p.After != nil && from < len(list) && before(list[from], *p.After) {
		from++
	}
	to := min(from+p.Limit, len(list))
	info.HasNext = to < len(list)
	return slices.Clone(list[from:to]), info
}

func (b *books) ListRuns(_ context.Context, f engine.RunFilter, p engine.Page) ([]engine.Run, engine.PageInfo, error) {
	b.mu.Lock()
	b.pages = append(b.pages, p)
	b.mu.Unlock()
	var list []engine.Run
	for _, r := range b.runs {
		if (f.ParentRunID.IsZero() || f.ParentRunID == r.ParentRunID) && (f.CreatedBefore.IsZero() || r.CreatedAt.Before(f.CreatedBefore)) &&
			(f.ScheduleID == "" || f.ScheduleID == r.ScheduleID) {
			r.Input, r.Output = engine.Payload{}, engine.Payload{}
			list = append(list, r)
		}
	}
	runs, info := part(list, p, func(r engine.Run, c engine.Cursor) bool { return bytes.Compare(r.ID[:], c.ID[:]) >= 0 })
	return runs, info, nil
}

func (b *books) ListSteps(_ context.Context, _ string, run engine.ID, _ string, p engine.Page) ([]engine.Step, engine.PageInfo, error) {
	steps, info := part(b.steps[run], p, func(s engine.Step, c engine.Cursor) bool {
		return cmp.Or(cmp.Compare(s.Sequence, c.Number), cmp.Compare(s.Attempt, c.Minor)) <= 0
	})
	return steps, info, nil
}

func (b *books) ListSignals(_ context.Context, _ string, run engine.ID, p engine.Page) ([]engine.Signal, engine.PageInfo, error) {
	signals, info := part(b.signals[run], p, func(s engine.Signal, c engine.Cursor) bool { return s.Sequence <= c.Number })
	return signals, info, nil
}

func (b *books) ListAuditEvents(_ context.Context, f engine.AuditFilter, p engine.Page) ([]engine.AuditEvent, engine.PageInfo, error) {
	events, info := part(b.audit[f.SubjectID], p, func(e engine.AuditEvent, c engine.Cursor) bool { return e.ID.String() >= c.ID.String() })
	return events, info, nil
}

func (b *books) GetWorker(_ context.Context, id string) (engine.Worker, error) {
	return engine.Worker{ID: id, Status: cmp.Or(b.status, engine.WorkerOnline)}, nil
}

func (b *books) Heartbeat(_ context.Context, p engine.HeartbeatParams) (engine.Beat, error) {
	b.note(p)
	return b.beat, nil
}

func (b *books) HeldBy(context.Context, string) ([]engine.Held, error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	return slices.Clone(b.held), nil
}

func (b *books) refused(id engine.ID) error {
	if b.refuse == nil {
		return nil
	}
	return b.refuse(id)
}

func (b *books) CancelRun(_ context.Context, p engine.EndRunParams) (engine.RunEnd, error) {
	b.note(p)
	return b.end, b.refused(p.RunID)
}

func (b *books) TerminateRun(_ context.Context, p engine.EndRunParams) (engine.RunEnd, error) {
	b.note(p)
	return b.end, b.refused(p.RunID)
}

func (b *books) PauseRun(_ context.Context, p engine.SteerParams) (engine.Run, error) {
	b.note(p)
	return engine.Run{ID: p.RunID, Paused: true}, nil
}

func (b *books) ResumeRun(_ context.Context, p engine.SteerParams) (engine.Run, error) {
	b.note(p)
	return engine.Run{ID: p.RunID}, nil
}

func (b *books) PinRun(_ context.Context, p engine.PinRunParams) (engine.Run, error) {
	b.note(p)
	return engine.Run{ID: p.RunID, Pinned: p.Pinned}, nil
}

func (b *books) RetryRun(_ context.Context, p engine.RetryRunParams) (engine.Started, error) {
	b.note(p)
	return engine.Started{RunID: p.ID, Repeated: b.repeat}, b.refused(p.RunID)
}

// ListRetries is those of the runs that are there.
func (b *books) ListRetries(_ context.Context, _ string, run engine.ID) (retries []engine.Run, err error) {
	for i := range b.runs {
		if b.runs[i].RetriedFrom == run {
			retries = append(retries, b.runs[i])
		}
	}
	return retries, nil
}

func (b *books) OverrideStep(_ context.Context, p engine.OverrideStepParams) (engine.Step, error) {
	b.note(p)
	return engine.Step{ID: p.ID, Name: p.Step, OverriddenBy: p.By.Name, OverrideReason: p.Reason}, nil
}

func (b *books) SignalRun(_ context.Context, p engine.SignalRunParams) (engine.Signalled, error) {
	b.note(p)
	return engine.Signalled{Repeated: p.SignalID == "again"}, nil
}

func (b *books) ImportRuns(_ context.Context, p engine.ImportRunsParams) (engine.Started, error) {
	b.note(p)
	return engine.Started{RunID: p.Runs[0].Run.ID, Repeated: b.imported.Repeated}, nil
}

func (b *books) AwaitSignal(_ context.Context, p engine.AwaitSignalParams) (engine.AwaitedSignal, error) {
	b.note(p)
	return b.awaited, nil
}

func (b *books) StartChild(_ context.Context, p engine.StartChildParams) (engine.Step, error) {
	b.note(p)
	return engine.Step{ID: p.ID, Name: p.Step, Kind: engine.StepChild, Status: engine.StepRunning, ChildRunID: p.Child.ID}, nil
}

func (b *books) AwaitChildren(_ context.Context, p engine.AwaitChildrenParams) ([]engine.Step, error) {
	b.note(p)
	return slices.Clone(b.children), nil
}

func (b *books) SetRunNote(_ context.Context, p engine.SetNoteParams) error {
	b.note(p)
	return nil
}

func (b *books) CompleteRun(_ context.Context, p engine.CompleteRunParams) (engine.Completed, error) {
	b.note(p)
	time.Sleep(b.slow)
	if p.ContinueAs == nil {
		return engine.Completed{Status: engine.RunCancelled}, nil
	}
	return engine.Completed{Status: engine.RunCompleted, ContinuedAs: p.ContinueAs.ID}, nil
}

func (b *books) FailRun(_ context.Context, p engine.FailRunParams) (engine.RunVerdict, error) {
	b.note(p)
	time.Sleep(b.slow)
	return b.verdict, nil
}

func (b *books) CreateSchedule(_ context.Context, p engine.ScheduleParams) (engine.Schedule, error) {
	b.note(p)
	return p.Schedule, nil
}

func (b *books) GetSchedule(_ context.Context, _, ref string) (engine.Schedule, error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	s, ok := b.schedules[ref]
	if !ok {
		return s, engine.ScheduleNotFound(ref)
	}
	return s, nil
}

func (b *books) UpdateSchedule(_ context.Context, p engine.ScheduleParams) (engine.Schedule, error) {
	b.note(p)
	if b.conflicts > 0 {
		b.conflicts--
		return engine.Schedule{}, &engine.Error{Kind: engine.KindConflict, Message: "changed meanwhile"}
	}
	return p.Schedule, nil
}

func (b *books) TriggerSchedule(_ context.Context, p engine.TriggerScheduleParams) (engine.Started, error) {
	b.note(p)
	return engine.Started{RunID: p.RunID}, nil
}

func (b *books) DeleteSchedule(_ context.Context, p engine.DeleteScheduleParams) error {
	b.note(p)
	return nil
}

func (b *books) GetNamespace(_ context.Context, name string) (engine.Namespace, error) {
	n, ok := b.namespaces[name]
	if !ok {
		return n, engine.NamespaceNotFound(name)
	}
	return n, nil
}

func (b *books) CreateNamespace(_ context.Context, p engine.NamespaceParams) (engine.Namespace, error) {
	b.note(p)
	return p.Namespace, nil
}

func (b *books) UpdateNamespace(_ context.Context, p engine.NamespaceParams) (engine.Namespace, error) {
	b.note(p)
	return p.Namespace, nil
}

func (b *books) CompleteStep(_ context.Context, p engine.CompleteStepParams) (engine.Step, error) {
	b.note(p)
	time.Sleep(b.slow)
	return engine.Step{ID: p.ID, Name: p.Step.Name, Status: engine.StepCompleted}, nil
}

func (b *books) FailStep(_ context.Context, p engine.FailStepParams) (engine.Verdict, error) {
	b.note(p)
	time.Sleep(b.slow)
	return b.stepVerdict, nil
}

func (b *books) DrainWorker(_ context.Context, p engine.DrainWorkerParams) error {
	b.note(p)
	return nil
}

func (b *books) ForceOfflineWorker(_ context.Context, p engine.OfflineWorkerParams) (engine.TakenOff, error) {
	b.note(p)
	if b.leaves != nil {
		return engine.TakenOff{}, b.leaves()
	}
	return engine.TakenOff{Off: true, Freed: 2}, nil
}

func (b *books) BeginStep(_ context.Context, p engine.BeginStepParams) (engine.Begun, error) {
	b.note(p)
	return engine.Begun{Step: engine.Step{ID: p.ID, Name: p.Name, Attempt: 1}, Execute: true}, nil
}

func (b *books) Sleep(_ context.Context, p engine.SleepParams) error {
	b.note(p)
	return b.refused(p.Lease.RunID)
}

func (b *books) Release(_ context.Context, p engine.ReleaseParams) error {
	b.note(p)
	return nil
}
