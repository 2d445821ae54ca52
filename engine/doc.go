// Package engine holds the terms and the rules of Kagzi. It does no I/O and knows no SQL and no
// gRPC; all other packages translate to its types or from them.
//
// A Run is one execution of a workflow. It waits in a Queue until a Worker claims it. The claim
// gives the worker a Lease: the right to write about the run, proven by a random Token. Steps
// record the results of the run's code; a recorded result is never computed again. These are the
// states of a run:
//
//	            claim                   CompleteRun
//	PENDING ─────────────▶ RUNNING ───────────────────▶ COMPLETED
//	   ▲                   │ │ ▲ │      FailRun
//	   └── retry, lost ────┘ │ │ └────────────────────▶ FAILED
//	                    park │ │ claim
//	                         ▼ │
//	                      SLEEPING      CANCELLED, TIMED_OUT, TERMINATED: from PENDING, RUNNING and SLEEPING alike
//
// # Glossary
//
//   - Run: one execution of a workflow. It is due once its AvailableAt has come, and open until it
//     has ended (RunStatus.Ended).
//   - Step: a unit of work that the run's code names and whose attempts are recorded. The latest
//     attempt holds the step's state.
//   - Lease: a worker's right to write about a run for a limited time. A worker that is not heard
//     from for that time is lost.
//   - Token: the random proof of a lease. Each claim makes a new one, so a lost worker cannot write
//     any more.
//   - Queue: a name under which runs wait for workers; a namespace has many.
//   - Lane: the runs of one queue with the same type, requirements and priority. The same workers
//     can take them, oldest due first.
//   - Worker: a process that has registered to run code; ONLINE, DRAINING or OFFLINE.
//   - Poller: a worker that waits for runs in package matching, with one credit for each free slot.
//   - Poller group: the pollers of workers that can take the same runs. They share one claim.
//   - Claim slot (ClaimSlot): one free slot of a worker, offered to a claim with the token for the
//     new lease.
//   - Hand-off (Handoff, Match): a run given to a waiting poller in the transaction that makes it.
//     Also called sync match.
//   - Ticket: the place of a write among concurrent writes of one run.
//   - Notification (Notifier): a hint that something may have changed. It may be lost or repeated;
//     only latency depends on it.
//   - Outcomes: the results of this process's commits, known without a read.
//   - Side effect (SideEffects): a run that a call began or ended and that its answer does not
//     tell, such as a child.
//   - Parked (Park): a run whose code can only wait for a timer, a signal, a child or a retry (its
//     Awaited steps). No worker holds it.
//   - Activation: one execution of a run's code by a worker, from a claim until the run ends, parks
//     or loses its lease.
//   - Suspect: a worker that was silent for a lease. It is lost if it stays silent for another
//     heartbeat.
//     A run is a suspect (Run.Suspect) while it may have killed its worker.
//   - Successor: the new run that a run continues as, or that RetryRun makes from it.
//   - Throttled (Claimed.Limited): due runs wait because their queue or type has as many leases as
//     its limit allows.
//   - Gated: a run waits because as many places of its ConcurrencyKey are taken as its limit allows.
//   - Paused: a person keeps the run from workers. A gated or paused run is never due; HeldAt holds
//     when it would be. Pausing: it is to be paused when its worker has recorded what runs.
//   - Tick: a time at which a Schedule fires, which starts a run.
//   - Capsule: an exported run: a file with a run, its related runs and their payloads, to be
//     imported elsewhere.
//   - Override: a result that a person records for a step in place of its code.
//   - Pin (Pinned): keeps an ended run beyond its retention.
//   - Unit of work: what one operation of a store reads and changes in its transaction. Each run is
//     read once and written once.
//   - Store logic (backends/internal/storelogic): the operations of a store that all backends
//     share.
//
// # Store
//
// Store is the contract that a backend implements: each of its methods is one transaction. Read it
// in this order: Runs (calls of clients), Work (calls of workers), Workers, Schedules, Namespaces,
// Keys, Views (reading), Upkeep (calls of the coordinator), Notifier.
//
// The rules (AfterStepFailed, AfterRunFailed, AfterLeaseLost, Park) are pure functions that the
// store logic calls inside its transactions, so that each decision has one place and can be tested
// without a database.
//
// This package promises no compatibility; only proto and sdk do.
package engine
