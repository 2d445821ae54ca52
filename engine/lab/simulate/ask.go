package simulate

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"time"

	kagziv1 "github.com/kagzi/kagzi/proto/kagzi/v1"
	kagzi "github.com/kagzi/kagzi/sdk"
)

// acks holds what clients were told.
type acks struct {
	mu        sync.Mutex
	starts    map[string]string   // request → run
	runs      map[string]string   // name of the Start → run that was started, or its retry
	known     map[string]chan int // name of the Start → closed when its run is known
	ends      map[string]string   // run → how it ended, as clients were told
	orders    []acked
	signals   map[string]string // signal id → run that took it
	schedules map[string]*Template
	created   []*kagzi.Schedule
}

// acked is an order that a client was told has been carried out.
type acked struct {
	do, run string
}

// retryLimit limits how long a client repeats a call whose outcome it does not know.
const retryLimit = 5 * time.Minute

// ask makes all clients do what the plan says. asked counts requests, waited counts clients that
// wait for results.
func (w *simulation) ask(asked, waited *sync.WaitGroup) {
	w.acks = acks{starts: map[string]string{}, runs: map[string]string{}, known: map[string]chan int{},
		ends:    map[string]string{},
		signals: map[string]string{}, schedules: map[string]*Template{}}
	for i := range w.plan.Starts {
		s := &w.plan.Starts[i]
		w.acks.known[s.Name] = make(chan int)
		asked.Go(func() { w.start(s, s.At, 0) })
		for n, at := range s.Repeat {
			asked.Go(func() { w.start(s, at, n+1) })
		}
	}
	for i := range w.plan.Orders {
		o := &w.plan.Orders[i]
		group := asked
		if o.Do == "wait" {
			group = waited
		}
		group.Go(func() { w.order(o, i) })
	}
	for i := range w.plan.Schedules {
		t := &w.plan.Schedules[i]
		asked.Go(func() { w.schedule(t) })
	}
}

func (w *simulation) client(i int) *kagzi.Client { return w.clients[i%len(w.clients)].sdk }

// persist repeats a call until its outcome is known or the time is up.
func (w *simulation) persist(call func(ctx context.Context) error) error {
	limit, cancel := context.WithTimeout(w.over, retryLimit)
	defer cancel()
	for {
		ctx, cancel := context.WithTimeout(limit, 10*time.Second)
		err := call(ctx)
		cancel()
		var known *kagzi.Error
		switch {
		case err == nil:
			return nil
		case limit.Err() != nil:
			return limit.Err()
		case errors.As(err, &known) && known.Code != kagzi.CodeUnavailable && known.Code != kagzi.CodeTimeout &&
			known.Code != kagzi.CodeCancelled:
			return err
		}
		w.report.note("repeated calls")
		select {
		case <-time.After(time.Second):
		case <-limit.Done():
			return limit.Err()
		}
	}
}

func (w *simulation) start(s *Start, at time.Duration, client int) {
	time.Sleep(at)
	o := kagzi.StartOptions{
		RequestID: s.Name, ExternalID: s.External, ConcurrencyKey: s.Key, ConcurrencyLimit: s.Limit,
		ExecutionTimeout: s.Deadline, Delay: s.Delay,
		Priority: s.Priority,
	}
	if s.Open {
		o.ConcurrencyScope = kagzi.ScopeOpen
	}
	if s.Attempts > 0 {
		o.RunRetry = &kagzi.Retry{Attempts: s.Attempts, Initial: time.Second}
		o.StepRetry = o.RunRetry
	}
	if s.OnFailure {
		o.OnFailure = handlerType
	}
	var run *kagzi.Run
	err := w.persist(func(ctx context.Context) (err error) {
		run, err = kagzi.Start(ctx, w.client(client), programType, s.Program, o)
		return err
	})
	if err != nil {
		w.report.note("starts refused")
		return
	}
	w.report.note("starts")
	w.acks.mu.Lock()
	defer w.acks.mu.Unlock()
	first, again := w.acks.starts[s.Name]
	w.report.told(12, !again || first == run.ID(), "request %s was answered with run %s and with %s", s.Name,
		first, run.ID())
	if !again {
		w.acks.starts[s.Name], w.acks.runs[s.Name] = run.ID(), run.ID()
		close(w.acks.known[s.Name])
	}
}

// order waits until its run is known, and sends the order.
func (w *simulation) order(o *Order, n int) {
	time.Sleep(o.At)
	select {
	case <-w.acks.known[o.Run]:
	case <-w.over.Done():
		return
	case <-time.After(retryLimit):
		return
	}
	w.acks.mu.Lock()
	id := w.acks.runs[o.Run]
	w.acks.mu.Unlock()
	times := 1
	if o.Twice {
		times = 2
	}
	for i := range times {
		w.command(o, w.client(n+i), id)
	}
}

func (w *simulation) command(o *Order, c *kagzi.Client, id string) {
	run := c.Run(id)
	switch o.Do {
	case "wait":
		if d, err := run.Wait(w.over); err == nil {
			w.ended(d)
		}
		return
	case "look":
		var d *kagzi.RunDetails
		err := w.persist(func(ctx context.Context) (err error) {
			d, err = run.Describe(ctx)
			return err
		})
		if err == nil && !d.FinishedAt.IsZero() {
			w.ended(d)
		}
		return
	case "retry", "from":
		w.retry(o, run)
		return
	}
	err := w.persist(func(ctx context.Context) error {
		switch o.Do {
		case "cancel":
			_, err := kagziv1.NewWorkflowServiceClient(c.Conn()).CancelWorkflow(ctx,
				&kagziv1.CancelWorkflowRequest{RunId: run.ID(), Reason: "ordered"})
			return err
		case "stop":
			return run.CancelGracefully(ctx, o.For, "ordered")
		case "terminate":
			return run.Terminate(ctx, "ordered")
		case "pause":
			return run.Pause(ctx, "ordered")
		}
		return kagzi.Signal(ctx, run, o.Name, "sent as "+o.ID, kagzi.SignalOptions{ID: o.ID})
	})
	if err != nil {
		w.report.note("orders refused")
		return
	}
	w.report.note("order: " + o.Do)
	if o.Do == "pause" {
		time.Sleep(o.For)
		err := w.persist(func(ctx context.Context) error { return run.Resume(ctx, "ordered") })
		var refused *kagzi.Error
		w.report.check(7, err == nil || errors.As(err, &refused), "run %s cannot be resumed: %v", run.ID(), err)
		return
	}
	w.acks.mu.Lock()
	defer w.acks.mu.Unlock()
	if o.Do == "signal" {
		w.acks.signals[o.ID] = run.ID()
	}
	w.acks.orders = append(w.acks.orders, acked{o.Do, run.ID()})
}

// retry retries the run; later orders then go to the new run.
func (w *simulation) retry(o *Order, run *kagzi.Run) {
	var again *kagzi.Run
	err := w.persist(func(ctx context.Context) (err error) {
		again, err = run.Retry(ctx, kagzi.RetryOptions{RequestID: o.ID, FromStep: o.Name, Reason: "ordered"})
		return err
	})
	if err != nil {
		w.report.note("orders refused")
		return
	}
	w.report.note("order: retry")
	w.acks.mu.Lock()
	defer w.acks.mu.Unlock()
	first, repeated := w.acks.starts[o.ID]
	w.report.told(12, !repeated || first == again.ID(), "request %s was answered with run %s and with %s", o.ID, first,
		again.ID())
	w.acks.starts[o.ID], w.acks.runs[o.Run] = again.ID(), again.ID()
}

// ended records how a run ended. All clients must be told the same.
func (w *simulation) ended(d *kagzi.RunDetails) {
	output := ""
	if d.Status == kagzi.StatusCompleted {
		output, _ = kagzi.Output[string](d)
	}
	w.report.note("ends seen")
	w.seen(d.RunID, endText(string(d.Status), output, d.FinishedAt))
}

func endText(status, output string, at time.Time) string {
	return fmt.Sprintf("%s with %q at %s", status, output, at.UTC().Format(time.RFC3339Nano))
}

func (w *simulation) seen(run, end string) {
	w.acks.mu.Lock()
	defer w.acks.mu.Unlock()
	first, again := w.acks.ends[run]
	w.report.told(4, !again || first == end, "run %s was said to be %s and %s", run, first, end)
	w.acks.ends[run] = end
}

func (w *simulation) schedule(t *Template) {
	time.Sleep(t.At)
	var s *kagzi.Schedule
	err := w.persist(func(ctx context.Context) (err error) {
		s, err = kagzi.CreateSchedule(ctx, w.client(0), programType, fmt.Sprintf("*/%d * * * * *", t.Every), t.Program,
			kagzi.ScheduleOptions{
				RequestID: t.Name, Overlap: kagzi.OverlapPolicy(t.Overlap), MaxCatchup: 1000,
			})
		return err
	})
	if err != nil {
		w.report.note("schedules refused")
		return
	}
	w.report.note("schedules")
	w.acks.mu.Lock()
	defer w.acks.mu.Unlock()
	w.acks.schedules[s.ID()] = t
	w.acks.created = append(w.acks.created, s)
}

// acceptHoles lets runs go on whose history has holes, because a fail-over lost results that were
// acknowledged: to their code such a history is another's. Nothing else may make a run diverge.
func (w *simulation) acceptHoles() {
	for _, r := range w.db.Runs() {
		if !r.Diverged() || r.Status.Ended() {
			continue
		}
		w.report.check(7, w.report.failedOver.Load(), "run %s has diverged, and its code has not changed: %+v", r.ID,
			r.Divergences)
		w.report.note("divergences accepted")
		err := w.persist(func(ctx context.Context) error {
			return w.client(0).Run(r.ID.String()).AcceptDivergence(ctx, "results were lost")
		})
		w.report.check(7, err == nil, "the divergence of run %s cannot be accepted: %v", r.ID, err)
	}
}

// resumeForgotten resumes runs whose resumption a fail-over lost.
func (w *simulation) resumeForgotten() {
	if !w.report.failedOver.Load() {
		return
	}
	for _, r := range w.db.Runs() {
		if r.Paused && !r.Status.Ended() {
			err := w.persist(func(ctx context.Context) error {
				return w.client(0).Run(r.ID.String()).Resume(ctx, "it was forgotten")
			})
			w.report.check(7, err == nil, "run %s cannot be resumed after everything has healed: %v", r.ID, err)
		}
	}
}

// stopSchedules stops all schedules after the ticks that are due have fired.
func (w *simulation) stopSchedules() {
	for _, s := range w.acks.created {
		w.catchUp(s.ID())
		err := w.persist(func(ctx context.Context) error { return s.Pause(ctx, "the simulation ends") })
		w.report.told(7, err == nil, "schedule %s cannot be paused after everything has healed: %v", s.ID(), err)
	}
}

// catchUp waits until a schedule has no due tick, but not for ever: a stuck schedule misses no
// ticks either.
func (w *simulation) catchUp(schedule string) {
	for limit := time.Now().Add(healing); ; time.Sleep(time.Second) {
		next, there := w.nextTick(schedule)
		if next.After(time.Now()) || !there && w.report.failedOver.Load() {
			return
		}
		if time.Now().After(limit) {
			w.report.check(6, false, "schedule %s is still at its tick of %s %s after everything has healed", schedule,
				next, healing)
			return
		}
	}
}

// nextTick returns the next undecided tick of a schedule, and whether the schedule exists.
func (w *simulation) nextTick(schedule string) (next time.Time, there bool) {
	for _, s := range w.db.Schedules() {
		if s.ID.String() == schedule {
			return s.NextFireAt, true
		}
	}
	return time.Time{}, false
}
