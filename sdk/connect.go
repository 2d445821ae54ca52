package kagzi

import (
	"context"
	"errors"
	"fmt"
	"io"
	"strings"
	"sync"
	"time"

	kagziv1 "github.com/kagzi/kagzi/proto/kagzi/v1"
	"github.com/kagzi/kagzi/sdk/internal/session"
	"github.com/kagzi/kagzi/sdk/internal/transport"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/connectivity"
	"google.golang.org/grpc/status"
)

const (
	helloTimeout     = 15 * time.Second
	defaultHeartbeat = 10 * time.Second
	defaultLease     = 30 * time.Second
	drainingTries    = 2 // that the backoff counts while the worker drains: it has DrainTimeout to report what it holds
	returnTries      = 3 // and once a server is back that could not be reached
	unreadTries      = 3 // and before a run goes back whose history cannot be read
)

// fatalError is a refusal that repeating cannot change.
type fatalError struct{ error }

func (e fatalError) Unwrap() error { return e.error }

// refused is why the server does not take the worker.
type refused struct {
	advice string
	err    error
}

func (e *refused) Error() string {
	return "kagzi: the server refused the worker" + e.advice + ": " + strings.TrimPrefix(e.err.Error(), "kagzi: ")
}
func (e *refused) Unwrap() error { return e.err }

// serve keeps a session open until ctx ends, or until the server refuses the worker. When the
// worker begins to drain it tries at once, and often from then on: what it holds and cannot report
// has to be done again by another.
func (w *Worker) serve(ctx context.Context) error {
	defer w.lease.Stop()
	for failures, refusals := 0, 0; ; {
		// in a row; a refusal is a failure that was a server's, be it that it did not answer
		reached, registered, err := w.oneSession(ctx)
		if ctx.Err() != nil || w.isParting() {
			return nil
		}
		var fatal fatalError
		if errors.As(err, &fatal) {
			if !w.forgetID(fatal) {
				return &refused{w.advice(fatal.error), fatal.error}
			}
			continue
		}
		if registered {
			failures, refusals = 0, 0
		}
		failures++
		leaving, steps := w.leaving, failures
		if reached {
			// That it was away before does not make a server ill that has no time for all of its workers yet.
			refusals++
			steps = refusals
		}
		if w.isDraining() {
			leaving, steps = nil, min(steps, drainingTries)
		}
		delay := transport.Backoff(steps)
		w.log.Warn("no session with the server", "address", w.options.Address, "error", err, "attempt", failures,
			"next_attempt_in", delay.Round(time.Millisecond))
		wait := time.NewTimer(delay)
		back, stopLooking := w.lookOut(ctx, steps, reached)
		select {
		case <-wait.C:
		case <-back:
		case <-leaving:
			failures, refusals = 0, 0
		case <-ctx.Done():
		}
		wait.Stop()
		stopLooking()
		if ctx.Err() != nil {
			return nil
		}
		w.conn.ResetConnectBackoff()
	}
}

// lookOut looks out for a server that could not be reached in several attempts: the connection,
// which gRPC tries every few seconds by itself, tells of its return long before a delay of up to a
// minute is over. back is closed then, after a delay as that of an early attempt, so that all the
// workers of a server do not come at once. A server that answers, and refuses, is given the whole
// delay: one that the attempt has reached, for a connection that stands by now may be none that
// stood then. stop ends the looking out.
func (w *Worker) lookOut(ctx context.Context, failures int, reached bool) (back <-chan struct{}, stop func()) {
	if failures <= returnTries || reached && w.conn.GetState() == connectivity.Ready {
		return nil, func() {}
	}
	ctx, cancel := context.WithCancel(ctx)
	over := make(chan struct{})
	go func() {
		defer close(over)
		transport.AwaitConnection(ctx, w.conn)
		transport.Sleep(ctx, transport.Backoff(returnTries))
	}()
	return over, func() { cancel(); <-over }
}

func (w *Worker) isDraining() bool {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.draining
}

// advice says what to do about a refusal that is about the worker's key, or its id.
func (w *Worker) advice(refusal error) string {
	var e *Error
	if id := w.options.WorkerID; id != "" && errors.As(refusal, &e) && e.Code == CodeConflict {
		return ", whose id another has: one that was killed has it until it counts as lost, or until `kagzi worker offline " + id + "`"
	}
	switch code := status.Code(refusal); {
	case code == codes.Unauthenticated && w.options.APIKey == "":
		return ", which has no API key (WorkerOptions.APIKey, KAGZI_API_KEY_FILE, api-key-file in the profile)"
	case code == codes.Unauthenticated:
		return ", whose API key is not valid, or not any more"
	case code == codes.PermissionDenied:
		return ", whose API key does not allow what it wants to do"
	}
	return ""
}

func (w *Worker) isParting() bool {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.parting
}

// forgetID gives up an id that the server chose and no longer grants, so that the next hello gets another.
func (w *Worker) forgetID(refusal fatalError) bool {
	var e *Error
	if !errors.As(refusal.error, &e) || e.Code != CodeNotFound && e.Code != CodeConflict {
		return false
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.id == "" || w.id == w.options.WorkerID {
		return false
	}
	w.log.Info("worker id no longer granted", "worker", w.id, "reason", e.Message)
	w.id = ""
	return true
}

// oneSession is one stream, from hello to its end. reached says whether there was a connection for
// it, registered whether it came to a welcome.
func (w *Worker) oneSession(ctx context.Context) (reached, registered bool, err error) {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	watchdog := time.AfterFunc(helloTimeout, cancel)
	defer watchdog.Stop()

	stream, err := w.workers.Session(ctx)
	if err != nil {
		return false, false, sessionError(err)
	}
	helloAt := time.Now()
	err = stream.Send(&kagziv1.SessionRequest{Seq: 1, Operation: &kagziv1.SessionRequest_Hello{Hello: w.hello()}})
	if err != nil && !errors.Is(err, io.EOF) {
		return true, false, sessionError(err)
	}
	first, err := stream.Recv()
	if err != nil {
		return true, false, sessionError(err)
	}
	watchdog.Stop()
	if d := first.GetError(); d != nil {
		return true, false, refusal(d)
	}
	welcome := first.GetWelcome()
	if welcome == nil {
		return true, false, fmt.Errorf("kagzi: the server answered hello with %T", first.GetEvent())
	}
	interval := w.welcomed(welcome, helloAt)

	w.session.Open()
	// not before: who ends a worker that is ready has it say goodbye on this stream
	w.readyOnce.Do(func() { close(w.ready) })
	var parts sync.WaitGroup
	parts.Go(func() { w.session.Write(ctx, stream); cancel() })
	parts.Go(func() { w.heartbeats(ctx, interval, cancel) })
	w.resume()
	err = w.read(stream)
	w.session.Close()
	cancel()
	parts.Wait()
	return true, true, err
}

// welcomed adopts what the server decided, and returns the heartbeat interval.
func (w *Worker) welcomed(r *kagziv1.RegisterResponse, helloAt time.Time) time.Duration {
	interval, lease := time.Duration(r.GetHeartbeatIntervalMs())*time.Millisecond,
		time.Duration(r.GetLeaseMs())*time.Millisecond
	if interval <= 0 {
		interval = time.Duration(r.GetHeartbeatIntervalSecs()) * time.Second
	}
	if interval <= 0 {
		interval = defaultHeartbeat
	}
	if lease <= 0 {
		lease = max(defaultLease, 3*interval)
	}
	w.lease.Start(lease, w.expired)
	w.mu.Lock()
	first, holds := w.id == "", len(w.executions) > 0
	w.id = r.GetWorkerId()
	w.mu.Unlock()
	if holds {
		// others may have what is held: the first heartbeat of this stream names it, and is told so
		w.lease.Heard(helloAt)
	} else {
		w.lease.Confirm(helloAt)
	}
	w.log.Info("worker registered", "worker", r.GetWorkerId(), "namespace", w.options.Namespace, "queue",
		w.options.Queue,
		"address", w.options.Address, "again", !first)
	return interval
}

// resume puts a new stream where the last one broke: what is held, what is unanswered, what is free.
func (w *Worker) resume() {
	w.beat()
	w.mu.Lock()
	held := make([]*execution, 0, len(w.executions))
	for _, e := range w.executions {
		held = append(held, e)
	}
	draining := w.draining
	w.mu.Unlock()
	for _, e := range held {
		e.resend()
	}
	if draining {
		w.goodbye(true, nil)
		return
	}
	w.session.AddCredit(w.options.MaxConcurrent - len(held))
}

// read handles what the server says until the stream ends.
func (w *Worker) read(stream session.Stream) error {
	for {
		r, err := stream.Recv()
		if err != nil {
			return sessionError(err)
		}
		switch ev := r.Event.(type) {
		case *kagziv1.SessionResponse_Task:
			w.accept(ev.Task)
			w.session.CountTask()
			continue
		case *kagziv1.SessionResponse_CancelTask:
			w.cancelTask(ev.CancelTask)
			continue
		case *kagziv1.SessionResponse_Drain:
			w.askDrain()
			continue
		}
		if op := w.session.Answered(r); op != nil {
			op.Deliver(r)
		} else {
			w.log.Debug("answer to nothing", "seq", r.GetSeq())
		}
	}
}

// sessionError tells refusals from breaks.
func sessionError(err error) error {
	if errors.Is(err, io.EOF) {
		return errors.New("the server closed the session")
	}
	e := callError(context.Background(), err)
	if fatalStatus(err) {
		return fatalError{e}
	}
	return e
}

func fatalStatus(err error) bool {
	switch status.Code(err) {
	case codes.InvalidArgument, codes.AlreadyExists, codes.NotFound, codes.Unauthenticated, codes.PermissionDenied,
		codes.Unimplemented:
		return true
	}
	return false
}

// refusal is the error of a hello that was answered with one.
func refusal(d *kagziv1.ErrorDetail) error {
	e := detailError(d)
	if session.Repeatable(d) || d.GetCode() == kagziv1.ErrorCode_ERROR_CODE_PRECONDITION_FAILED {
		return e
	}
	return fatalError{e}
}
