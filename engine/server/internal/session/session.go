package session

import (
	"context"
	"errors"
	"io"
	"log/slog"
	"sync"
	"sync/atomic"
	"time"

	"github.com/kagzi/kagzi/engine"
	"github.com/kagzi/kagzi/engine/matching"
	"github.com/kagzi/kagzi/engine/server/internal/async"
	"github.com/kagzi/kagzi/engine/server/internal/auth"
	"github.com/kagzi/kagzi/engine/server/internal/wire"
	kagziv1 "github.com/kagzi/kagzi/proto/kagzi/v1"
)

// maxUnanswered limits the operations of one session whose answers are not sent. Above it, nothing
// more is read.
const maxUnanswered = 4096

// session is one worker's stream.
type session struct {
	service *Service
	worker  engine.Worker
	poller  *matching.Poller
	out     outbox
	wake    chan struct{} // capacity one: the worker may have lost leases, or has to drain
	end     context.CancelCauseFunc
	room    chan struct{} // semaphore with one place for each unanswered operation
	// ordered says that the worker knows the order of results, so its lease continues after a sleep
	// that is over
	ordered bool
	heard   time.Time // when the last heartbeat, or the hello, was received
	calls   sync.WaitGroup
	// refused holds the refused operations, for those that build on them.
	refused refusals

	mu       sync.Mutex
	held     map[engine.ID]holding // known leases, of this session and earlier ones
	tasks    arrivals              // of this session
	named    bool                  // a heartbeat has named the leases of earlier sessions
	queues   map[string]runQueue   // by run: its operations in flight
	detached bool                  // a claim found the worker not ONLINE, so this session gets no more tasks
	recheck  bool                  // a held run had an operation in flight when changes were read
	draining bool                  // the worker was told to drain
	leaving  bool                  // its goodbye is in progress or done: no tasks are delivered
	closed   bool                  // no operations are executed any more
}

// holding is a lease of the session's worker.
type holding struct {
	token   engine.Token
	grace   time.Time // GraceUntil as last told to the worker; unset: it was not told to stop
	pausing bool      // the worker was told to pause the run
	unsent  bool      // the task waits in the outbox
	sent    time.Time // when the task was sent; unset: in an earlier session
	number  int64     // of the task among those sent, from 1; 0: not sent yet
}

// arrivals counts the tasks that a session has sent and that its worker has received.
type arrivals struct {
	sent     int64
	received int64
	counted  bool      // the worker reports what it has received
	moved    time.Time // when it last reported more
}

// Session serves one worker over one stream until the worker says goodbye, the stream fails, or a
// newer session of the same worker replaces it.
//
// Many thousands of sessions may be idle, so this goroutine keeps a small stack: work that needs a
// deep stack or may block runs in other goroutines that end, and large values are behind pointers.
func (s *Service) Session(stream kagziv1.WorkerService_SessionServer) error {
	ctx, end := context.WithCancelCause(stream.Context())
	defer end(nil)
	var hello *kagziv1.SessionRequest
	if err := auth.RunCall(ctx, func() (err error) { hello, err = helloOf(stream); return err }); err != nil {
		return err
	}
	worker, err := s.registerInTurn(ctx, hello.GetHello())
	if err != nil {
		return err
	}
	var w *session
	if err := auth.RunCall(context.WithoutCancel(ctx), func() error {
		w = s.welcome(worker, hello, stream, end)
		return nil
	}); err != nil {
		return err
	}
	s.sessions.add(w)
	defer s.sessions.remove(w)
	go w.receive(ctx, operationsOf(ctx), stream)

	err = w.serve(ctx)
	w.close()
	if over := auth.RunCall(ctx, w.finish); over != nil {
		return over
	}
	if errors.Is(err, io.EOF) || errors.Is(err, context.Canceled) {
		return nil // the worker closed the stream
	}
	return err
}

// finish waits until the operations in flight are answered, and returns unsent tasks to the queue.
func (w *session) finish() error {
	w.calls.Wait()
	w.returnUnsent(w.out.close())
	return nil
}

// helloOf receives the hello.
func helloOf(stream kagziv1.WorkerService_SessionServer) (*kagziv1.SessionRequest, error) {
	hello, err := stream.Recv()
	switch {
	case err != nil:
		return nil, err
	case hello.GetHello() == nil:
		return nil, engine.Invalid("hello", "must be the first operation of a session")
	case hello.Seq < 0:
		return nil, engine.Invalid("seq", "must not be negative, got %d", hello.Seq)
	}
	return hello, nil
}

// registeredAtOnce limits concurrent registrations. When thousands of workers connect at once, as
// after a restart, the others wait before they use much memory.
const registeredAtOnce = 64

// registerInTurn waits for its turn and registers the worker of a session.
func (s *Service) registerInTurn(ctx context.Context, r *kagziv1.RegisterRequest) (*engine.Worker, error) {
	select {
	case s.registering <- struct{}{}:
		defer func() { <-s.registering }()
	case <-ctx.Done():
		return nil, context.Cause(ctx)
	case <-s.stopping:
		return nil, wire.ErrStopping
	}
	var worker *engine.Worker
	if err := auth.RunCall(ctx, func() error {
		registered, err := s.register(ctx, r)
		worker = &registered
		return err
	}); err != nil {
		return nil, err
	}
	return worker, nil
}

// welcome makes the session of a registered worker and answers its hello.
func (s *Service) welcome(worker *engine.Worker, hello *kagziv1.SessionRequest,
	stream kagziv1.WorkerService_SessionServer, end context.CancelCauseFunc) *session {
	w := &session{
		service: s, worker: *worker, end: end, wake: make(chan struct{}, 1), room: make(chan struct{}, maxUnanswered),
		held: map[engine.ID]holding{}, queues: map[string]runQueue{}, heard: time.Now(),
		ordered: hello.GetHello().GetBuildId() != "",
	}
	w.out.stream, w.out.room, w.out.sentTask = stream.Send, w.room, w.sent
	w.out.batches = hello.GetHello().GetTakesBatches()
	w.poller = s.matcher.Join(matching.Request{
		Worker: &w.worker, Queues: worker.Queues, Types: worker.Types, Keeps: int(hello.GetHello().GetKeepsRuns()),
		Deliver: w.deliver, Refused: w.detach,
	})
	w.out.push(outgoing{message: &kagziv1.SessionResponse{
		Seq: hello.Seq, Event: &kagziv1.SessionResponse_Welcome{Welcome: s.registeredTo(worker)},
	}}, end)
	if worker.Status == engine.WorkerDraining {
		async.Notify(w.wake)
	}
	return w
}

// say queues a message that is no answer. It does not block on the network.
func (w *session) say(m outgoing) {
	m.unasked = true
	w.out.push(m, w.end)
}

// detach records that the matcher has dropped the poller because the worker is not ONLINE.
func (w *session) detach() {
	w.mu.Lock()
	w.detached = true
	w.mu.Unlock()
	async.Notify(w.wake)
}

// close stops new tasks and operations. It may be called again.
func (w *session) close() {
	w.mu.Lock()
	w.closed = true
	w.mu.Unlock()
	w.poller.Leave()
}

// deliver queues a claimed run for the worker.
func (w *session) deliver(t engine.Task) bool {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.leaving || w.closed {
		return false
	}
	old, held := w.held[t.Run.ID]
	if _, busy := w.queues[t.Run.ID.String()]; held && !busy {
		// The run was lost and claimed again before the worker was told, so it has to stop what it
		// does under the old lease. If an operation is in flight, its answer says so.
		w.say(w.stop(t.Run.ID, old.token, engine.RunRunning))
	}
	w.held[t.Run.ID] = holding{token: t.Lease.Token, grace: t.Run.GraceUntil, unsent: true}
	w.say(outgoing{lease: t.Lease, message: &kagziv1.SessionResponse{
		Event: &kagziv1.SessionResponse_Task{Task: wire.TaskTo(&t, w.service.options.WorkerLease)},
	}})
	return true
}

// sent records that a task was sent.
func (w *session) sent(l engine.Lease) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.tasks.sent++
	if h := w.held[l.RunID]; h.token == l.Token {
		h.unsent, h.sent, h.number = false, time.Now(), w.tasks.sent
		w.held[l.RunID] = h
	}
}

// inTransit returns the leases whose tasks the worker may not have received when it sent a
// heartbeat: on a slow connection a task can take longer than nameWithin. If nothing gets through
// for a limit, they no longer count as in transit, because the worker sends but does not receive.
//
// The limit is the worker lease. For a worker that reports tasks_received it is twice that: the
// worker then gives its runs up itself. It keeps runs with a longer heartbeat timeout, but begins
// no step of them until a heartbeat has named them.
func (w *session) inTransit(r *kagziv1.HeartbeatRequest) []engine.Lease {
	limit := w.service.options.WorkerLease
	if r.TasksReceived != nil {
		limit *= 2
	}
	moves := w.out.movedWithin(limit)
	tokens := make(map[string]bool, len(r.Held))
	for _, l := range r.Held {
		tokens[l.LeaseToken] = true
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	w.tasks.receive(r)
	comes := time.Since(w.tasks.moved) < limit
	var all []engine.Lease
	for id, h := range w.held {
		waits := h.unsent && (moves || comes)
		travels := w.tasks.counted && h.number > w.tasks.received && (comes || time.Since(h.sent) < limit)
		if (waits || travels || time.Since(h.sent) < w.service.nameWithin()) && !tokens[h.token.Wire()] {
			all = append(all, engine.Lease{RunID: id, Token: h.token})
		}
	}
	return all
}

// receive records how many tasks the worker has received, as a heartbeat reports it. An older
// heartbeat that arrives late changes nothing.
func (t *arrivals) receive(r *kagziv1.HeartbeatRequest) {
	if r.TasksReceived == nil {
		return
	}
	t.counted = true
	if n := *r.TasksReceived; n > t.received {
		t.received, t.moved = n, time.Now()
	}
}

// returnUnsent releases the runs whose tasks were not sent. Tasks lost on the way are released when
// the worker's next heartbeat does not name them.
func (w *session) returnUnsent(unsent []outgoing) {
	for _, o := range unsent {
		if !o.lease.Token.IsZero() {
			w.service.handBack(context.Background(), o.lease)
		}
	}
}

// serve sends changes to the worker until the session has to end, and returns the reason. Each
// check runs in its own goroutine, because many sessions are woken only rarely.
func (w *session) serve(ctx context.Context) error {
	wake, looked := w.wake, make(chan struct{}, 1)
	for {
		select {
		case <-wake:
			wake = nil // one check at a time
			go func() {
				w.tellChanges(ctx)
				looked <- struct{}{}
			}()
		case <-looked:
			wake = w.wake
		case <-ctx.Done():
			return context.Cause(ctx)
		case <-w.service.stopping:
			return wire.ErrStopping
		}
	}
}

// tellChanges sends the worker what changed about it.
func (w *session) tellChanges(ctx context.Context) {
	if err := w.look(ctx); err != nil && ctx.Err() == nil {
		// The answer to the next heartbeat says the same.
		w.service.untold.tell(w.service.log, w.worker.ID, err)
	}
}

// untoldEvery is the minimum interval of the log message of untold, in seconds. While the database
// does not answer, many thousands of sessions are woken again and again.
const untoldEvery = 60

// untold limits the log message that a worker could not be told its changes: when it was last
// logged, and how many times it was left out since.
type untold struct{ last, others atomic.Int64 }

func (u *untold) tell(log *slog.Logger, worker string, err error) {
	if !async.Elapsed(&u.last, untoldEvery) {
		u.others.Add(1)
		return
	}
	log.Warn("changes of a worker could not be read; its next heartbeat gets them", "worker", worker,
		"others_since_last", u.others.Swap(0), "error", err)
}

// look compares the leases and the status that the worker knows with those in the store, and tells
// the worker the differences.
func (w *session) look(ctx context.Context) error {
	w.mu.Lock()
	dropped := w.detached // read before the status, which must not be older
	w.mu.Unlock()
	worker, err := w.service.store.GetWorker(ctx, w.worker.ID)
	if err != nil {
		return err
	}
	if err := w.lookAtLeases(ctx); err != nil {
		return err
	}
	w.followStatus(&worker, dropped)
	return nil
}

// lookAtLeases tells the worker which of its runs it has lost, and which it has to stop or to pause.
func (w *session) lookAtLeases(ctx context.Context) error {
	w.mu.Lock()
	// copied before the leases are read from the store, so that all of it is committed
	before := make(map[engine.ID]engine.Token, len(w.held))
	for id, h := range w.held {
		before[id] = h.token
	}
	w.mu.Unlock()

	held, err := w.service.store.HeldBy(ctx, w.worker.ID)
	if err != nil {
		return err
	}
	for _, h := range held {
		if before[h.Lease.RunID] == h.Lease.Token {
			delete(before, h.Lease.RunID)
		}
		if w.pauseToldNow(h) {
			w.say(outgoing{message: &kagziv1.SessionResponse{
				Event: &kagziv1.SessionResponse_PauseTask{PauseTask: &kagziv1.PauseTask{
					RunId: h.Lease.RunID.String(), LeaseToken: h.Lease.Token.Wire(), TakenBack: !h.Pausing}}}})
		}
		if w.toldNow(h) {
			w.say(outgoing{message: &kagziv1.SessionResponse{
				Event: &kagziv1.SessionResponse_CancelTask{CancelTask: wire.CancellingTo(h)}}})
		}
	}
	for id, token := range before {
		w.cancelTask(ctx, id, token)
	}
	return nil
}

// followStatus acts on the worker's status. dropped says that the matcher had dropped its poller
// before the status was read.
func (w *session) followStatus(worker *engine.Worker, dropped bool) {
	if worker.PID != w.worker.PID {
		w.end(&engine.Error{Kind: engine.KindUnavailable, Subject: "worker", SubjectID: worker.ID,
			Message: "replaced by a newer session of this worker, on another server"})
		return
	}
	switch worker.Status {
	case engine.WorkerOffline:
		w.mu.Lock()
		leaving := w.leaving || w.closed
		w.mu.Unlock()
		if leaving {
			return // it deregistered itself; the session ends without an error
		}
		w.end(&engine.Error{Kind: engine.KindUnavailable, Subject: "worker", SubjectID: worker.ID,
			Message: "the worker is offline; register again"})
	case engine.WorkerDraining:
		w.drain()
	case engine.WorkerOnline:
		if dropped { // it was OFFLINE and registered again elsewhere: only a new session gives it a poller
			w.end(&engine.Error{Kind: engine.KindUnavailable, Subject: "worker", SubjectID: worker.ID,
				Message: "the worker was offline in between; register again"})
		}
	}
}

// toldNow records that the worker is told to stop a run by its GraceUntil. It returns false if the
// worker knows that already.
func (w *session) toldNow(h engine.Held) bool {
	w.mu.Lock()
	defer w.mu.Unlock()
	known, ours := w.held[h.Lease.RunID]
	if !ours || known.token != h.Lease.Token || h.GraceUntil.IsZero() || known.grace.Equal(h.GraceUntil) {
		return false
	}
	known.grace = h.GraceUntil
	w.held[h.Lease.RunID] = known
	return true
}

// pauseToldNow records that the worker is told whether a run is to be paused. It returns false if the
// worker knows that already, or does not know how to pause.
func (w *session) pauseToldNow(h engine.Held) bool {
	w.mu.Lock()
	defer w.mu.Unlock()
	known, ours := w.held[h.Lease.RunID]
	if !w.worker.PausesRuns || !ours || known.token != h.Lease.Token || known.pausing == h.Pausing {
		return false
	}
	known.pausing = h.Pausing
	w.held[h.Lease.RunID] = known
	return true
}

// cancelTask tells the worker to stop a run that it no longer holds. If an operation of the run is
// in flight, its answer tells that, and the run is checked again afterwards.
func (w *session) cancelTask(ctx context.Context, id engine.ID, token engine.Token) {
	w.mu.Lock()
	_, busy := w.queues[id.String()]
	current := w.held[id].token == token
	if busy {
		w.recheck = true
	} else if current {
		delete(w.held, id)
	}
	w.mu.Unlock()
	if busy || !current {
		return
	}
	status := engine.RunStatus(0)
	if run, err := w.service.store.GetRun(ctx, w.worker.Namespace, id); err == nil {
		status = run.Status
	}
	w.say(w.stop(id, token, status))
}

// stop returns the message that a lease has ended.
func (w *session) stop(id engine.ID, token engine.Token, status engine.RunStatus) outgoing {
	_, reason := w.service.errors.Detail(engine.LeaseLost(id, status))
	return outgoing{message: &kagziv1.SessionResponse{Event: &kagziv1.SessionResponse_CancelTask{
		CancelTask: &kagziv1.CancelTask{RunId: id.String(), LeaseToken: token.Wire(), Reason: reason},
	}}}
}

// tellWait tells the worker that what a step of a run that it holds waits for has happened.
func (w *session) tellWait(run engine.ID, step string) {
	w.mu.Lock()
	defer w.mu.Unlock()
	h, holds := w.held[run]
	if !holds || w.closed {
		return
	}
	w.say(outgoing{message: &kagziv1.SessionResponse{Event: &kagziv1.SessionResponse_WaitOver{
		WaitOver: &kagziv1.WaitOver{RunId: run.String(), LeaseToken: h.token.Wire(), StepName: step},
	}}})
}

// drain tells the worker once to drain.
func (w *session) drain() {
	w.poller.Leave()
	w.mu.Lock()
	told := w.draining
	w.draining = true
	w.mu.Unlock()
	if !told {
		w.say(outgoing{message: &kagziv1.SessionResponse{
			Event: &kagziv1.SessionResponse_Drain{Drain: &kagziv1.DrainRequest{}}}})
	}
}
