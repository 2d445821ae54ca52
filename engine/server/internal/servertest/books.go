package servertest

import (
	"bytes"
	"cmp"
	"context"
	"slices"
	"sync"
	"time"

	"github.com/kagzi/kagzi/engine"
)

// Books is a store with the rows that tests put in. It records the changes it is asked for. Other
// calls panic.
type Books struct {
	StubStore
	mu         sync.Mutex
	Runs       []engine.Run // newest first
	Steps      map[engine.ID][]engine.Step
	Signals    map[engine.ID][]engine.Signal
	audit      map[string][]engine.AuditEvent
	Held       []engine.Held
	Schedules  map[string]engine.Schedule // by name
	Namespaces map[string]engine.Namespace

	Asked       []any // the parameters of what changes something, in order
	Conflicts   int   // so many changes of schedules meet another one
	Refuse      func(engine.ID) error
	imported    engine.Started
	Awaited     engine.AwaitedSignal
	Children    []engine.Step
	Verdict     engine.RunVerdict
	StepVerdict engine.Verdict
	End         engine.RunEnd
	Repeat      bool // RetryRun was asked for this before
	Beat        engine.Beat
	Status      engine.WorkerStatus // of every worker; 0: ONLINE
	Leaves      func() error        // what becomes of a goodbye; nil: it counts
	Slow        time.Duration       // how long the writes of workers take
	Pages       []engine.Page       // of ListRuns
}

func (b *Books) note(p any) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.Asked = append(b.Asked, p)
}

// Last returns the parameters of the latest change.
func Last[P any](b *Books) P {
	b.mu.Lock()
	defer b.mu.Unlock()
	p, _ := b.Asked[len(b.Asked)-1].(P)
	return p
}

func (b *Books) Changes() int {
	b.mu.Lock()
	defer b.mu.Unlock()
	return len(b.Asked)
}

func (b *Books) GetRun(_ context.Context, _ string, id engine.ID) (engine.Run, error) {
	for _, r := range b.Runs {
		if r.ID == id {
			return r, nil
		}
	}
	return engine.Run{}, engine.RunNotFound(id)
}

func (b *Books) GetRuns(_ context.Context, _ string, ids []engine.ID) ([]engine.Run, error) {
	var runs []engine.Run
	for _, r := range b.Runs {
		if slices.Contains(ids, r.ID) {
			runs = append(runs, r)
		}
	}
	return runs, nil
}

// part returns a page of a list. before says whether an item comes before a cursor.
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

func (b *Books) ListRuns(_ context.Context, f engine.RunFilter, p engine.Page) ([]engine.Run, engine.PageInfo, error) {
	b.mu.Lock()
	b.Pages = append(b.Pages, p)
	b.mu.Unlock()
	var list []engine.Run
	for _, r := range b.Runs {
		if (f.ParentRunID.IsZero() || f.ParentRunID == r.ParentRunID) &&
			(f.CreatedBefore.IsZero() || r.CreatedAt.Before(f.CreatedBefore)) &&
			(f.ScheduleID == "" || f.ScheduleID == r.ScheduleID) {
			r.Input, r.Output = engine.Payload{}, engine.Payload{}
			list = append(list, r)
		}
	}
	runs, info := part(list, p, func(r engine.Run, c engine.Cursor) bool {
		return bytes.Compare(r.ID[:], c.ID[:]) >= 0
	})
	return runs, info, nil
}

func (b *Books) ListSteps(_ context.Context, _ string, run engine.ID, _ engine.StepFilter, p engine.Page) (
	[]engine.Step, engine.PageInfo, error) {
	steps, info := part(b.Steps[run], p, func(s engine.Step, c engine.Cursor) bool {
		return cmp.Or(cmp.Compare(s.Sequence, c.Number), cmp.Compare(s.Attempt, c.Minor)) <= 0
	})
	return steps, info, nil
}

func (b *Books) ListSignals(_ context.Context, _ string, run engine.ID, p engine.Page) ([]engine.Signal,
	engine.PageInfo, error) {
	signals, info := part(b.Signals[run], p, func(s engine.Signal, c engine.Cursor) bool {
		return s.Sequence <= c.Number
	})
	return signals, info, nil
}

func (b *Books) ListAuditEvents(_ context.Context, f engine.AuditFilter, p engine.Page) ([]engine.AuditEvent,
	engine.PageInfo, error) {
	events, info := part(b.audit[f.SubjectID], p, func(e engine.AuditEvent, c engine.Cursor) bool {
		return e.ID.String() >= c.ID.String()
	})
	return events, info, nil
}

func (b *Books) GetWorker(_ context.Context, id string) (engine.Worker, error) {
	return engine.Worker{ID: id, Status: cmp.Or(b.Status, engine.WorkerOnline)}, nil
}

func (b *Books) Heartbeat(_ context.Context, p engine.HeartbeatParams) (engine.Beat, error) {
	b.note(p)
	return b.Beat, nil
}

func (b *Books) HeldBy(context.Context, string) ([]engine.Held, error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	return slices.Clone(b.Held), nil
}

func (b *Books) refused(id engine.ID) error {
	if b.Refuse == nil {
		return nil
	}
	return b.Refuse(id)
}

func (b *Books) CancelRun(_ context.Context, p engine.EndRunParams) (engine.RunEnd, error) {
	b.note(p)
	return b.End, b.refused(p.RunID)
}

func (b *Books) TerminateRun(_ context.Context, p engine.EndRunParams) (engine.RunEnd, error) {
	b.note(p)
	return b.End, b.refused(p.RunID)
}

func (b *Books) PauseRun(_ context.Context, p engine.PauseRunParams) (engine.Run, error) {
	b.note(p)
	return engine.Run{ID: p.RunID, Paused: true}, nil
}

func (b *Books) ResumeRun(_ context.Context, p engine.ResumeRunParams) (engine.Run, error) {
	b.note(p)
	return engine.Run{ID: p.RunID}, nil
}

func (b *Books) PinRun(_ context.Context, p engine.PinRunParams) (engine.Run, error) {
	b.note(p)
	return engine.Run{ID: p.RunID, Pinned: p.Pinned}, nil
}

func (b *Books) RetryRun(_ context.Context, p engine.RetryRunParams) (engine.Started, error) {
	b.note(p)
	return engine.Started{RunID: p.ID, Repeated: b.Repeat}, b.refused(p.RunID)
}

// ListRetries returns the runs in b that a run was retried as.
func (b *Books) ListRetries(_ context.Context, _ string, run engine.ID) (retries []engine.Run, err error) {
	for i := range b.Runs {
		if b.Runs[i].RetriedFrom == run {
			retries = append(retries, b.Runs[i])
		}
	}
	return retries, nil
}

func (b *Books) OverrideStep(_ context.Context, p engine.OverrideStepParams) (engine.Step, error) {
	b.note(p)
	return engine.Step{ID: p.ID, Name: p.Step, OverriddenBy: p.By.Name, OverrideReason: p.Reason}, nil
}

func (b *Books) SignalRun(_ context.Context, p engine.SignalRunParams) (engine.Signalled, error) {
	b.note(p)
	return engine.Signalled{Repeated: p.SignalID == "again"}, nil
}

func (b *Books) ImportRuns(_ context.Context, p engine.ImportRunsParams) (engine.Started, error) {
	b.note(p)
	return engine.Started{RunID: p.Runs[0].Run.ID, Repeated: b.imported.Repeated}, nil
}

func (b *Books) AwaitSignal(_ context.Context, p engine.AwaitSignalParams) (engine.AwaitedSignal, error) {
	b.note(p)
	return b.Awaited, nil
}

func (b *Books) StartChild(_ context.Context, p engine.StartChildParams) (engine.Step, error) {
	b.note(p)
	return engine.Step{ID: p.ID, Name: p.Step, Kind: engine.StepChild, Status: engine.StepRunning,
		ChildRunID: p.Child.ID}, nil
}

func (b *Books) AwaitChildren(_ context.Context, p engine.AwaitChildrenParams) ([]engine.Step, error) {
	b.note(p)
	return slices.Clone(b.Children), nil
}

func (b *Books) SetRunNote(_ context.Context, p engine.SetNoteParams) error {
	b.note(p)
	return nil
}

func (b *Books) CompleteRun(_ context.Context, p engine.CompleteRunParams) (engine.Completed, error) {
	b.note(p)
	time.Sleep(b.Slow)
	if p.ContinueAs == nil {
		return engine.Completed{Status: engine.RunCancelled}, nil
	}
	return engine.Completed{Status: engine.RunCompleted, ContinuedAs: p.ContinueAs.ID}, nil
}

func (b *Books) FailRun(_ context.Context, p engine.FailRunParams) (engine.RunVerdict, error) {
	b.note(p)
	time.Sleep(b.Slow)
	return b.Verdict, nil
}

func (b *Books) CreateSchedule(_ context.Context, p engine.ScheduleParams) (engine.Schedule, error) {
	b.note(p)
	return p.Schedule, nil
}

func (b *Books) GetSchedule(_ context.Context, _, ref string) (engine.Schedule, error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	s, ok := b.Schedules[ref]
	if !ok {
		return s, engine.ScheduleNotFound(ref)
	}
	return s, nil
}

func (b *Books) UpdateSchedule(_ context.Context, p engine.ScheduleParams) (engine.Schedule, error) {
	b.note(p)
	if b.Conflicts > 0 {
		b.Conflicts--
		return engine.Schedule{}, &engine.Error{Kind: engine.KindConflict, Message: "changed meanwhile"}
	}
	return p.Schedule, nil
}

func (b *Books) TriggerSchedule(_ context.Context, p engine.TriggerScheduleParams) (engine.Started, error) {
	b.note(p)
	return engine.Started{RunID: p.RunID}, nil
}

func (b *Books) BackfillSchedule(_ context.Context, p engine.BackfillScheduleParams) ([]engine.Started, error) {
	b.note(p)
	started := make([]engine.Started, len(p.Ticks))
	for i, tick := range p.Ticks {
		started[i].RunID = tick.RunID
	}
	return started, nil
}

func (b *Books) DeleteSchedule(_ context.Context, p engine.DeleteScheduleParams) error {
	b.note(p)
	return nil
}

func (b *Books) GetNamespace(_ context.Context, name string) (engine.Namespace, error) {
	n, ok := b.Namespaces[name]
	if !ok {
		return n, engine.NamespaceNotFound(name)
	}
	return n, nil
}

func (b *Books) CreateNamespace(_ context.Context, p engine.NamespaceParams) (engine.Namespace, error) {
	b.note(p)
	return p.Namespace, nil
}

func (b *Books) UpdateNamespace(_ context.Context, p engine.NamespaceParams) (engine.Namespace, error) {
	b.note(p)
	return p.Namespace, nil
}

func (b *Books) DeleteNamespace(_ context.Context, p engine.DeleteNamespaceParams) error {
	b.note(p)
	return nil
}

func (b *Books) EmptyNamespace(_ context.Context, p engine.EmptyNamespaceParams) (engine.Emptied, error) {
	b.note(p)
	return engine.Emptied{}, nil
}

func (b *Books) CompleteStep(_ context.Context, p engine.CompleteStepParams) (engine.Step, error) {
	b.note(p)
	time.Sleep(b.Slow)
	return engine.Step{ID: p.ID, Name: p.Step.Name, Status: engine.StepCompleted}, nil
}

func (b *Books) FailStep(_ context.Context, p engine.FailStepParams) (engine.Verdict, error) {
	b.note(p)
	time.Sleep(b.Slow)
	return b.StepVerdict, nil
}

func (b *Books) DrainWorker(_ context.Context, p engine.DrainWorkerParams) error {
	b.note(p)
	return nil
}

func (b *Books) ForceOfflineWorker(_ context.Context, p engine.OfflineWorkerParams) (engine.Deregistered, error) {
	b.note(p)
	if b.Leaves != nil {
		return engine.Deregistered{}, b.Leaves()
	}
	return engine.Deregistered{Off: true, Freed: 2}, nil
}

func (b *Books) BeginStep(_ context.Context, p engine.BeginStepParams) (engine.Begun, error) {
	b.note(p)
	return engine.Begun{Step: engine.Step{ID: p.ID, Name: p.Name, Attempt: 1}, Execute: true}, nil
}

func (b *Books) Sleep(_ context.Context, p engine.SleepParams) (engine.Step, error) {
	b.note(p)
	return engine.Step{ID: p.ID, Kind: engine.StepSleep, Status: engine.StepRunning}, b.refused(p.Lease.RunID)
}

func (b *Books) Release(_ context.Context, p engine.ReleaseParams) error {
	b.note(p)
	return nil
}
