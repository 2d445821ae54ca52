package kagzi

import (
	"context"
	"fmt"
	"path"
	"slices"

	kagziv1 "github.com/kagzi/kagzi/proto/kagzi/v1"
	"google.golang.org/grpc"
	"google.golang.org/protobuf/proto"
)

// WorkerInterceptor wraps the code that a worker runs, for example to count, measure or trace it. Each
// field may be nil. Of several interceptors (WorkerOptions.Interceptors) the first is the outermost.
//
// An interceptor calls next at most once, with the context that it was given or one derived from it.
// It returns next's error, another error in its place, or an error of its own instead of calling next.
// It cannot turn a failure into a success: if it returns nil, the error of next still counts.
type WorkerInterceptor struct {
	// Run wraps the workflow function. It runs in every activation of a run, replays included, and when
	// a run is only checked (Activation.Check), because it is workflow code: the rules for workflow code
	// hold for it, and it may call functions that take a Context. So count and measure in Step, or after
	// next, or as Activation says.
	//
	// next returns when the function has returned, in the last activation of an attempt. In all others
	// the run is suspended within next, which does not return; deferred functions run, with ctx.Err()
	// set. next takes ctx or Cleanup(ctx). The error of ContinueAsNew must be returned, as in the
	// function itself.
	Run func(ctx Context, a Activation, next func(ctx Context) error) error

	// Step wraps the code of one attempt of a step. It runs whenever that code runs, and never in a
	// replay or a check. It runs on the step's goroutine, within its timeout and its span; ctx is the
	// step's. Values that it adds to ctx reach the step's code. An error that it returns in place of
	// next's is retried and recorded like one of the step.
	Step func(ctx context.Context, s StepAttempt, next func(ctx context.Context) error) error
}

// Activation is what an interceptor is told about an activation of a run.
type Activation struct {
	Info RunInfo
	// Replays says that an earlier activation has recorded something. While it is false, the run, or a
	// retry of it that keeps nothing, has just begun; it may be false twice if a worker was lost before
	// the first record.
	Replays bool
	// Check says that the code is only compared with a record, by Replay, ReplayCapsule or `kagzi check`.
	// Nothing is recorded, and no step runs.
	Check bool
}

// StepAttempt is what an interceptor is told about an attempt of a step.
type StepAttempt struct {
	Info    RunInfo
	Name    string
	Attempt int // from 1
}

// ClientInterceptor wraps the calls of a client, for example to count, measure or log them, or to add
// gRPC metadata to ctx. Of several interceptors (ClientOptions.Interceptors) the first is the outermost.
//
// It calls next at most once, with ctx or a context derived from it. It returns next's error (nil, a
// *Error, or the cause of ctx), another error in its place, or an error of its own instead of calling
// next. It cannot turn a failure into a success. That a run has failed is no error of WaitWorkflow. next
// returns after the SDK's own repetitions: starts
// that share a request, and a wait that outlasts restarts of the server, are still one call each.
type ClientInterceptor func(ctx context.Context, call ClientCall, next func(ctx context.Context) error) error

// ClientCall is what an interceptor is told about a call of a client.
type ClientCall struct {
	// Method is the name of the RPC, such as StartWorkflow, CancelWorkflow or CreateWorkflowSchedule.
	// Result and Run.Wait are WaitWorkflow, once for the whole wait.
	Method       string
	Request      proto.Message // read-only; with a Codec its payloads are encoded
	RunID        string        // "" if the call is not about one run
	WorkflowType string        // of calls that start runs or name a type; "" for others
}

func newClientCall(method string, request proto.Message) ClientCall {
	call := ClientCall{Method: method, Request: request}
	if r, ok := request.(interface{ GetRunId() string }); ok {
		call.RunID = r.GetRunId()
	}
	if r, ok := request.(interface{ GetWorkflowType() string }); ok {
		call.WorkflowType = r.GetWorkflowType()
	}
	return call
}

// chained runs a call within interceptors, the first outermost. It returns an error unless the call
// itself has returned nil.
func chained[C any](ctx C, interceptors []func(ctx C, next func(C) error) error, call func(C) error) error {
	next := call
	for _, around := range slices.Backward(interceptors) {
		inner := next
		next = func(ctx C) error {
			called, result := false, error(nil)
			err := around(ctx, func(ctx C) error {
				if called {
					result = interceptorFault("an interceptor called next twice")
					return result
				}
				called = true
				result = inner(ctx)
				return result
			})
			switch {
			case err != nil:
				return err
			case !called:
				return interceptorFault("an interceptor returned nil without calling next; it must return an error instead")
			}
			return result
		}
	}
	return next(ctx)
}

func interceptorFault(text string) error {
	return NonRetryable(&coded{kind: "interceptor", text: text})
}

// withInterceptors wraps a workflow function in the worker's interceptors.
func (w *Worker) withInterceptors(h handler) handler {
	if !slices.ContainsFunc(w.options.Interceptors, func(i WorkerInterceptor) bool { return i.Run != nil }) {
		return h
	}
	return func(ctx Context, e *execution) (output *kagziv1.Payload, err error) {
		a := Activation{Info: e.info, Check: e.replay != nil}
		e.mu.Lock()
		a.Replays = len(e.history) > 0
		e.mu.Unlock()
		var around []func(Context, func(Context) error) error
		for _, i := range w.options.Interceptors {
			if i.Run != nil {
				around = append(around, func(ctx Context, next func(Context) error) error {
					return i.Run(ctx, a, next)
				})
			}
		}
		err = chained(ctx, around, func(ctx Context) (err error) {
			output, err = h(ctx, e)
			return err
		})
		return output, err
	}
}

// interceptStep runs the code of a step within the worker's interceptors.
func (w *Worker) interceptStep(ctx context.Context, name string, code func(ctx context.Context) error) error {
	var around []func(context.Context, func(context.Context) error) error
	for _, i := range w.options.Interceptors {
		if i.Step != nil {
			around = append(around, func(ctx context.Context, next func(context.Context) error) error {
				s := StepAttempt{Name: name, Attempt: Attempt(ctx)}
				if info, ok := ctx.Value(stepKey{}).(*stepInfo); ok {
					s.Info = info.e.info
				}
				return i.Step(ctx, s, next)
			})
		}
	}
	return chained(ctx, around, code)
}

// intercept runs a call within the client's interceptors.
func (c *Client) intercept(ctx context.Context, method string, request proto.Message,
	call func(ctx context.Context) error) error {
	if len(c.options.Interceptors) == 0 {
		return call(ctx)
	}
	about := newClientCall(method, request)
	around := make([]func(context.Context, func(context.Context) error) error, len(c.options.Interceptors))
	for n, i := range c.options.Interceptors {
		around[n] = func(ctx context.Context, next func(context.Context) error) error { return i(ctx, about, next) }
	}
	return chained(ctx, around, func(ctx context.Context) error { return callError(ctx, call(ctx)) })
}

// interceptedConn runs the unary calls of a client's connection within its interceptors.
type interceptedConn struct {
	*grpc.ClientConn
	c *Client
}

func (i interceptedConn) Invoke(ctx context.Context, method string, args, reply any, opts ...grpc.CallOption) error {
	request, ok := args.(proto.Message)
	if !ok {
		return fmt.Errorf("kagzi: request of %s is %T, no message", method, args)
	}
	return i.c.intercept(ctx, path.Base(method), request, func(ctx context.Context) error {
		return i.ClientConn.Invoke(ctx, method, args, reply, opts...)
	})
}
