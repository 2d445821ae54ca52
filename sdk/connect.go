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
	drainingTries    = 2 // cap for the backoff while draining: results must be reported within DrainTimeout
	returnTries      = 3 // backoff step used once an unreachable server is back
	unreadTries      = 3 // attempts to read a run's history before the run is released
)

// fatalError is a refusal that a retry cannot change.
type fatalError struct{ error }

func (e fatalError) Unwrap() error { return e.error }

// refused is the error of Run when the server refuses the worker.
type refused struct {
	advice string
	err    error
}

func (e *refused) Error() string {
	return "kagzi: the server refused the worker" + e.advice + ": " + strings.TrimPrefix(e.err.Error(), "kagzi: ")
}
func (e *refused) Unwrap() error { return e.err }

// serve keeps a session open until ctx ends or the server refuses the worker. From the start of a
// drain it reconnects at once and often: results that are not reported must be computed again
// elsewhere.
func (w *Worker) serve(ctx context.Context) error {
	defer w.lease.Stop()
	for failures, refusals := 0, 0; ; {
		// both count in a row; refusals counts the failures of a server that was reached
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
			// The time before, when it was unreachable, says nothing about a server that is merely
			// busy with many workers that reconnect.
			refusals++
			steps = refusals
		}
		if w.isDraining() {
			leaving, steps = nil, min(steps, drainingTries)
		}
		delay := transport.Backoff(steps)
		w.log.Warn("no session with the server; reconnecting", "address", w.options.Address, "error", err,
			"attempt", failures, "retry_within", delay.Round(time.Millisecond))
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

// lookOut closes back soon after an unreachable server is reachable again, well before a delay of
// up to a minute is over: gRPC itself tries to connect every few seconds. The pause after that
// spreads the workers of a server. A server that was reached and refused gets the whole delay. stop
// ends the goroutine.
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

// advice returns what to do about a refusal because of the worker's key or id.
func (w *Worker) advice(refusal error) string {
	var e *Error
	if id := w.options.WorkerID; id != "" && errors.As(refusal, &e) && e.Code == CodeConflict {
		return " (another worker has its id; the id of a killed worker is free once it counts as lost, or after " +
			"`kagzi worker offline " + id + "`)"
	}
	switch code := status.Code(refusal); {
	case code == codes.Unauthenticated && w.options.APIKey == "":
		return " (it has no API key: set WorkerOptions.APIKey, KAGZI_API_KEY_FILE, or api-key-file in the profile)"
	case code == codes.Unauthenticated:
		return " (its API key is unknown, expired or revoked)"
	case code == codes.PermissionDenied:
		return " (its API key lacks the permission)"
	}
	return ""
}

func (w *Worker) isParting() bool {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.parting
}

// forgetID drops an id that the server chose and no longer accepts, so that the next hello gets a
// new one. It returns false for other refusals.
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
	w.log.Info("the server no longer accepts the worker id; registering for a new one", "worker", w.id,
		"reason", e.Message)
	w.id = ""
	return true
}

// oneSession runs one stream from hello to its end. reached reports whether it got a connection,
// registered whether the server accepted the worker.
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
	// only now: a worker that is ready may be stopped, and says goodbye on this stream
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

// welcomed applies the server's settings and returns the heartbeat interval.
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
	w.order.Store(r.GetKeepsOrder())
	w.resumes.Store(r.GetResumesRuns())
	w.lease.Start(lease, w.expired)
	w.mu.Lock()
	first, holds := w.id == "", len(w.executions) > 0
	w.id = r.GetWorkerId()
	w.mu.Unlock()
	if holds {
		// others may have claimed these runs; the answer to the first heartbeat says so
		w.lease.Heard(helloAt)
	} else {
		w.lease.Confirm(helloAt)
	}
	message := "worker registered"
	if !first {
		message = "worker registered again on a new session"
	}
	w.log.Info(message, "worker", r.GetWorkerId(), "namespace", w.options.Namespace, "queue", w.options.Queue,
		"address", w.options.Address)
	return interval
}

// resume continues on a new stream: it reports held runs, resends unanswered operations and grants
// credit for free slots.
func (w *Worker) resume() {
	w.beat()
	w.mu.Lock()
	held := make([]*execution, 0, len(w.executions))
	for _, e := range w.executions {
		held = append(held, e)
		// the server has ended the stay before
		e.counted = e.next.task != nil && e.next.task.GetLeaseToken() != e.token()
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

// read handles the server's messages until the stream ends.
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
		case *kagziv1.SessionResponse_PauseTask:
			w.pauseTask(ev.PauseTask)
			continue
		case *kagziv1.SessionResponse_CancelTask:
			w.cancelTask(ev.CancelTask)
			continue
		case *kagziv1.SessionResponse_WaitOver:
			if e := w.held(ev.WaitOver.GetRunId(), ev.WaitOver.GetLeaseToken()); e != nil {
				e.waitIsOver(ev.WaitOver.GetStepName())
			}
			continue
		case *kagziv1.SessionResponse_Drain:
			w.askDrain()
			continue
		}
		if op := w.session.Answered(r); op != nil {
			op.Deliver(r)
		} else {
			w.log.Debug("answer to an unknown operation", "seq", r.GetSeq())
		}
	}
}

// sessionError makes final refusals a fatalError; other errors mean that the stream broke.
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

// refusal returns the error of a rejected hello.
func refusal(d *kagziv1.ErrorDetail) error {
	e := detailError(d)
	if session.Repeatable(d) || d.GetCode() == kagziv1.ErrorCode_ERROR_CODE_PRECONDITION_FAILED {
		return e
	}
	return fatalError{e}
}
