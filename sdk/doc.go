// Package kagzi is the Go SDK of Kagzi. Applications use it to write durable workflows as ordinary
// typed Go functions, to run them in workers, and to start and control runs.
//
//	func Order(ctx kagzi.Context, in OrderInput) (Receipt, error) {
//		charge, err := kagzi.Step(ctx, "charge", func(ctx context.Context) (Charge, error) {
//			return bank.Charge(ctx, in.Card, in.Total, kagzi.IdempotencyKey(ctx))
//		}, kagzi.Retry{Attempts: 5})
//		if err != nil {
//			return Receipt{}, err
//		}
//		kagzi.Sleep(ctx, "cool-off", 24*time.Hour) // holds no worker
//		return Receipt{Charge: charge.ID}, nil
//	}
//
//	// In the worker:
//	w := kagzi.NewWorker(kagzi.WorkerOptions{Queue: "orders"})
//	kagzi.Handle(w, "order", Order)
//	err := w.Run(ctx) // until SIGTERM
//
//	// In the client:
//	c, err := kagzi.NewClient(kagzi.ClientOptions{})
//	run, err := kagzi.Start(ctx, c, "order", in, kagzi.StartOptions{Queue: "orders"})
//	receipt, err := kagzi.Result[Receipt](ctx, run)
//
// Define ties a workflow type's name to its Go types, so that starting it with another input does not
// compile.
//
// A run is one execution of a workflow function for one input. Everything that the function does to
// other systems happens in steps: Step runs code with a result, Do code without one. The result of
// each step is recorded on the server. A run that waits is parked: it holds no worker and survives
// restarts. When a worker claims the run again, it calls the function from the beginning. Recorded
// steps return their results without running again, so the function continues where it was. Each
// such period on a worker is one activation of the run.
//
// # Guarantees
//
//   - A recorded result never changes.
//   - A step starts only after the results of all earlier steps of its run are on the server's
//     disk.
//   - Only the worker that holds the lease of a run can record results for it.
//   - The code of a step runs at least once. It runs again when it fails and its Retry allows
//     another attempt, and when its worker is lost before the result is recorded. Pass
//     IdempotencyKey to systems that can detect repeated requests.
//
// # Rules for workflow code
//
// A workflow function must be deterministic: with the same input and the same step results it must
// make the same calls. Loops, conditions, error handling and function calls are ordinary Go.
//
//   - Call other systems only inside steps.
//   - Use Now instead of time.Now, and Random and NewUUID instead of math/rand and uuid.New.
//   - Wait with Sleep, WaitSignal or Child.Wait. A run may be parked while it waits, so time.Sleep,
//     time.After and channels filled from outside the run do not work.
//   - Do not let the order of a map's entries decide the order of calls: sort the keys first.
//   - Derive step names from the input, never from the clock or a random number. A step whose name
//     changes is a new step and runs again.
//   - Run branches with Go or Map, and give their steps different names.
//   - Do not call functions that take a Context inside a step: that fails the run.
//   - Keep state in local variables. A new activation can begin, even on the same worker, while
//     code of the previous one is still ending.
//
// # Failures
//
// A failed step is retried as its Retry says, or the StepRetry of its run's start; the run is parked
// between attempts. When no attempt is left, Step returns a *StepError, which the function can
// handle or return. A run fails when its function returns an error or panics. It is retried as a
// whole only if it was started with a RunRetry. NonRetryable, RetryAfter and WithType control how an
// error is retried and matched. StartOptions.OnFailure names a workflow type that is started when
// the run fails or times out, with a WorkflowFailedEvent as its input. GlobalFailureHandler is the
// type that handles failures of all runs.
//
// # Logs
//
// Logger returns a logger for workflow code and steps. It carries the run, its type, the step, the
// attempt and the trace id, and is silent in replays. The worker itself logs each failed attempt of a
// step as a warning, and each failed run as an error with the stack of a panic. It also warns, with a
// stack, when workflow code is blocked for 5 s outside of SDK calls: such a run cannot be parked. Its
// explanation (Run.Explain, `kagzi workflow explain`) says so, too.
//
// # Interceptors
//
// WorkerOptions.Interceptors wrap workflow functions and the code of steps, and
// ClientOptions.Interceptors wrap the calls of a client, for metrics, traces or context. An
// interceptor of workflow functions runs in replays, too, because it is workflow code; one of steps
// runs only when the step's code does.
//
// # Concurrency
//
// Go and Map run functions as branches of a run. The SDK parks a run exactly when all of its
// branches wait. Plain goroutines may call Step, too, but the SDK cannot see whether they are about
// to call it again. When such a goroutine sleeps or waits and none makes a call for 20 ms, the run
// is parked; goroutines that were busy with something else then continue only when it wakes up.
// Branches do not have this gap.
//
// # Signals and child runs
//
// WaitSignal waits for a signal that Signal sends. StartChild and RunChild start other runs, whose
// results and errors come back typed; WaitAll waits for many children.
//
// # Cancellation
//
// Run.Cancel asks a run's code to stop: its Context, and the context of the running step, end with
// the cause ErrCancelled. Calls that would start something new return ErrCancelled; Sleep just
// returns. Compensate under Cleanup, then return. The run becomes CANCELLED when the function
// returns, whatever it returns, or when the grace period ends: after DefaultGrace, or the time given
// to Run.CancelGracefully. Run.Terminate ends a run at once, without cleanup.
//
//	shipped, err := kagzi.Step(ctx, "ship", ship)
//	if errors.Is(err, kagzi.ErrCancelled) {
//		undoErr := kagzi.Do(kagzi.Cleanup(ctx), "refund", refund)
//		return Receipt{}, errors.Join(err, undoErr)
//	}
//
// When a parked run is cancelled, its code is first brought to where it was. Then the worker records
// the cancellation (the step kagzi:cancelled), and it takes effect when all branches wait in a call:
// the Context ends, and with it every sleep and wait, and every step whose code does not run. In every
// replay it takes effect at the same place. A call that the cancellation ended stays ended, even a
// wait whose signal has arrived since.
//
// # Connecting
//
// Options that are not set come from environment variables (KAGZI_ADDRESS, KAGZI_API_KEY_FILE, …),
// then from a profile in kagzi.toml, which the command line reads as well (see package profile).
// Without any of them a worker or client connects to a server on this machine, without TLS or key.
//
// When a server requires API keys and refuses the worker's key, Run returns the refusal. This
// happens at the start and when the key is revoked later. The runs of the worker then go to other
// workers, as if it had been lost.
//
// # Encryption
//
// With a Codec, the server stores only what the codec returns: see NewAESCodec. All workers and
// clients of a workflow type need the same codec.
//
// # Limits
//
// A run can have 10,000 steps and can record 64 MiB, its input included; a run that exceeds a limit
// fails. A run that never ends returns ContinueAsNew from time to time: the next run starts with an
// empty history. Result and Run.Wait follow it. MaxPayload limits a single payload.
//
// # Changing code
//
// A run continues with the code of whichever worker claims it. Recorded results are found by name,
// not by position. A recorded call is owed until the code has made it, and a call without a record
// takes effect only when nothing is owed. If code waits to make a new call, and no branch can make
// those that it owes, it has diverged: the new call does not take effect. The run goes to a worker of
// another build and, when no build matches its history, is paused (WorkerOptions.OnDivergence).
//
//   - A step that is added behind all recorded calls runs. Patched marks one that is added before.
//   - A step that is removed, renamed or made another kind of call is a divergence.
//   - A recorded result that does not fit its type fails the run. After the code is fixed, Run.Retry
//     continues with the recorded results.
//
// To keep a run on the logic that it started with, start it with a Version and branch on
// Info(ctx).Version, register the new code under another workflow type, or bind the run to workers
// with Requirements. Worker.Run describes the check of all open runs against a new build. The check
// replays without running anything. It also reports owed calls that no new call follows.
//
// # Suspension
//
// A run that sleeps, waits for a retry, a signal or a child is parked. The worker may keep its code in
// memory (WorkerOptions.Cache): every call of the SDK then waits until the run comes back. Otherwise,
// and when it loses its lease, the run is suspended: a waiting call of the SDK does not return, but
// ends its goroutine with runtime.Goexit. Every other goroutine of the run ends in the same way at its
// next call of the SDK. In the next activation the call returns normally. Code cannot prevent this:
//
//   - Deferred functions run as usual, with ctx.Err() set (context.Canceled). In them, recover
//     returns nil.
//   - A call of the SDK in a deferred function ends that function; the remaining deferred functions
//     still run. A deferred step therefore runs when the workflow returns, not when it is
//     suspended.
//   - Return values are dropped, named results included.
//   - The code of a step is not suspended. Its context ends when the lease is lost, and its result
//     is then dropped.
//
// So a deferred function should only release what the function itself holds in memory. A plain
// goroutine that never calls the SDK should stop when ctx.Done() is closed.
//
// # Testing
//
// Package kagzitest runs workflows against the real engine inside a test, with a clock that skips
// waiting times. Replay and ReplayCapsule check code against an exported run.
//
// # Further reading
//
// The directory guide, beside this package, explains these topics one by one; the directory
// examples has complete programs. Package profile describes kagzi.toml.
package kagzi
