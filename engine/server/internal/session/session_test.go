package session

import (
	"cmp"
	"context"
	"errors"
	"log/slog"
	"reflect"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/reflect/protoreflect"
	"google.golang.org/protobuf/types/known/durationpb"

	"github.com/kagzi/kagzi/engine"
	"github.com/kagzi/kagzi/engine/matching"
	"github.com/kagzi/kagzi/engine/server/internal/servertest"
	"github.com/kagzi/kagzi/engine/server/internal/wire"
	kagziv1 "github.com/kagzi/kagzi/proto/kagzi/v1"
)

// polling is a poller in a matcher, with a function that says whether it may get runs.
func polling(b *servertest.Books) (w *session, waits func() bool) {
	w = newSession(b)
	d := matching.New(b, nil)
	w.poller = d.Join(matching.Request{Worker: &w.worker, Queues: []string{"q"}, Types: []string{"t"},
		Deliver: w.deliver})
	return w, func() bool { return isPolling(d) }
}

// isPolling says whether a poller waits for a run of queue q and type t.
func isPolling(d *matching.Matcher) bool {
	return d.Waits(&engine.StartRun{Run: engine.Run{
		ID: servertest.SomeID(9), Namespace: "default", Queue: "q", Type: "t"}})
}

func aTask(n int) engine.Task {
	id := servertest.SomeID(n)
	return engine.Task{Run: engine.Run{ID: id}, Lease: engine.Lease{RunID: id, Token: engine.NewToken()}}
}

func leaseWords(t engine.Task) []*kagziv1.Lease {
	return []*kagziv1.Lease{{RunId: t.Run.ID.String(), LeaseToken: t.Lease.Token.Wire()}}
}

// do has the session carry out an operation, which is to be done.
func (w *session) do(t *testing.T, r *kagziv1.SessionRequest) *kagziv1.SessionResponse {
	t.Helper()
	r.Seq = 1
	answer, err := w.call(t.Context(), engine.Sequenced{}, r)
	if err != nil {
		t.Fatal(err)
	}
	return answer
}

func beatOf(held []*kagziv1.Lease) *kagziv1.SessionRequest {
	return &kagziv1.SessionRequest{Operation: &kagziv1.SessionRequest_Heartbeat{
		Heartbeat: &kagziv1.HeartbeatRequest{Held: held}}}
}

func TestRunsThatWereNotSentAreReleased(t *testing.T) {
	b := &servertest.Books{}
	w := newSession(b) // which sends nothing
	w.say(outgoing{message: &kagziv1.SessionResponse{}})
	var want []engine.ID
	for n := range 3 {
		task := aTask(n + 1)
		want = append(want, task.Run.ID)
		if !w.deliver(task) {
			t.Fatal("the session does not take a run")
		}
	}
	if err := w.finish(); err != nil {
		t.Fatal(err)
	}
	var got []engine.ID
	for _, p := range b.Asked {
		got = append(got, p.(engine.ReleaseParams).Lease.RunID)
	}
	if !slices.Equal(got, want) {
		t.Errorf("handed back %v, want %v", got, want)
	}
}

func TestASessionEndsWhenItsOperationsAreAnswered(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newSession(&servertest.Books{})
		answer, over := make(chan struct{}), make(chan struct{})
		w.calls.Go(func() { <-answer })
		go func() {
			defer close(over)
			_ = w.finish()
		}()
		synctest.Wait()
		select {
		case <-over:
			t.Error("the session ended while an operation was under way")
		default:
		}
		close(answer)
		<-over
	})
}

func TestWhatAHeartbeatMeansToItsSession(t *testing.T) {
	b := &servertest.Books{}
	w, waits := polling(b)
	w.do(t, &kagziv1.SessionRequest{Operation: &kagziv1.SessionRequest_Credit{Credit: &kagziv1.Credit{Tasks: 1}}})
	if !waits() {
		t.Error("no run is claimed for its credit")
	}
	// Of the leases of an earlier session, the first one tells; whatever notified before may have
	// been about them.
	earlier, later, lost := aTask(1), aTask(2), aTask(3)
	if w.do(t, beatOf(leaseWords(earlier))); len(w.wake) != 1 {
		t.Error("nobody looks at the leases of an earlier session")
	}
	w.do(t, beatOf(leaseWords(later)))
	w.mustLook(t)
	if words := told(w); len(words) != 1 || words[0].LeaseToken != earlier.Lease.Token.Wire() {
		t.Errorf("told %v, want that the lease of the earlier session is over", words)
	}
	w.deliver(lost)
	b.Beat.Lost = []engine.Lease{lost.Lease}
	w.do(t, beatOf(leaseWords(lost)))
	w.mustLook(t)
	if words := told(w); len(words) != 0 {
		t.Errorf("told %v, of which the answer to the heartbeat told", words)
	}
	cancelled := aTask(4)
	w.deliver(cancelled)
	b.Held = []engine.Held{{Lease: cancelled.Lease, GraceUntil: servertest.Began}}
	b.Beat = engine.Beat{Cancelling: b.Held}
	w.do(t, beatOf(leaseWords(cancelled)))
	w.mustLook(t)
	if words := told(w); len(words) != 0 {
		t.Errorf("told %v to stop, of which the answer to the heartbeat told", words)
	}
	if !waits() {
		t.Error("a heartbeat takes the credit")
	}
	b.Beat = engine.Beat{Status: engine.WorkerDraining}
	if a := w.do(t, beatOf(nil)); !a.GetHeartbeat().GetShouldDrain() || waits() {
		t.Errorf("a worker that is to drain is told %v, and runs are claimed for it: %t", a, waits())
	}
}

func TestWhatAGoodbyeMeansToItsSession(t *testing.T) {
	for name, c := range map[string]struct {
		drain         bool
		err           error
		amid, after   bool // whether a run that was claimed by then is still handed out
		over, refused bool
	}{
		"it counts":      {over: true},
		"it does not":    {err: engine.ErrUnavailable, after: true, refused: true},
		"it only drains": {drain: true, amid: true, after: true},
	} {
		t.Run(name, func(t *testing.T) {
			b := &servertest.Books{}
			w, waits := polling(b)
			w.poller.AddCredit(1)
			over, amid := false, true
			w.end = func(error) { over = true }
			b.Leaves = func() error { amid = w.deliver(aTask(1)); return c.err }
			_, err := w.goodbye(t.Context(), &kagziv1.DeregisterRequest{Drain: c.drain})
			if after := w.deliver(aTask(2)); amid != c.amid || after != c.after || over != c.over ||
				(err != nil) != c.refused || waits() {
				t.Errorf(
					"handed out meanwhile: %t, and afterwards: %t, want %t and %t; over: %t; %v; runs are claimed for it: %t",
					amid, after, c.amid, c.after, over, err, waits())
			}
		})
	}
}

func TestWhatTheStatusOfAWorkerMeansToItsSession(t *testing.T) {
	for name, c := range map[string]struct {
		status  engine.WorkerStatus
		change  func(w *session)
		drained int
		ends    bool
	}{
		"ONLINE":                      {status: engine.WorkerOnline},
		"ONLINE, but without a place": {status: engine.WorkerOnline, change: (*session).detach, ends: true},
		"OFFLINE":                     {status: engine.WorkerOffline, ends: true},
		"OFFLINE, by its goodbye": {status: engine.WorkerOffline, change: func(w *session) {
			w.leaving = true
		}},
		"OFFLINE, when the session ended": {status: engine.WorkerOffline, change: (*session).close},
		"DRAINING":                        {status: engine.WorkerDraining, drained: 1},
		"DRAINING, as it said itself": {status: engine.WorkerDraining, change: func(w *session) {
			w.draining = true
		}},
	} {
		t.Run(name, func(t *testing.T) {
			w, waits := polling(&servertest.Books{Status: c.status})
			w.poller.AddCredit(1)
			ended := false
			w.end = func(error) { ended = true }
			if c.change != nil {
				c.change(w)
			}
			w.mustLook(t)
			w.mustLook(t)
			drained := 0
			for _, o := range w.out.unasked {
				if o.message.GetDrain() != nil {
					drained++
				}
			}
			if ended != c.ends || drained != c.drained {
				t.Errorf("ended: %t, told to drain %d times, want %t and %d", ended, drained, c.ends, c.drained)
			}
			if c.status == engine.WorkerDraining && waits() {
				t.Error("runs are claimed for a worker that drains")
			}
		})
	}
}

// registrar takes a second to register a worker.
type registrar struct {
	*servertest.Books
	begun atomic.Int32
}

func (r *registrar) RegisterWorker(ctx context.Context, p engine.RegisterWorkerParams) (engine.Worker, error) {
	r.begun.Add(1)
	time.Sleep(time.Second)
	return p.Worker, ctx.Err()
}

func TestAFewWorkersAreRegisteredAtATime(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		store := &registrar{Books: &servertest.Books{}}
		s, stopping := newTestService(store), make(chan struct{})
		s.stopping = stopping
		answers := make(chan error, 3*registeredAtOnce)
		come := func(ctx context.Context, n int) {
			for range n {
				go func() {
					_, err := s.registerInTurn(ctx, &kagziv1.RegisterRequest{
						TaskQueue: "q", WorkflowTypes: []string{"t"}})
					answers <- err
				}()
			}
			synctest.Wait()
		}
		come(t.Context(), registeredAtOnce)
		hungUp, hangUp := context.WithCancel(t.Context())
		come(hungUp, 2)
		come(t.Context(), 3)
		if n := store.begun.Load(); n != registeredAtOnce {
			t.Errorf("%d are being registered at once, want %d", n, registeredAtOnce)
		}
		hangUp()
		for range 2 {
			if err := <-answers; !errors.Is(err, context.Canceled) {
				t.Errorf("who hung up while it waited: %v, want that", err)
			}
		}
		time.Sleep(time.Second)
		synctest.Wait()
		if n := store.begun.Load(); n != registeredAtOnce+3 {
			t.Errorf("%d were registered in their turn, want the %d who waited and have not hung up",
				n-registeredAtOnce, 3)
		}
		time.Sleep(time.Second)
		for range registeredAtOnce + 3 {
			if err := <-answers; err != nil {
				t.Error(err)
			}
		}
		come(t.Context(), registeredAtOnce)
		close(stopping)
		come(t.Context(), 1)
		if err := <-answers; !errors.Is(err, wire.ErrStopping) {
			t.Errorf("who comes while the server stops: %v, want that it is", err)
		}
		time.Sleep(time.Second)
	})
}

func TestASessionIsNotNotifiedOfItsOwnRegistration(t *testing.T) {
	w := newSession(&servertest.Books{})
	w.service.sessions.add(w)
	for _, c := range []struct {
		registered bool
		wakes      int
	}{{registered: true}, {wakes: 1}} {
		w.service.Notify(engine.Notification{Kind: engine.NotifyWorker, Name: w.worker.ID, Registered: c.registered})
		if got := len(w.wake); got != c.wakes {
			t.Errorf("registered: %t: the session was woken %d times, want %d", c.registered, got, c.wakes)
		}
	}
}

func TestWhatAnOperationMeansToItsSession(t *testing.T) {
	waiting := engine.AwaitedSignal{Waiting: true}
	came := engine.AwaitedSignal{Step: engine.Step{
		Status: engine.StepCompleted, Output: engine.Payload{Data: []byte("1")}}}
	empty := engine.AwaitedSignal{Step: engine.Step{Status: engine.StepCompleted}}
	elapsed := engine.AwaitedSignal{Step: engine.Step{Status: engine.StepCompleted, TimedOut: true}}
	retried, final := engine.Verdict{Retry: true}, engine.Verdict{}
	ended := []engine.Step{{ID: servertest.SomeID(8), ChildRunID: servertest.SomeID(7), Status: engine.StepCompleted}}
	lost := func(id engine.ID) error { return engine.LeaseLost(id, engine.RunRunning) }
	down := func(engine.ID) error { return engine.ErrUnavailable }

	failStep := func(hold bool) *kagziv1.SessionRequest {
		return &kagziv1.SessionRequest{Operation: &kagziv1.SessionRequest_FailStep{
			FailStep: &kagziv1.FailStepRequest{StepId: "s", Hold: hold, Error: &kagziv1.ErrorDetail{Message: "no"}}}}
	}
	sleep := func(hold bool) *kagziv1.SessionRequest {
		return &kagziv1.SessionRequest{Operation: &kagziv1.SessionRequest_Sleep{
			Sleep: &kagziv1.SleepRequest{StepId: "s", Hold: hold, Duration: durationpb.New(time.Minute)}}}
	}
	signal := func(hold bool) *kagziv1.SessionRequest {
		return &kagziv1.SessionRequest{Operation: &kagziv1.SessionRequest_AwaitSignal{
			AwaitSignal: &kagziv1.AwaitSignalRequest{StepName: "s", SignalName: "s", Hold: hold}}}
	}
	children := func(hold bool) *kagziv1.SessionRequest {
		return &kagziv1.SessionRequest{Operation: &kagziv1.SessionRequest_AwaitChildren{
			AwaitChildren: &kagziv1.AwaitChildrenRequest{ChildRunIds: []string{servertest.AnID}, Hold: hold}}}
	}
	for name, c := range map[string]struct {
		request *kagziv1.SessionRequest
		books   *servertest.Books
		again   bool // the run was claimed again meanwhile, for the same worker
		over    bool // the run is in the worker's hands no more
	}{
		"a step begins": {request: &kagziv1.SessionRequest{
			Operation: &kagziv1.SessionRequest_BeginStep{BeginStep: &kagziv1.BeginStepRequest{StepName: "s"}}}},
		"a step is done": {request: &kagziv1.SessionRequest{
			Operation: &kagziv1.SessionRequest_CompleteStep{CompleteStep: &kagziv1.CompleteStepRequest{StepId: "s"}}}},
		"a child": {request: &kagziv1.SessionRequest{
			Operation: &kagziv1.SessionRequest_StartChild{StartChild: &kagziv1.StartChildRequest{
				StepName: "s", Child: &kagziv1.StartWorkflowRequest{WorkflowType: "t"}}}}},
		"a note": {request: &kagziv1.SessionRequest{
			Operation: &kagziv1.SessionRequest_SetNote{SetNote: &kagziv1.SetNote{Note: "n"}}}},
		"a step fails, and is retried": {request: failStep(false), books: &servertest.Books{StepVerdict: retried},
			over: true},
		"a step fails, is retried, and the run held": {
			request: failStep(true), books: &servertest.Books{StepVerdict: retried}},
		"a step fails for good": {
			request: failStep(false), books: &servertest.Books{StepVerdict: final}},
		"a sleep":                      {request: sleep(false), over: true},
		"a sleep, and the run is held": {request: sleep(true)},
		"a sleep that finds the lease over": {
			request: sleep(true), books: &servertest.Books{Refuse: lost}, over: true},
		"a sleep that finds the lease over, and the run claimed again": {
			request: sleep(false), books: &servertest.Books{Refuse: lost}, again: true},
		"a sleep that the store does not answer": {
			request: sleep(false), books: &servertest.Books{Refuse: down}},
		"a wait for a signal": {
			request: signal(false), books: &servertest.Books{Awaited: waiting}, over: true},
		"a wait for a signal, and the run is held": {
			request: signal(true), books: &servertest.Books{Awaited: waiting}},
		"a wait for a signal that is there": {
			request: signal(false), books: &servertest.Books{Awaited: came}},
		"a wait for a signal that says nothing": {
			request: signal(false), books: &servertest.Books{Awaited: empty}},
		"a wait for a signal whose time is over": {
			request: signal(false), books: &servertest.Books{Awaited: elapsed}},
		"a wait for children":                      {request: children(false), over: true},
		"a wait for children, and the run is held": {request: children(true)},
		"a wait for children that have ended": {
			request: children(false), books: &servertest.Books{Children: ended}},
		"the run ends": {
			request: &kagziv1.SessionRequest{Operation: &kagziv1.SessionRequest_CompleteWorkflow{
				CompleteWorkflow: &kagziv1.CompleteWorkflowRequest{}}}, over: true},
		"the run fails": {request: &kagziv1.SessionRequest{
			Operation: &kagziv1.SessionRequest_FailWorkflow{FailWorkflow: &kagziv1.FailWorkflowRequest{
				Error: &kagziv1.ErrorDetail{Message: "no"}}}},
			books: &servertest.Books{Verdict: engine.RunVerdict{Verdict: engine.Verdict{Retry: true}}}, over: true},
		"the run is handed back": {request: &kagziv1.SessionRequest{
			Operation: &kagziv1.SessionRequest_ReleaseTask{ReleaseTask: &kagziv1.ReleaseTaskRequest{}}}, over: true},
	} {
		t.Run(name, func(t *testing.T) {
			b := cmp.Or(c.books, &servertest.Books{})
			w, _ := polling(b)
			w.worker.Namespace = "other"
			task := aTask(1)
			w.deliver(task)
			operation := chosen(c.request, "operation")
			for field, value := range map[protoreflect.Name]string{
				"run_id": task.Run.ID.String(), "lease_token": task.Lease.Token.Wire()} {
				if f := operation.Descriptor().Fields().ByName(field); f != nil {
					operation.Set(f, protoreflect.ValueOfString(value))
				}
			}
			if child := c.request.GetStartChild().GetChild(); child != nil {
				child.ParentRunId = task.Run.ID.String()
			}
			if c.again {
				w.held[task.Run.ID] = holding{token: engine.NewToken()}
			}
			c.request.Seq = 1
			answer, err := w.call(t.Context(), engine.Sequenced{}, c.request)
			if (err != nil) != (b.Refuse != nil) {
				t.Fatal(err)
			}
			if err == nil && !chosen(answer, "event").IsValid() {
				t.Errorf("the answer is %v, without what there is to say", answer)
			}
			if _, held := w.held[task.Run.ID]; held == c.over {
				t.Errorf("held: %t, want %t", held, !c.over)
			}
			asked := reflect.ValueOf(b.Asked[0]).FieldByName("Lease").Interface().(engine.Lease)
			if want := (engine.Lease{Namespace: "other", RunID: task.Run.ID, Token: task.Lease.Token}); asked != want {
				t.Errorf("the store was asked under %+v, want %+v", asked, want)
			}
		})
	}
}

// chosen is the message that is set in a choice of a message.
func chosen(m proto.Message, choice protoreflect.Name) protoreflect.Message {
	r := m.ProtoReflect()
	return r.Get(r.WhichOneof(r.Descriptor().Oneofs().ByName(choice))).Message()
}

func TestASessionRefusesOperationsWithoutAValidPlace(t *testing.T) {
	credit := func(seq, after int64, tasks int32) *kagziv1.SessionRequest {
		return &kagziv1.SessionRequest{Seq: seq, After: after,
			Operation: &kagziv1.SessionRequest_Credit{Credit: &kagziv1.Credit{Tasks: tasks}}}
	}
	for field, requests := range map[string][]*kagziv1.SessionRequest{
		"seq":          {credit(0, 0, 1), credit(-1, 0, 1)},
		"after":        {credit(2, -1, 1), credit(2, 2, 1), credit(2, 3, 1)},
		"credit.tasks": {credit(1, 0, 0), credit(1, 0, engine.MaxConcurrent+1)},
		"":             {credit(2, 1, 1), credit(1, 0, engine.MaxConcurrent)},
	} {
		for _, r := range requests {
			w, waits := polling(&servertest.Books{})
			_, err := w.call(t.Context(), engine.Sequenced{}, r)
			var refused *engine.Error
			if errors.As(err, &refused); (err != nil) != (field != "") || err != nil && refused.Field != field ||
				waits() != (field == "") {
				t.Errorf("%v: %v, carried out: %t, want field %q refused", r, err, waits(), field)
			}
		}
	}
}

func TestUntoldWorkersAreLoggedOnceAMinute(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var log strings.Builder
		s := newTestService(&servertest.KeyStore{})
		s.log = slog.New(slog.NewTextHandler(&log, nil))
		look := func() {
			for range 100 {
				// of a worker that the store does not know
				(&session{service: s, worker: engine.Worker{ID: "w"}}).tellChanges(t.Context())
			}
		}
		for range 3 { // looks in one minute
			look()
			time.Sleep(15 * time.Second)
		}
		said := func() []string { return strings.Split(strings.TrimSpace(log.String()), "\n") }
		if got := said(); len(got) != 1 || !strings.Contains(got[0], "worker=w ") ||
			!strings.Contains(got[0], "others_since_last=0") {
			t.Errorf("within a minute the log says %q, want one line that names the first", got)
		}
		time.Sleep(15 * time.Second)
		look()
		if got := said(); len(got) != 2 || !strings.Contains(got[1], "others_since_last=299") {
			t.Errorf("a minute later the log says %q, want a second line with the 299 others", got)
		}
	})
}
