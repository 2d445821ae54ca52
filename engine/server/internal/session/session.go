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

// maxUnanswered bounds the operations of one session whose answers have not been sent: past it, nothing more is read.
const maxUnanswered = 4096

// session is one worker's stream.
type session struct {
	service *Service
	worker  engine.Worker
	poller  *matching.Poller
	out     outbox
	wake    chan struct{} // capacity one: the worker may have lost leases, or is to drain
	end     context.CancelCauseFunc
	room    chan struct{} // a place for each unanswered operation
	heard   time.Time     // when it received the last heartbeat, or the hello
	calls   sync.WaitGroup
	// refused is what operations that build on others are held against.
	refused refusals

	mu       sync.Mutex
	held     map[engine.ID]holding // the runs handed out in this session, or in one before it, as far as is known
	tasks    arrivals              // of those handed out in this session
	named    bool                  // a heartbeat has said what it has from before this session
	queues   map[string]runQueue   // by run: its operations in flight
	detached bool                  // a claim found the worker not ONLINE, and gives this session nothing any more
	recheck  bool                  // something held was in the middle of an operation when changes were looked for
	draining bool                  // the worker has been told
	leaving  bool                  // its goodbye is under way, or has counted: nothing is handed out
	closed   bool                  // nor is anything carried out any more
}

// holding is a lease of the session's worker.
type holding struct {
	token  engine.Token
	grace  time.Time // until when its code may clean up, as the worker was last told; unset: it was not told to stop
	unsent bool      // the task waits for the network
	sent   time.Time // when the network took it; unset: in an earlier session
	number int64     // of the task among those that the network took, from 1; 0: none yet
}

// arrivals is how many tasks the network has taken in a session, and how many of them the worker has received.
type arrivals struct {
	sent     int64
	received int64
	counted  bool      // the worker says what it has received
	moved    time.Time // when it last said that it has received more
}

// Session serves one worker over one stream until it says goodbye, breaks off, or is replaced by a
// newer one of the same worker.
//
// There may be many thousands that have nothing to do, so this goroutine stays small: what needs a
// deep stack, or may be stuck, is carried out in others that end, and what is large is held by a
// pointer.
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
		w = s.welcome(worker, hello.Seq, stream, end)
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
		return nil // the worker hung up
	}
	return err
}

// finish lets what is under way come to its end and be answered.
func (w *session) finish() error {
	w.calls.Wait()
	w.returnUnsent(w.out.close())
	return nil
}

// helloOf reads the hello.
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

// registeredAtOnce bounds the workers that are being made known. When thousands come at once, as
// after a restart, the store has work enough with these, and the others wait here, where they need
// next to no memory.
const registeredAtOnce = 64

// registerInTurn makes the worker of a session known.
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

// welcome makes the session of a worker that is known, and answers its hello.
func (s *Service) welcome(worker *engine.Worker, seq int64, stream kagziv1.WorkerService_SessionServer,
	end context.CancelCauseFunc) *session {
	w := &session{
		service: s, worker: *worker, end: end, wake: make(chan struct{}, 1), room: make(chan struct{}, maxUnanswered),
		held: map[engine.ID]holding{}, queues: map[string]runQueue{}, heard: time.Now(),
	}
	w.out.stream, w.out.room, w.out.sentTask = stream.Send, w.room, w.sent
	w.poller = s.matcher.Join(matching.Request{
		Worker: &w.worker, Queues: worker.Queues, Types: worker.Types, Deliver: w.deliver, Refused: w.detach,
	})
	w.out.push(outgoing{message: &kagziv1.SessionResponse{
		Seq: seq, Event: &kagziv1.SessionResponse_Welcome{Welcome: s.registeredTo(worker)},
	}}, end)
	if worker.Status == engine.WorkerDraining {
		async.Notify(w.wake)
	}
	return w
}

// say queues a message that answers nothing, and does not wait for the network.
func (w *session) say(m outgoing) {
	m.unasked = true
	w.out.push(m, w.end)
}

// detach notes that the matcher has dropped the poller, which is right only for a worker that is not ONLINE.
func (w *session) detach() {
	w.mu.Lock()
	w.detached = true
	w.mu.Unlock()
	async.Notify(w.wake)
}

// close stops what the session is given. It may be called again.
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
		// Lost and claimed again before the worker was told: what the worker still does under the
		// old lease is to stop. Where an operation is under way, its answer says so.
		w.say(w.stop(t.Run.ID, old.token, engine.RunRunning))
	}
	w.held[t.Run.ID] = holding{token: t.Lease.Token, grace: t.Run.GraceUntil, unsent: true}
	w.say(outgoing{lease: t.Lease, message: &kagziv1.SessionResponse{
		Event: &kagziv1.SessionResponse_Task{Task: wire.TaskTo(&t, w.service.options.WorkerLease)},
	}})
	return true
}

// sent notes that the network has taken a task.
func (w *session) sent(l engine.Lease) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.tasks.sent++
	if h := w.held[l.RunID]; h.token == l.Token {
		h.unsent, h.sent, h.number = false, time.Now(), w.tasks.sent
		w.held[l.RunID] = h
	}
}

// inTransit is the leases whose tasks the worker may not have received when it sent a heartbeat
// that names others: on a slow line a task can take longer than it has to be named in. Where
// nothing comes through for long they are not among them: the worker takes nothing in, although it
// speaks. That is for as long as a lease holds or, of a worker that says what it has received, for
// twice as long, after which it gives its runs up itself, but for those with a longer heartbeat
// timeout, of which it begins no step either until a heartbeat has named them.
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

// receive notes what a heartbeat says of the tasks that have come. One that was sent before another
// and comes after it says nothing new.
func (t *arrivals) receive(r *kagziv1.HeartbeatRequest) {
	if r.TasksReceived == nil {
		return
	}
	t.counted = true
	if n := *r.TasksReceived; n > t.received {
		t.received, t.moved = n, time.Now()
	}
}

// returnUnsent hands back the runs that never left this server. Where the stream broke after that,
// nobody can know; those the worker does not name in its next heartbeat.
func (w *session) returnUnsent(unsent []outgoing) {
	for _, o := range unsent {
		if !o.lease.Token.IsZero() {
			w.service.handBack(context.Background(), o.lease)
		}
	}
}

// serve tells the worker of changes until the session is to end, and says why. Each look has a
// goroutine of its own: there are many sessions, and they are woken rarely.
func (w *session) serve(ctx context.Context) error {
	wake, looked := w.wake, make(chan struct{}, 1)
	for {
		select {
		case <-wake:
			wake = nil // one look at a time
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

// tellChanges tells the worker what happened to it.
func (w *session) tellChanges(ctx context.Context) {
	if err := w.look(ctx); err != nil && ctx.Err() == nil {
		// The next heartbeat's answer says the same.
		w.service.untold.tell(w.service.log, w.worker.ID, err)
	}
}

// untoldEvery is how often the log says that workers could not be told what they lost, in seconds.
// There may be many thousands of sessions, and while the database is away all of them are woken
// again and again.
const untoldEvery = 60

// untold is when the log last said that, and of how many looks it has not.
type untold struct{ last, others atomic.Int64 }

func (u *untold) tell(log *slog.Logger, worker string, err error) {
	if !async.Elapsed(&u.last, untoldEvery) {
		u.others.Add(1)
		return
	}
	log.Warn("worker could not be told what it lost", "worker", worker, "others_since_last_said", u.others.Swap(0),
		"error", err)
}

// look compares what this session handed out with what the store says, and the worker's status with
// what the worker knows.
func (w *session) look(ctx context.Context) error {
	w.mu.Lock()
	dropped := w.detached // before its status is read, which may be newer, but must not be older
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

// lookAtLeases tells the worker which of its runs it has lost, and which it is to stop.
func (w *session) lookAtLeases(ctx context.Context) error {
	w.mu.Lock()
	// taken first: what is in it was committed before the leases are read
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

// followStatus does what the worker's status asks for. dropped says that the matcher had dropped
// its poller when that was read.
func (w *session) followStatus(worker *engine.Worker, dropped bool) {
	switch worker.Status {
	case engine.WorkerOffline:
		w.mu.Lock()
		leaving := w.leaving || w.closed
		w.mu.Unlock()
		if leaving {
			return // it said goodbye itself, and ends well
		}
		w.end(&engine.Error{Kind: engine.KindUnavailable, Subject: "worker", SubjectID: worker.ID,
			Message: "the worker was taken offline"})
	case engine.WorkerDraining:
		w.drain()
	case engine.WorkerOnline:
		if dropped { // it was taken off and registered again, by another way: a new hello gives it a poller
			w.end(&engine.Error{Kind: engine.KindUnavailable, Subject: "worker", SubjectID: worker.ID,
				Message: "the worker was offline meanwhile"})
		}
	}
}

// toldNow notes that the worker is told to stop a run by the end of its grace, and says whether that is new to it.
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

// cancelTask tells the worker to stop a run that it no longer holds. One that is in the middle of
// an operation learns it from the answer; it is looked at again afterwards.
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

// stop is the word to the worker that a lease is over.
func (w *session) stop(id engine.ID, token engine.Token, status engine.RunStatus) outgoing {
	_, reason := w.service.errors.Detail(engine.LeaseLost(id, status))
	return outgoing{message: &kagziv1.SessionResponse{Event: &kagziv1.SessionResponse_CancelTask{
		CancelTask: &kagziv1.CancelTask{RunId: id.String(), LeaseToken: token.Wire(), Reason: reason},
	}}}
}

// drain tells the worker, once, that an operator wants it to finish.
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
