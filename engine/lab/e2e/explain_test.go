package e2e

import (
	"strings"
	"testing"
	"time"

	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/types/known/durationpb"
	"google.golang.org/protobuf/types/known/timestamppb"

	kagziv1 "github.com/kagzi/kagzi/proto/kagzi/v1"
)

type blocker = kagziv1.ExplainWorkflowResponse_Blocker

const (
	blockedByNothing   = kagziv1.ExplainWorkflowResponse_BLOCKER_NONE
	blockedByNoWorker  = kagziv1.ExplainWorkflowResponse_BLOCKER_NO_WORKER
	blockedByWorkers   = kagziv1.ExplainWorkflowResponse_BLOCKER_WORKERS_BUSY
	blockedByRetry     = kagziv1.ExplainWorkflowResponse_BLOCKER_RETRY_DELAY
	blockedByTimer     = kagziv1.ExplainWorkflowResponse_BLOCKER_TIMER
	blockedBySignal    = kagziv1.ExplainWorkflowResponse_BLOCKER_SIGNAL
	blockedByChild     = kagziv1.ExplainWorkflowResponse_BLOCKER_CHILD
	blockedByPause     = kagziv1.ExplainWorkflowResponse_BLOCKER_PAUSED
	blockedByKey       = kagziv1.ExplainWorkflowResponse_BLOCKER_CONCURRENCY_LIMIT
	blockedByNamespace = kagziv1.ExplainWorkflowResponse_BLOCKER_NAMESPACE_DISABLED
	blockedByStart     = kagziv1.ExplainWorkflowResponse_BLOCKER_NOT_YET_STARTED
)

// plight is a blocked run and its expected explanation. since and next are read from the run and
// its steps.
type plight struct {
	run       string
	namespace string
	blocker   blocker
	summary   string
	later     string // the summary if more than a second has passed meanwhile; empty: the same
	detail    string
	since     func(w *kagziv1.Workflow, steps []*kagziv1.Step) *timestamppb.Timestamp
	next      func(w *kagziv1.Workflow, steps []*kagziv1.Step) *timestamppb.Timestamp
}

func sinceDue(w *kagziv1.Workflow, _ []*kagziv1.Step) *timestamppb.Timestamp     { return w.WakeUpAt }
func sinceEnd(w *kagziv1.Workflow, _ []*kagziv1.Step) *timestamppb.Timestamp     { return w.FinishedAt }
func sinceCreated(w *kagziv1.Workflow, _ []*kagziv1.Step) *timestamppb.Timestamp { return w.CreatedAt }
func sinceStarted(w *kagziv1.Workflow, _ []*kagziv1.Step) *timestamppb.Timestamp { return w.StartedAt }
func sinceStep(_ *kagziv1.Workflow, steps []*kagziv1.Step) *timestamppb.Timestamp {
	return steps[0].StartedAt
}
func sinceFailure(_ *kagziv1.Workflow, steps []*kagziv1.Step) *timestamppb.Timestamp {
	return steps[0].FinishedAt
}
func nextDue(w *kagziv1.Workflow, _ []*kagziv1.Step) *timestamppb.Timestamp { return w.WakeUpAt }
func nextTimeout(_ *kagziv1.Workflow, steps []*kagziv1.Step) *timestamppb.Timestamp {
	return steps[0].TimeoutAt
}
func nextGrace(w *kagziv1.Workflow, _ []*kagziv1.Step) *timestamppb.Timestamp {
	return w.CancelGraceUntil
}
func never(*kagziv1.Workflow, []*kagziv1.Step) *timestamppb.Timestamp { return nil }

// explained is a server on which each run has its own queue.
type explained struct {
	*Server
	t *testing.T
}

func (e explained) worker(queue string, change ...func(*kagziv1.RegisterRequest)) *unaryWorker {
	return e.register(e.t, append([]func(*kagziv1.RegisterRequest){func(r *kagziv1.RegisterRequest) {
		r.TaskQueue = queue
	}}, change...)...)
}

// held returns a run that a worker of its own holds.
func (e explained) held(queue string, change ...func(*kagziv1.StartWorkflowRequest)) (string, *unaryWorker,
	*kagziv1.Task) {
	run := e.start(e.t, append([]func(*kagziv1.StartWorkflowRequest){ofQueue(queue)}, change...)...)
	w := e.worker(queue)
	return run, w, w.take(e.t)
}

func (e explained) ended() []plight {
	ctx := within(e.t, time.Minute)
	done, w, task := e.held("completed")
	w.complete(e.t, task, "")
	broken, w, task := e.held("failed")
	w.failFor(e.t, task, "no stock")
	gone, killed := e.start(e.t, ofQueue("cancelled")), e.start(e.t, ofQueue("terminated"))
	fine(e.workflows().CancelWorkflow(ctx, &kagziv1.CancelWorkflowRequest{RunId: gone, Reason: "changed my mind"}))(e.t)
	fine(e.workflows().TerminateWorkflow(ctx, &kagziv1.TerminateWorkflowRequest{RunId: killed, Reason: "out of hand"}))(
		e.t)
	late := e.start(e.t, ofQueue("late"), func(r *kagziv1.StartWorkflowRequest) {
		r.DeadlineAt = e.ahead(500 * time.Millisecond)
	})
	e.await(e.t, late)
	loop, w, task := e.held("loop")
	next := fine(w.workers().CompleteWorkflow(
		ctx, &kagziv1.CompleteWorkflowRequest{RunId: loop, LeaseToken: task.LeaseToken,
			ContinueAs: &kagziv1.StartWorkflowRequest{}}))(e.t)
	return []plight{
		{run: done, blocker: blockedByNothing, summary: "completed ", since: sinceEnd, next: never},
		{run: broken, blocker: blockedByNothing, summary: ": no stock", detail: "workflow retry " + broken,
			since: sinceEnd, next: never},
		{run: gone, blocker: blockedByNothing, summary: ": changed my mind", since: sinceEnd, next: never},
		{run: killed, blocker: blockedByNothing, summary: ": out of hand", since: sinceEnd, next: never},
		{run: late, blocker: blockedByNothing, summary: "timed out ", since: sinceEnd, next: never},
		{run: loop, blocker: blockedByNothing, summary: "continued as run " + next.ContinuedAsRunId, since: sinceEnd,
			next: never},
	}
}

func (e explained) atWork() []plight {
	ctx := within(e.t, time.Minute)
	idle, w, _ := e.held("idle")
	busy, steps, task := e.held("busy", func(r *kagziv1.StartWorkflowRequest) {
		// half an hour is left, so the hours in the text stay the same
		r.Timeouts = &kagziv1.TimeoutConfig{ExecutionTimeoutMs: 9_000_000}
	})
	fine(steps.workers().BeginStep(ctx, &kagziv1.BeginStepRequest{
		RunId: busy, StepName: "charge", LeaseToken: task.LeaseToken}))(e.t)
	told, _, _ := e.held("told")
	fine(e.workflows().CancelWorkflow(ctx, &kagziv1.CancelWorkflowRequest{
		RunId: told, Grace: hour, Reason: "closing"}))(e.t)
	return []plight{
		{run: idle, blocker: blockedByNothing, summary: "runs on worker " + w.id,
			detail: "the worker's last heartbeat was",
			since:  sinceStarted, next: never},
		{run: busy, blocker: blockedByNothing, summary: "runs step charge on worker " + steps.id,
			detail: "its deadline ends it in 2h", since: sinceStep, next: nextTimeout},
		{run: told, blocker: blockedByNothing, summary: "runs on worker ", detail: "cancellation was requested",
			since: sinceStarted, next: nextGrace},
	}
}

func (e explained) waiting() []plight {
	ctx := within(e.t, time.Minute)
	nap, w, task := e.held("timer")
	fine(w.workers().Sleep(ctx, &kagziv1.SleepRequest{
		RunId: nap, StepId: "cool-off", Duration: hour, LeaseToken: task.LeaseToken}))(e.t)
	endless, w, task := e.held("signal")
	fine(w.workers().AwaitSignal(ctx, &kagziv1.AwaitSignalRequest{
		RunId: endless, StepName: "approval:2", SignalName: "approval", LeaseToken: task.LeaseToken}))(e.t)
	limited, w, task := e.held("limited")
	fine(w.workers().AwaitSignal(ctx, &kagziv1.AwaitSignalRequest{
		RunId: limited, StepName: "approval", SignalName: "approval", Timeout: durationpb.New(48 * time.Hour),
		LeaseToken: task.LeaseToken}))(e.t)
	parent, w, task := e.held("parent")
	child := fine(w.workers().StartChild(ctx, &kagziv1.StartChildRequest{StepName: "ship", LeaseToken: task.LeaseToken,
		Child: &kagziv1.StartWorkflowRequest{WorkflowType: "t", TaskQueue: "nowhere", ParentRunId: parent}}))(
		e.t).ChildRunId
	fine(w.workers().AwaitChildren(ctx, &kagziv1.AwaitChildrenRequest{
		RunId: parent, LeaseToken: task.LeaseToken, ChildRunIds: []string{child}}))(e.t)
	policy := func(r *kagziv1.StartWorkflowRequest) {
		r.RetryPolicy = &kagziv1.RetryPolicy{MaximumAttempts: 10, InitialIntervalMs: 3_600_000,
			MaximumIntervalMs: 3_600_000, Jitter: -1}
	}
	step, w, task := e.held("step", policy)
	fine(w.workers().FailStep(ctx, &kagziv1.FailStepRequest{
		RunId: step, StepId: "charge", LeaseToken: task.LeaseToken,
		Error: &kagziv1.ErrorDetail{Message: "card declined"}}))(e.t)
	whole, w, task := e.held("whole", policy)
	fine(w.workers().FailWorkflow(ctx, &kagziv1.FailWorkflowRequest{
		RunId: whole, LeaseToken: task.LeaseToken, Error: &kagziv1.ErrorDetail{Message: "x"}}))(e.t)
	later := e.start(e.t, ofQueue("later"), func(r *kagziv1.StartWorkflowRequest) { r.StartAt = e.ahead(time.Hour) })
	return []plight{
		{run: nap, blocker: blockedByTimer, summary: "sleeps in cool-off, wakes in ", since: sinceStep, next: nextDue},
		{run: endless, blocker: blockedBySignal, summary: "waits for signal approval, without a timeout",
			detail: "workflow signal " + endless + " approval", since: sinceStep, next: never},
		{run: limited, blocker: blockedBySignal, summary: "waits for signal approval, times out in 2d",
			later: "times out in 1d23h", since: sinceStep, next: nextDue},
		{run: parent, blocker: blockedByChild, summary: "waits for child run " + child,
			detail: "workflow explain " + child, since: sinceStep, next: never},
		{run: step, blocker: blockedByRetry, summary: "retries charge, attempt 2 of 10 in 1h",
			later: "retries charge, attempt 2 of 10 in 59m", since: sinceFailure, next: nextDue},
		{run: whole, blocker: blockedByRetry, summary: "retries the whole run, attempt 2 of 10 in 1h",
			later: "retries the whole run, attempt 2 of 10 in 59m", next: nextDue},
		{run: later, blocker: blockedByStart, summary: "starts in 1h", later: "starts in 59m",
			since: sinceCreated, next: nextDue},
	}
}

func (e explained) due() []plight {
	ctx := within(e.t, time.Minute)
	alone := e.start(e.t, ofQueue("alone"))
	other := e.worker("types", func(r *kagziv1.RegisterRequest) { r.WorkflowTypes = []string{"mail"} })
	kind := e.start(e.t, ofQueue("types"))
	plain := e.worker("needs")
	picky := e.start(e.t, ofQueue("needs"), func(r *kagziv1.StartWorkflowRequest) {
		r.Requirements = map[string]string{"gpu": "true"}
	})
	going := e.worker("drains")
	if err := drain(e.t, e.Server, going.id); err != nil {
		e.t.Fatal(err)
	}
	left := e.start(e.t, ofQueue("drains"))
	full := e.worker("full", func(r *kagziv1.RegisterRequest) { r.MaxConcurrent = 1 })
	e.start(e.t, ofQueue("full"))
	held := full.take(e.t)
	crowded := e.start(e.t, ofQueue("full"))
	fine(e.workers().Heartbeat(ctx, &kagziv1.HeartbeatRequest{
		WorkerId: full.id, ActiveCount: 1, HeldIsWhole: true,
		Held: []*kagziv1.Lease{{RunId: held.RunId, LeaseToken: held.LeaseToken}}}))(e.t)
	one := e.worker("one", func(r *kagziv1.RegisterRequest) { r.QueueConcurrencyLimit = proto.Int32(1) })
	e.start(e.t, ofQueue("one"))
	one.take(e.t)
	behind := e.start(e.t, ofQueue("one"))
	soon := e.start(e.t, ofQueue("soon"))
	ready := e.worker("soon")
	return []plight{
		{run: alone, blocker: blockedByNoWorker, summary: "no online worker serves type t in queue alone",
			detail: "no worker is connected to queue alone", since: sinceDue, next: never},
		{run: kind, blocker: blockedByNoWorker, summary: "no online worker serves type t in queue types",
			detail: "worker " + other.id + " serves the queue, but not type t: it serves mail", since: sinceDue,
			next: never},
		{run: picky, blocker: blockedByNoWorker, summary: "in queue needs with gpu=true",
			detail: "worker " + plain.id + " does not offer gpu=true", since: sinceDue, next: never},
		{run: left, blocker: blockedByNoWorker, summary: "no online worker",
			detail: "worker " + going.id + " is draining", since: sinceDue, next: never},
		{run: crowded, blocker: blockedByWorkers, summary: "all workers that could take it are busy (1)",
			detail: "worker " + full.id + " runs 1 of 1", since: sinceDue, next: never},
		{run: behind, blocker: blockedByWorkers, summary: "all workers that could take it are busy (1)",
			detail: "1 of at most 1 runs of its queue are running", since: sinceDue, next: never},
		{run: soon, blocker: blockedByNothing, summary: "about to be handed to worker " + ready.id,
			later: "not yet claimed by 1 worker with a free slot", since: sinceDue, next: never},
	}
}

func (e explained) keptBack() []plight {
	ctx := within(e.t, time.Minute)
	paused := e.start(e.t, ofQueue("paused"))
	fine(e.workflows().PauseWorkflow(ctx, &kagziv1.PauseWorkflowRequest{RunId: paused, Reason: "wrong price"}))(e.t)
	_, keys, _ := e.held("keys", keyed("customer-1", 1))
	gated := e.start(e.t, ofQueue("keys"), keyed("customer-1", 1))
	second := e.start(e.t, ofQueue("keys"), keyed("customer-1", 1))
	for inLine := ""; !strings.Contains(inLine, "1 run is ahead"); {
		keys.wantNothing(e.t, "while the key's first run is held")
		got := fine(e.workflows().ExplainWorkflow(ctx, &kagziv1.ExplainWorkflowRequest{RunId: second}))(e.t)
		if got.Blocker != blockedByKey {
			e.t.Errorf("before a claim has met it, the run is explained by %s: %q", got.Blocker, got.Summary)
		}
		inLine = strings.Join(got.Details, "\n")
	}
	closed := e.start(e.t, func(r *kagziv1.StartWorkflowRequest) { r.Namespace = "closed" })
	fine(e.namespaces().DisableNamespace(ctx, &kagziv1.DisableNamespaceRequest{Namespace: "closed"}))(e.t)
	return []plight{
		{run: paused, blocker: blockedByPause, summary: "paused by local ", detail: "workflow resume " + paused,
			since: func(*kagziv1.Workflow, []*kagziv1.Step) *timestamppb.Timestamp {
				return fine(e.admin().ListAuditEvents(
					ctx, &kagziv1.ListAuditEventsRequest{Namespace: "default", SubjectId: ptr(paused)}))(
					e.t).Events[0].At
			}, next: never},
		{run: gated, blocker: blockedByKey,
			summary: "waits for a slot of concurrency key customer-1, which allows 1 run at a time",
			detail:  "and 0 runs are ahead", since: sinceCreated, next: never},
		{run: second, blocker: blockedByKey, summary: "concurrency key customer-1",
			detail: "and 1 run is ahead", since: sinceCreated, next: never},
		{run: closed, namespace: "closed", blocker: blockedByNamespace,
			summary: "due, but namespace closed is disabled", detail: "namespace enable closed", since: sinceDue,
			next: never},
	}
}

func TestEveryBlockerIsExplained(t *testing.T) {
	eachServer(t, patient, func(t *testing.T, s *Server) {
		e := explained{s, t}
		seen := map[blocker]bool{}
		for _, stage := range []func() []plight{e.ended, e.atWork, e.waiting, e.due, e.keptBack} {
			for _, p := range stage() {
				seen[p.blocker] = true
				e.check(p)
			}
		}
		for number, name := range kagziv1.ExplainWorkflowResponse_Blocker_name {
			if !seen[blocker(number)] && number != 0 {
				t.Errorf("no run was blocked by %s", name)
			}
		}
	})
}

func (e explained) check(p plight) {
	e.t.Helper()
	ctx := within(e.t, time.Minute)
	got := fine(e.workflows().ExplainWorkflow(
		ctx, &kagziv1.ExplainWorkflowRequest{Namespace: p.namespace, RunId: p.run}))(e.t)
	w := fine(e.workflows().GetWorkflow(ctx, &kagziv1.GetWorkflowRequest{Namespace: p.namespace, RunId: p.run}))(
		e.t).Workflow
	steps := fine(e.admin().ListSteps(ctx, &kagziv1.ListStepsRequest{Namespace: p.namespace, RunId: p.run}))(e.t).Steps
	said := strings.Contains(got.Summary, p.summary) || p.later != "" && strings.Contains(got.Summary, p.later)
	if got.Blocker != p.blocker || !said || !strings.Contains(strings.Join(got.Details, "\n"), p.detail) {
		e.t.Errorf("%v\nis explained by %s: %q, %q\nwant %s: %q, %q", w, got.Blocker, got.Summary, got.Details,
			p.blocker, p.summary, p.detail)
	}
	if p.since != nil && !proto.Equal(got.Since, p.since(w, steps)) {
		e.t.Errorf("%q: since %s, want %s", got.Summary, got.Since.AsTime(), p.since(w, steps).AsTime())
	}
	if !proto.Equal(got.NextAt, p.next(w, steps)) {
		e.t.Errorf("%q: next at %s, want %s", got.Summary, got.NextAt.AsTime(), p.next(w, steps).AsTime())
	}
}

// What a worker says of blocked code is shown while it holds the run, until its next heartbeat.
func TestBlockedCodeIsExplained(t *testing.T) {
	eachServer(t, patient, func(t *testing.T, s *Server) {
		ctx := within(t, time.Minute)
		run, w, _ := explained{s, t}.held("blocked")
		explain := func() *kagziv1.ExplainWorkflowResponse {
			return fine(s.workflows().ExplainWorkflow(ctx, &kagziv1.ExplainWorkflowRequest{RunId: run}))(t)
		}
		fine(s.workers().Heartbeat(ctx, &kagziv1.HeartbeatRequest{WorkerId: w.id,
			Blocked: []*kagziv1.BlockedCode{{RunId: run, Branch: "2", Stack: "main.wait()"}}}))(t)
		got := explain()
		if !strings.Contains(got.Summary, "where the code of branch 2 is blocked outside of SDK calls for") ||
			len(got.Blocked) != 1 || got.Blocked[0].Stack != "main.wait()" || got.Blocked[0].Since == nil {
			t.Errorf("explained as %v", got)
		}
		fine(s.workers().Heartbeat(ctx, &kagziv1.HeartbeatRequest{WorkerId: w.id, Stats: &kagziv1.WorkerStats{}}))(t)
		if got := explain(); strings.Contains(got.Summary, "blocked") || len(got.Blocked) > 0 {
			t.Errorf("after the next heartbeat explained as %v", got)
		}
	})
}
