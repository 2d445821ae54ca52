// Package kagzi lets an application write durable workflows as ordinary typed Go, and run them on a Kagzi server.
//
// A workflow is a function of a Context and an input. What it does to the world it does in steps,
// each of which runs once and has its result recorded. When a worker dies, is restarted or gives a
// run back, another one runs the function again from the beginning; the steps that are recorded
// return their results without running, and the function goes on where it was. From when a worker
// is given a run until it holds it no more is one stay of the run there; a run that has slept twice
// has had three stays at least.
//
//	func Order(ctx kagzi.Context, in OrderInput) (Receipt, error) {
//		charge, err := kagzi.Step(ctx, "charge", func(ctx context.Context) (Charge, error) {
//			return bank.Charge(ctx, in.Card, in.Total, kagzi.IdempotencyKey(ctx))
//		}, kagzi.Retry{Attempts: 5})
//		if err != nil {
//			return Receipt{}, err
//		}
//		kagzi.Sleep(ctx, "cool-off", 24*time.Hour)
//		return Receipt{Charge: charge.ID}, nil
//	}
//
//	w := kagzi.NewWorker(kagzi.WorkerOptions{Queue: "orders"})
//	kagzi.Handle(w, "order", Order)
//	err := w.Run(ctx)
//
// # What holds
//
// A recorded result never changes. No step's code begins before the results of all earlier steps of
// its run are on the server's disk. Only the worker that holds a run's lease can record anything
// for it. The code of a step is run at least once: again when it failed and its policy grants an
// attempt, and again when its worker was lost before the result was recorded. Give IdempotencyKey
// to systems that can recognise a repetition.
//
// # Deterministic code
//
// Between its steps a workflow function must do the same in every replay: no clock, no luck, no
// world outside. Use Now, Random, NewUUID, and steps. Loops, branches, goroutines and errors are
// ordinary Go. State that outlives the function must not be touched by it: a new stay of a run may
// begin, also on the same worker, while the code of the last one is still ending.
//
// # Failures
//
// A step that fails is run again by its Retry; meanwhile the run is parked. When it has failed for
// good, Step returns a *StepError, which the code may handle, for instance by compensating, or
// return. A run fails when its function returns an error or panics; it is run again only if it was
// started with a Retry of its own. Panics are in the worker's log, too. NonRetryable, RetryAfter
// and WithType say more about an error. StartOptions.OnFailure names a workflow that handles the
// failure of a run, with a WorkflowFailedEvent as its input; GlobalFailureHandler is the type of
// the one that handles all.
//
// # Several things at once
//
// Go and Map run functions as branches of a run. The author's own goroutines may call Step, too,
// but the SDK cannot see whether one of them is about to call again. Where some of them wait for a
// time, it parks the run once none has called for 20 ms; the others go on only when the run is
// woken. Branches have no such gap.
//
// # Waiting for others
//
// WaitSignal waits for a signal, which Signal delivers from outside. StartChild and RunChild start
// other runs, with results and errors of their own; WaitAll waits for many of them. A run that
// waits is parked for as long as it takes: it holds no worker, and restarts do not matter.
//
// # Cancellation
//
// Run.Cancel ends a run at once. Run.CancelGracefully tells its code first: the Context and that of
// the running step end with ErrCancelled, which every call then returns that would do something
// new, while Sleep just returns. The code undoes what it has to under Cleanup, and returns; the run
// is CANCELLED then, whatever it returns, or when the grace is over.
//
//	shipped, err := kagzi.Step(ctx, "ship", ship)
//	if errors.Is(err, kagzi.ErrCancelled) {
//		_, undoErr := kagzi.Step(kagzi.Cleanup(ctx), "refund", refund)
//		return Receipt{}, errors.Join(err, undoErr)
//	}
//
// A run that is woken for its cancellation comes back to where it was first: what is recorded
// returns as it is recorded, and the Context ends at the first call that is not; where there are
// branches, when all have come so far, or come no further. What the cancellation has ended stays
// ended in every replay, even a wait whose signal has come since. Code that cleans up because it
// has looked at its Context, which no call had told it of, finds it ended in every replay behind
// the call that was its last by then.
//
// # Where the server is
//
// What the options of a worker or a client leave open comes from the environment (KAGZI_ADDRESS,
// KAGZI_API_KEY_FILE, …), else from a profile of kagzi.toml, which the command line goes by as well
// (package profile), else it is the default: a server on this machine, without TLS and key.
//
// A server that asks for keys stops a worker that has none that is valid: Run returns the refusal,
// at first as well as when the key is revoked later. What it had in hand goes to another worker,
// like the runs of one that was lost.
//
// # Encryption
//
// With a Codec the server stores what it cannot read: see NewAESCodec. All workers and clients of a
// workflow type need the same one.
//
// # Long lives
//
// A run has at most 10,000 steps and records at most 64 MiB, its input included; past that it
// fails. One that goes on for ever returns ContinueAsNew from time to time: the next run begins
// with an empty history. Result and Run.Wait follow it.
//
// # Changing code
//
// A run goes on with the code of whichever worker takes it up. What it has recorded is found by the
// name of the call, not by its place. A new step runs also in a run that is past its place; one
// that is gone is left out; one with a new name runs again. A run fails where a name now stands for
// another kind of call (a step for a sleep), or where a recorded result does not fit its type; with
// the code put right, Run.Retry goes on from what is recorded.
//
// Where a run has to stay with what it began with, start it with a Version and branch on that of
// Info, give the new code a workflow type of its own, or bind the run to workers by Requirements.
// Worker.Run tells of a check of all open runs against a new build. It replays, and runs nothing,
// so it counts a new step that stands before a recorded call as a divergence too.
//
// # Suspension
//
// A run that sleeps, waits for a retry, a signal or a child, or has lost its lease is suspended:
// its code ends inside of the call that it makes, by runtime.Goexit, in every goroutine that calls
// the SDK or was started by it. To the code it looks as if the call never returned, and in the next
// stay it returns as if nothing had been. This cannot be prevented or swallowed:
//
//   - Deferred functions run, in their order, with ctx.Err() set (context.Canceled). In them recover returns nil.
//   - A call of the SDK in a deferred function ends that function there; the remaining deferred
//     functions still run. So a deferred step that cleans up runs when the workflow really returns,
//     and not when it is suspended.
//   - What the function returns, also through named results, is dropped. So is what goroutines do
//     that go on for a while: their next call of the SDK ends them.
//   - The code of a step is not suspended. Its context ends when the lease is lost; what it returns then is dropped.
//
// A deferred function should therefore only undo what the workflow function itself holds in memory.
// A goroutine of the author's own that never calls the SDK should end with ctx.Done().
package kagzi
