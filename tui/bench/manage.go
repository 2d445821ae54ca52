package bench

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"time"

	kagziv1 "github.com/kagzi/kagzi/proto/kagzi/v1"
	kagzi "github.com/kagzi/kagzi/sdk"
)

// W19 to W22 measure what operators do: bulk actions, schedules that fire together, lists beside
// other work, and imports.

const (
	tickLead    = 3 * time.Second // between the last schedule of W20 and its tick, plus
	createRate  = 200             // one second per this many schedules
	creators    = 32              // schedules created at a time
	readers     = 4               // lists read at a time in W21
	besideLists = 50              // runs in flight beside the lists of W21
	importers   = 16              // imports at a time in W22
)

// measureBulk is W19: it cancels and terminates pending runs, half of them each, by one request.
func measureBulk(ctx context.Context, r *fixture, p plan) (s sample, err error) {
	half := p.runs / 2
	s.runs = 2 * half
	for _, bulk := range []struct {
		name   string
		action kagziv1.BulkAction
		kind   string
	}{
		{"cancelled", kagziv1.BulkAction_BULK_ACTION_CANCEL, emptyType},
		{"terminated", kagziv1.BulkAction_BULK_ACTION_TERMINATE, stepsType},
	} {
		if _, err := startAll(ctx, r, bulk.kind, make([]int, half)); err != nil {
			return s, err
		}
		m, err := r.meter(ctx)
		if err != nil {
			return s, err
		}
		defer m.halt()
		began := time.Now()
		last, err := bulkAction(ctx, r, &kagziv1.BulkWorkflowsRequest{Action: bulk.action, Reason: "bench",
			Filter: &kagziv1.ListWorkflowsRequest{Namespace: r.spec.namespace, WorkflowType: &bulk.kind,
				TaskQueue: &r.spec.queue}})
		if err != nil {
			return s, err
		}
		elapsed := time.Since(began)
		if last.GetDone() != int64(half) {
			return s, fmt.Errorf("%s %d of %d runs: %v", bulk.name, last.GetDone(), half, last.GetLastError())
		}
		c, err := m.end(bulk.name, "run", half)
		if err != nil {
			return s, err
		}
		s.figures = append(s.figures, figure{bulk.name, "runs/s", rate(float64(half), elapsed)})
		s.costs, s.elapsed = append(s.costs, c), s.elapsed+elapsed
	}
	return s, nil
}

// bulkAction returns the last progress of a bulk action.
func bulkAction(ctx context.Context, r *fixture, req *kagziv1.BulkWorkflowsRequest) (
	last *kagziv1.BulkWorkflowsProgress, err error) {
	stream, err := kagziv1.NewWorkflowServiceClient(r.client(0).Conn()).BulkWorkflows(ctx, req)
	for err == nil {
		var next *kagziv1.BulkWorkflowsProgress
		if next, err = stream.Recv(); err == nil {
			last = next
		}
	}
	if errors.Is(err, io.EOF) {
		err = nil
	}
	return last, err
}

// measureTick is W20: schedules that all fire at one second.
func measureTick(ctx context.Context, r *fixture, p plan) (sample, error) {
	lead := tickLead + time.Duration(p.runs)*time.Second/createRate
	tick := time.Now().Add(lead).Truncate(time.Second)
	cron := tick.UTC().Format("5 4 15 2 1 *")
	schedules := make([]*kagzi.Schedule, p.runs)
	err := each(ctx, p.runs, creators, func(ctx context.Context, i int) (err error) {
		schedules[i], err = kagzi.CreateSchedule(ctx, r.client(i), emptyType, cron, i,
			kagzi.ScheduleOptions{Queue: r.spec.queue})
		return err
	})
	if err != nil {
		return sample{}, err
	}
	m, err := r.meter(ctx)
	if err != nil {
		return sample{}, err
	}
	defer m.halt()
	if !time.Now().Before(tick) {
		return sample{}, errors.New("the schedules were created only after their tick: use a smaller --scale")
	}
	if err := until(ctx, tick); err != nil {
		return sample{}, err
	}
	if err := completed(ctx, r, p.runs); err != nil {
		return sample{}, err
	}
	c, err := m.end("", "run", p.runs)
	if err != nil {
		return sample{}, err
	}
	var late []time.Duration
	var busy window
	for d, err := range r.client(0).List(ctx, kagzi.ListOptions{Queues: []string{r.spec.queue}, PageSize: 1000}) {
		if err != nil {
			return sample{}, err
		}
		late = append(late, d.CreatedAt.Sub(tick))
		busy.add(tick, d.FinishedAt)
	}
	if len(late) != p.runs {
		return sample{}, fmt.Errorf("%d schedules fired %d times", p.runs, len(late))
	}
	elapsed := busy.to.Sub(tick)
	err = each(ctx, p.runs, creators, func(ctx context.Context, i int) error {
		return schedules[i].Delete(ctx, "measured")
	})
	return sample{
		figures: append([]figure{{"fired and run", "runs/s", rate(float64(p.runs), elapsed)}},
			percentiles("late", late)...),
		costs: []cost{c}, runs: p.runs, elapsed: elapsed,
	}, err
}

// completed waits until so many runs of the bench's queue have completed.
func completed(ctx context.Context, r *fixture, n int) error {
	return reached(ctx, r, kagziv1.WorkflowStatus_WORKFLOW_STATUS_COMPLETED, n)
}

// reached waits until so many runs of the bench's queue have a status.
func reached(ctx context.Context, r *fixture, status kagziv1.WorkflowStatus, n int) error {
	workflows := kagziv1.NewWorkflowServiceClient(r.client(0).Conn())
	again := time.NewTicker(100 * time.Millisecond)
	defer again.Stop()
	for {
		page, err := workflows.ListWorkflows(ctx, &kagziv1.ListWorkflowsRequest{Namespace: r.spec.namespace,
			TaskQueue: &r.spec.queue, Statuses: []kagziv1.WorkflowStatus{status},
			Page: &kagziv1.PageRequest{PageSize: 1, IncludeTotalCount: true}})
		if err != nil || page.GetPage().GetTotalCount() >= int64(n) {
			return err
		}
		select {
		case <-again.C:
		case <-ctx.Done():
			return context.Cause(ctx)
		}
	}
}

// measureLists is W21: pages of lists that are read while runs come and go.
func measureLists(ctx context.Context, r *fixture, p plan) (sample, error) {
	before := plan{runs: max(p.runs, besideLists), inFlight: besideLists}
	if _, err := closedLoop(ctx, before, 0, empties(r)); err != nil {
		return sample{}, err
	}
	m, err := r.meter(ctx)
	if err != nil {
		return sample{}, err
	}
	defer m.halt()
	beside, stop := context.WithCancel(ctx)
	defer stop()
	ran := make(chan loop, 1)
	go func() {
		l, _ := closedLoop(beside, plan{duration: time.Hour, inFlight: besideLists}, p.runs, empties(r))
		ran <- l
	}()
	workflows := kagziv1.NewWorkflowServiceClient(r.client(0).Conn())
	lists := []*kagziv1.ListWorkflowsRequest{
		{},
		{Statuses: []kagziv1.WorkflowStatus{kagziv1.WorkflowStatus_WORKFLOW_STATUS_RUNNING}},
		{TaskQueue: &r.spec.queue},
	}
	reading := plan{runs: p.runs, inFlight: min(readers, p.runs)}
	l, err := closedLoop(ctx, reading, 0, func(ctx context.Context, i int) error {
		list := lists[i%len(lists)]
		_, err := workflows.ListWorkflows(ctx, &kagziv1.ListWorkflowsRequest{Namespace: r.spec.namespace,
			Statuses: list.Statuses, TaskQueue: list.TaskQueue, Page: &kagziv1.PageRequest{PageSize: 100}})
		return err
	})
	stop()
	<-ran
	if err != nil {
		return sample{}, err
	}
	c, err := m.end("", "page", l.runs)
	return sample{
		figures: append([]figure{{"pages of 100 runs", "pages/s", rate(float64(l.runs), l.elapsed)}},
			percentiles("page", l.times)...),
		costs: []cost{c}, runs: l.runs, elapsed: l.elapsed,
	}, err
}

// empties performs runs without steps.
func empties(r *fixture) func(context.Context, int) error {
	return func(ctx context.Context, i int) error { return perform(ctx, r, i, emptyType, i, i, nil) }
}

// measureImport is W22: a run of ten steps that is imported again and again.
func measureImport(ctx context.Context, r *fixture, p plan) (sample, error) {
	const n = 10
	run, err := kagzi.Start(ctx, r.client(0), stepsType, job{Steps: n}, kagzi.StartOptions{Queue: r.spec.queue})
	if err != nil {
		return sample{}, err
	}
	if _, err := kagzi.Result[int](ctx, run); err != nil {
		return sample{}, err
	}
	var capsule bytes.Buffer
	if err := run.Export(ctx, &capsule, kagzi.ExportOptions{}); err != nil {
		return sample{}, err
	}
	m, err := r.meter(ctx)
	if err != nil {
		return sample{}, err
	}
	defer m.halt()
	l, err := closedLoop(ctx, plan{runs: p.runs, inFlight: importers}, 0, func(ctx context.Context, i int) error {
		_, err := r.client(i).Import(ctx, bytes.NewReader(capsule.Bytes()), kagzi.ImportOptions{})
		return err
	})
	if err != nil {
		return sample{}, err
	}
	c, err := m.end("", "run", l.runs)
	return sample{
		figures: append([]figure{{"imported", "runs/s", rate(float64(l.runs), l.elapsed)}},
			percentiles("import", l.times)...),
		costs: []cost{c}, runs: l.runs, steps: l.runs * n, elapsed: l.elapsed,
	}, err
}
