package session

import (
	"cmp"
	"context"
	"slices"

	"google.golang.org/protobuf/proto"

	"github.com/kagzi/kagzi/engine"
	"github.com/kagzi/kagzi/engine/server/internal/async"
	"github.com/kagzi/kagzi/engine/server/internal/metrics"
	"github.com/kagzi/kagzi/engine/server/internal/wire"
	kagziv1 "github.com/kagzi/kagzi/proto/kagzi/v1"
)

// This file holds the operations with which a run's code waits.

// sleep sets a timer. stay says that the lease continues if the sleep is over: older workers, and
// those without a session, expect that a sleep ends it.
func (s *Service) sleep(ctx context.Context, at engine.Sequenced, r *kagziv1.SleepRequest,
	stay bool) (*kagziv1.SleepResponse, error) {
	lease, err := s.leaseOf(ctx, r)
	if err != nil {
		return nil, err
	}
	p := engine.SleepParams{Sequenced: at, Lease: lease, Branch: r.Branch, Hold: r.Hold, Over: r.Over, Stay: stay,
		Now: s.store.Now(), Margin: s.store.Uncertainty()}
	if err := engine.CheckBranch("branch", p.Branch); err != nil {
		return nil, err
	}
	if p.Step, err = stepRefOf(r.StepId, r.StepName); err != nil {
		return nil, err
	}
	if p.Until, err = wire.TimeOf("until", r.Until); err != nil {
		return nil, err
	}
	if p.Duration, err = wire.DurationOf("duration", r.Duration); err != nil {
		return nil, err
	}
	switch {
	case r.Until != nil && r.Duration != nil:
		return nil, engine.Invalid("until", "cannot be given together with duration")
	case r.Until != nil:
		if p.Until.Sub(p.Now) > engine.MaxDelay {
			return nil, engine.Invalid("until", "lies more than 10 years ahead")
		}
	case r.Duration != nil || !r.Over:
		if err := engine.CheckDelay("duration", p.Duration); err != nil {
			return nil, err
		}
	}
	p.ID = engine.NewID(p.Now)
	step, err := s.store.Sleep(ctx, p)
	if err != nil {
		return nil, err
	}
	return &kagziv1.SleepResponse{Settled: wire.SettledTo(&step)}, nil
}

func (s *Service) awaitSignal(ctx context.Context, at engine.Sequenced,
	r *kagziv1.AwaitSignalRequest) (*kagziv1.AwaitSignalResponse, error) {
	lease, err := s.leaseOf(ctx, r)
	if err != nil {
		return nil, err
	}
	p := engine.AwaitSignalParams{Sequenced: at, Lease: lease, Step: r.StepName, Branch: r.Branch,
		Signal: r.SignalName, Hold: r.Hold, Now: s.store.Now(), Margin: s.store.Uncertainty()}
	if err := engine.CheckName("step_name", p.Step); err != nil {
		return nil, err
	}
	if err := engine.CheckName("signal_name", p.Signal); err != nil {
		return nil, err
	}
	if err := engine.CheckBranch("branch", p.Branch); err != nil {
		return nil, err
	}
	if p.Timeout, err = wire.DelayOf("timeout", r.Timeout); err != nil {
		return nil, err
	}
	p.ID = engine.NewID(p.Now)
	awaited, err := s.store.AwaitSignal(ctx, p)
	switch step := &awaited.Step; {
	case err != nil:
		return nil, err
	case awaited.Waiting:
		return &kagziv1.AwaitSignalResponse{}, nil
	case step.Status != engine.StepCompleted:
		// A person has recorded a failure for the step. The answer has no field for it; the next
		// replay finds it in the history.
		return nil, engine.StepConflict(step.Name, step.Status)
	case step.TimedOut:
		return &kagziv1.AwaitSignalResponse{TimedOut: true, Settled: wire.SettledTo(step)}, nil
	default:
		return &kagziv1.AwaitSignalResponse{
			Payload: wire.StepTo("", step).Output, Settled: wire.SettledTo(step)}, nil
	}
}

// childsLease is a StartChildRequest as a request about the parent run.
type childsLease struct{ *kagziv1.StartChildRequest }

func (c childsLease) GetNamespace() string { return c.GetChild().GetNamespace() }
func (c childsLease) GetRunId() string     { return c.GetChild().GetParentRunId() }

func (s *Service) startChild(ctx context.Context, at engine.Sequenced,
	r *kagziv1.StartChildRequest) (*kagziv1.StartChildResponse, error) {
	if r.Child == nil {
		return nil, engine.Invalid("child", "must be set")
	}
	if r.Child.ParentRunId == "" {
		return nil, engine.Invalid("child.parent_run_id", "must name the run that starts the child")
	}
	if _, err := wire.IDOf("child.parent_run_id", r.Child.ParentRunId); err != nil {
		return nil, err
	}
	lease, err := s.leaseOf(ctx, childsLease{r})
	if err != nil {
		return nil, err
	}
	if err := engine.CheckName("step_name", r.StepName); err != nil {
		return nil, err
	}
	if err := engine.CheckBranch("branch", r.Branch); err != nil {
		return nil, err
	}
	if _, known := kagziv1.ParentClosePolicy_name[int32(r.ParentClosePolicy)]; !known {
		return nil, engine.Invalid("parent_close_policy", "has the unknown value %d", r.ParentClosePolicy)
	}
	child, err := s.starts.Child(ctx, r.Child)
	if err != nil {
		return nil, wire.Within("child", err)
	}
	child.ParentClose = cmp.Or(engine.ParentClose(r.ParentClosePolicy), engine.CloseAbandon)
	p := engine.StartChildParams{Sequenced: at, Lease: lease, Step: r.StepName, Branch: r.Branch, Child: child,
		Now: child.CreatedAt}
	p.ID = engine.NewID(p.Now)
	step, err := s.store.StartChild(ctx, p)
	if err != nil {
		return nil, err
	}
	if step.ChildRunID == child.ID {
		s.recorder.Count(metrics.RunStarted)
	}
	return &kagziv1.StartChildResponse{
		ChildRunId: step.ChildRunID.String(), StepId: step.ID.String(), Step: wire.StepTo(lease.Namespace, &step),
	}, nil
}

const (
	maxAwaited      = engine.MaxSteps // children of one wait; a run cannot have more
	maxAwaitedBytes = 4 << 20         // in one answer, for runs and for steps each
	readsAtOnce     = 16              // concurrent reads of runs in one call
)

func (s *Service) awaitChildren(ctx context.Context, at engine.Sequenced,
	r *kagziv1.AwaitChildrenRequest) (*kagziv1.AwaitChildrenResponse, error) {
	lease, err := s.leaseOf(ctx, r)
	if err != nil {
		return nil, err
	}
	if n := len(r.ChildRunIds); n == 0 || n > maxAwaited {
		return nil, engine.Invalid("child_run_ids", "must name 1 to %d runs, got %d", maxAwaited, n)
	}
	p := engine.AwaitChildrenParams{Sequenced: at, Lease: lease, Any: r.Any, Hold: r.Hold, Bytes: maxAwaitedBytes,
		Now: s.store.Now()}
	places := make(map[engine.ID]int, len(r.ChildRunIds))
	for _, text := range r.ChildRunIds {
		id, err := wire.IDOf("child_run_ids", text)
		if err != nil {
			return nil, err
		}
		if _, again := places[id]; !again {
			places[id] = len(p.Children)
			p.Children = append(p.Children, id)
		}
	}
	steps, err := s.store.AwaitChildren(ctx, p)
	if err != nil {
		return nil, err
	}
	slices.SortStableFunc(steps, func(a, b engine.Step) int { return places[a.ChildRunID] - places[b.ChildRunID] })
	response := &kagziv1.AwaitChildrenResponse{}
	if response.Finished, err = s.finished(ctx, lease.Namespace, steps); err != nil {
		return nil, err
	}
	size := 0
	for i := range steps {
		step := wire.StepTo(lease.Namespace, &steps[i])
		if size += proto.Size(step); size > maxAwaitedBytes && i > 0 {
			break
		}
		response.Steps = append(response.Steps, step)
	}
	return response, nil
}

// finished returns the child runs of these steps, as many as fit in one answer. It skips deleted
// runs, whose steps have their result.
func (s *Service) finished(ctx context.Context, namespace string, steps []engine.Step) ([]*kagziv1.Workflow, error) {
	var finished []*kagziv1.Workflow
	size := 0
	for group := range slices.Chunk(steps, readsAtOnce) {
		runs, errs := make([]engine.Run, len(group)), make([]error, len(group))
		async.Parallel(len(group), func(i int) {
			runs[i], errs[i] = s.store.GetRun(ctx, namespace, group[i].ChildRunID)
		})
		for i := range runs {
			if engine.KindOf(errs[i]) == engine.KindNotFound {
				continue
			}
			if errs[i] != nil {
				return nil, errs[i]
			}
			runs[i].Input = engine.Payload{} // the parent knows it
			workflow := wire.RunTo(&runs[i])
			if size += proto.Size(workflow); size > maxAwaitedBytes && len(finished) > 0 {
				return finished, nil
			}
			finished = append(finished, workflow)
		}
	}
	return finished, nil
}
