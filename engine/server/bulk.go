package server

import (
	"context"
	"errors"
	"slices"
	"sync"
	"time"

	"github.com/kagzi/kagzi/engine"
	"github.com/kagzi/kagzi/engine/server/internal/async"
	"github.com/kagzi/kagzi/engine/server/internal/auth"
	"github.com/kagzi/kagzi/engine/server/internal/wire"
	kagziv1 "github.com/kagzi/kagzi/proto/kagzi/v1"
	"github.com/kagzi/kagzi/proto/query"
)

const (
	// bulkReport is the interval of progress messages.
	bulkReport = 400 * time.Millisecond
	// bulkAtOnce is how many runs are changed concurrently, so that their changes share commits.
	bulkAtOnce = 32
)

// BulkWorkflows changes every run that a filter selects. It skips runs that are created meanwhile,
// so that it ends. A run that cannot be changed is counted and does not stop the others. A repeated
// call changes only the runs that are left.
func (s *Server) BulkWorkflows(request *kagziv1.BulkWorkflowsRequest,
	stream kagziv1.WorkflowService_BulkWorkflowsServer) error {
	b, err := s.bulkOf(stream.Context(), request)
	if err != nil {
		return err
	}
	ctx, stop := context.WithCancel(stream.Context())
	defer stop()
	done := make(chan error, 1)
	go func() { done <- b.run(ctx) }()
	ticker := time.NewTicker(bulkReport)
	defer ticker.Stop()
	for {
		select {
		case err := <-done:
			if err != nil {
				return err
			}
			return stream.Send(b.last())
		case <-ticker.C:
			err = stream.Send(b.sofar())
		case <-s.stopping:
			err = wire.ErrStopping
		}
		if err != nil {
			stop()
			<-done
			return err
		}
	}
}

// bulk is one change of many runs.
type bulk struct {
	filter engine.RunFilter
	query  *query.Query[*kagziv1.Workflow] // of the runs that the filter selects; nil: all
	runs   *listing[engine.Run, *kagziv1.Workflow]
	limit  int64
	change func(context.Context, *engine.Run) (changed bool, err error)
	detail func(error) *kagziv1.ErrorDetail

	mu       sync.Mutex
	progress kagziv1.BulkWorkflowsProgress // under mu
}

func (s *Server) bulkOf(ctx context.Context, r *kagziv1.BulkWorkflowsRequest) (*bulk, error) {
	b := &bulk{limit: r.Limit, detail: func(err error) *kagziv1.ErrorDetail {
		_, detail := s.errors.Detail(err)
		return detail
	}}
	field, selection := "filter", r.Filter
	switch {
	case r.Filter != nil && r.Selection != nil:
		return nil, engine.Invalid("selection", "must not be given together with filter")
	case r.Selection != nil:
		field, selection = "selection", r.Selection
	case r.Filter == nil:
		return nil, engine.Invalid("filter", "must be set; an empty one selects every run of the namespace \"default\"")
	}
	if len(selection.ProtoReflect().GetUnknown()) > 0 { // it may be meant to select less
		return nil, engine.Invalid(field, "has a field that this server does not know; upgrade the server")
	}
	if r.Limit < 0 {
		return nil, engine.Invalid("limit", "must not be negative, got %d", r.Limit)
	}
	if err := engine.CheckReason(r.Reason); err != nil {
		return nil, err
	}
	var err error
	if b.filter, b.query, err = s.runSelection(ctx, selection); err != nil {
		return nil, wire.Within(field, err)
	}
	if now := s.now(); b.filter.CreatedBefore.IsZero() || b.filter.CreatedBefore.After(now) {
		b.filter.CreatedBefore = now
	}
	b.runs = s.runs(b.filter)
	b.change, err = s.bulkChange(ctx, r, b.filter.Namespace)
	return b, err
}

// bulkChange returns the function that applies an action to one run. The function returns whether
// it changed anything.
func (s *Server) bulkChange(ctx context.Context, r *kagziv1.BulkWorkflowsRequest,
	namespace string) (func(context.Context, *engine.Run) (bool, error), error) {
	by := auth.ActorOf(ctx)
	if r.KeepAll && r.Action != kagziv1.BulkAction_BULK_ACTION_RETRY {
		return nil, engine.Invalid("keep_all", "goes with the action RETRY only")
	}
	if r.Grace != nil && r.Action != kagziv1.BulkAction_BULK_ACTION_CANCEL {
		return nil, engine.Invalid("grace", "goes with the action CANCEL only")
	}
	grace, err := wire.DelayOf("grace", r.Grace)
	if err != nil {
		return nil, err
	}
	end := func(verb func(context.Context, engine.EndRunParams) (engine.RunEnd, error)) func(context.Context,
		*engine.Run) (bool, error) {
		return func(ctx context.Context, run *engine.Run) (bool, error) {
			now := s.now()
			p := engine.EndRunParams{Namespace: namespace, RunID: run.ID, Reason: r.Reason, By: by,
				AuditID: engine.NewID(now), Now: now, Grace: grace, Margin: s.store.Uncertainty()}
			ended, err := verb(ctx, p)
			switch {
			case err == nil:
				s.ended(p, ended)
			case stoppedMeanwhile(run, err):
				return false, nil
			}
			return ended.Changed, err
		}
	}
	switch r.Action {
	case kagziv1.BulkAction_BULK_ACTION_CANCEL:
		return end(s.store.CancelRun), nil
	case kagziv1.BulkAction_BULK_ACTION_TERMINATE:
		return end(s.store.TerminateRun), nil
	case kagziv1.BulkAction_BULK_ACTION_RETRY:
		return func(ctx context.Context, run *engine.Run) (bool, error) {
			id := run.ID
			if retry, err := s.newestRetry(ctx, namespace, id); err != nil || retry != nil {
				return false, err // a run that a person has retried already must not be retried again
			}
			now := s.now()
			started, err := s.store.RetryRun(ctx, engine.RetryRunParams{
				SteerParams: engine.SteerParams{Namespace: namespace, RunID: id, Reason: r.Reason, By: by,
					AuditID: engine.NewID(now), Now: now},
				ID: engine.NewID(now), RequestID: "bulk-retry:" + id.String(), // the same in a repetition
				KeepAll: r.KeepAll,
			})
			if err == nil {
				s.startedTo(started)
			}
			return !started.Existed && !started.Repeated, err
		}, nil
	}
	return nil, engine.Invalid("action", "must be CANCEL, TERMINATE or RETRY, got %d", r.Action)
}

// stoppedMeanwhile says whether a run that was listed as open has been cancelled or terminated
// since, often with its parent. That is no failure of a bulk cancel.
func stoppedMeanwhile(listed *engine.Run, err error) bool {
	var refusal *engine.Error
	return !listed.Status.Ended() && errors.As(err, &refusal) && refusal.Kind == engine.KindPrecondition &&
		(refusal.Status == engine.RunCancelled || refusal.Status == engine.RunTerminated)
}

// run changes the runs, newest first. Its position in the list is a run's id, so runs that no
// longer match after their change do not shift the pages.
func (b *bulk) run(ctx context.Context) (err error) {
	defer func() {
		if v := recover(); v != nil {
			err = async.Recovered(v)
		}
	}()
	page := engine.Page{Limit: engine.MaxPage, Count: b.query == nil}
	if b.query != nil {
		total, err := b.runs.count(ctx, b.query)
		if err != nil {
			return err
		}
		b.begin(total)
	}
	for left := b.limit; ; {
		if b.limit > 0 && b.query == nil {
			page.Limit = int(min(left, engine.MaxPage))
		}
		runs, info, err := b.runs.read(ctx, page)
		if err != nil {
			return err
		}
		if page.Count {
			b.begin(info.Total)
			page.Count = false
		}
		if len(runs) > 0 {
			page.After = &engine.Cursor{ID: runs[len(runs)-1].ID}
		}
		more := info.HasNext && len(runs) > 0
		runs = b.selected(runs, left)
		b.changeAll(ctx, runs)
		left -= int64(len(runs))
		if ctx.Err() != nil || !more || b.limit > 0 && left <= 0 {
			return ctx.Err()
		}
	}
}

// selected returns the runs that the query selects, at most left with a limit.
func (b *bulk) selected(runs []engine.Run, left int64) []engine.Run {
	if b.query == nil {
		return runs
	}
	runs = slices.DeleteFunc(runs, func(r engine.Run) bool { return !b.query.Matches(wire.ListedRunTo(&r)) })
	if b.limit > 0 {
		runs = runs[:min(left, int64(len(runs)))]
	}
	return runs
}

func (b *bulk) changeAll(ctx context.Context, runs []engine.Run) {
	places := make(chan struct{}, bulkAtOnce)
	var group sync.WaitGroup
	for i := range runs {
		places <- struct{}{}
		if ctx.Err() != nil {
			break
		}
		group.Go(func() {
			defer func() { <-places }()
			changed, err := b.changeOne(ctx, &runs[i])
			b.count(runs[i].ID, changed, err)
		})
	}
	group.Wait()
}

// changeOne changes one run and returns a panic as an error, so that the other runs continue.
func (b *bulk) changeOne(ctx context.Context, run *engine.Run) (changed bool, err error) {
	defer func() {
		if v := recover(); v != nil {
			err = async.Recovered(v)
		}
	}()
	return b.change(ctx, run)
}

func (b *bulk) begin(total int64) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.progress.Matched = total
	if b.limit > 0 {
		b.progress.Matched = min(total, b.limit)
	}
}

func (b *bulk) count(id engine.ID, changed bool, err error) {
	var detail *kagziv1.ErrorDetail
	if err != nil {
		detail = b.detail(err)
	}
	b.mu.Lock()
	defer b.mu.Unlock()
	if err == nil {
		b.progress.Done++
		if !changed {
			b.progress.Unchanged++
		}
		return
	}
	b.progress.Failed++
	b.progress.LastError, b.progress.LastRunId = detail, id.String()
}

// sofar returns a copy of the progress.
func (b *bulk) sofar() *kagziv1.BulkWorkflowsProgress {
	b.mu.Lock()
	defer b.mu.Unlock()
	p := &b.progress
	return &kagziv1.BulkWorkflowsProgress{
		Matched: max(p.Matched, p.Done+p.Failed), Done: p.Done, Failed: p.Failed, LastError: p.LastError,
		LastRunId: p.LastRunId,
		Unchanged: p.Unchanged,
	}
}

// last returns the progress at the end. Runs that matched when they were counted but not later are
// left out.
func (b *bulk) last() *kagziv1.BulkWorkflowsProgress {
	p := b.sofar()
	p.Matched = p.Done + p.Failed
	return p
}
