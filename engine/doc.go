// Package engine is the language of Kagzi: its words and its rules. It does no I/O, knows no SQL and no
// gRPC; everything else translates to it or from it.
//
// A Run is one execution of a workflow. It waits in a Queue until a Worker claims it, which gives the worker a
// Lease: the right to write about the run, proven by a random Token. What the run's code has achieved is kept as
// Steps; a result that was recorded is never computed again. A run moves like this:
//
//	            claim                   CompleteRun
//	PENDING ─────────────▶ RUNNING ───────────────────▶ COMPLETED
//	   ▲                   │ │ ▲ │      FailRun
//	   └── retry, lost ────┘ │ │ └────────────────────▶ FAILED
//	                    park │ │ claim
//	                         ▼ │
//	                      SLEEPING      CANCELLED, TIMED_OUT, TERMINATED: from PENDING, RUNNING and SLEEPING alike
//
// # Words
//
//   - A step is named by the run's code; a Step is one attempt of it, and the step's latest attempt says where it stands.
//   - A run is due when its AvailableAt has come. It is open until it has ended: RunStatus.Ended.
//   - A worker is lost when it was not heard from for its lease. Its runs are due again, under other tokens.
//   - A run is parked (Park) while its code can do nothing but wait: for a timer, a signal, a child or a retry. It holds no worker.
//   - What a parked run's code waits for are the steps that are Awaited.
//   - A run is gated while as many others as its ConcurrencyKey allows have leases, and paused while a person keeps it back.
//     Until that is over no moment makes it due; HeldAt remembers the one that would have.
//   - A lane is the runs of one queue that have the same type, requirements and priority: the same workers can take them, in the
//     order in which they are due.
//   - A tick is a moment at which a Schedule fires: it starts a run.
//   - A notification (Notifier) hints that something may have changed. It may be lost or repeated, and nothing depends on it but speed.
//   - A Turn is a write's place among those of one run that are under way at the same time.
//   - A grant is one free slot of a worker, offered to a claim; a Taker is a grant that a store uses in the commit that makes the run.
//
// # Store
//
// Store is the contract that a backend fills: each of its methods is one transaction. Read it in this order: Runs (what clients
// ask for), Work (what a lease allows), Workers, Schedules, Namespaces, Keys, Views (reading), Upkeep (what the passing of time
// needs), Notifier.
//
// The rules (AfterStepFailed, AfterRunFailed, AfterLeaseLost, Park) are pure functions that both backends call inside their
// transactions, so that a decision exists once and needs no database to be tested.
//
// This package promises no compatibility; only proto and sdk do.
package engine
