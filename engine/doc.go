// Package engine holds the terms and the rules of Kagzi. It does no I/O, knows no SQL and no
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
// # Glossary
//
//   - Run: one execution of a workflow. It is due when its AvailableAt has come, and open until it
//     has ended (RunStatus.Ended).
//   - Step: a unit of work that the run's code names and that is recorded, an attempt at a time;
//     the latest attempt says where it stands.
//   - Lease: a worker's right to write about a run for a while. A worker that is not heard from for that long is lost.
//   - Token: the random proof of a lease. Each claim makes a new one, so that a worker that was
//     lost can write nothing any more.
//   - Queue: a name under which runs wait and from which workers take them; a namespace has many.
//   - Lane: the runs of one queue with the same type, requirements and priority. The same workers
//     can take them, oldest due first.
//   - Worker: a process that has registered to run code; ONLINE, DRAINING or OFFLINE.
//   - Poller: a worker's place in package matching where it waits for runs, with credit for as many as it has free.
//   - Poller group: the pollers of workers that can take the same runs. They share one claim.
//   - Claim slot (ClaimSlot): one free slot of a worker, offered to a claim with the token that the lease shall have.
//   - Hand-off (Handoff, Match): a run given to a waiting poller in the transaction that makes it.
//     Also called sync match.
//   - Ticket: the place of a write among the writes of one run that are under way at the same time.
//   - Notification (Notifier): a hint that something may have changed. It may be lost or repeated;
//     only speed depends on it.
//   - Outcomes: what commits of this process came to, told without a read.
//   - Side effect (SideEffects): a run that a call began or ended though its answer does not tell, such as a child.
//   - Parked (Park): a run whose code can only wait for a timer, a signal, a child or a retry (its
//     Awaited steps). It holds no worker.
//   - Activation: one execution of a run's code by a worker, from a claim until the run ends, parks or loses its lease.
//   - Suspect: a worker that was silent for a lease. It is lost when it stays silent for another heartbeat.
//   - Successor: the new run that a run continues as, or that it is retried as.
//   - Throttled (Claimed.Limited): due runs wait because their queue or type has as many leases as its limit allows.
//   - Gated: a run waits because as many others as its ConcurrencyKey allows have leases.
//   - Paused: a person keeps the run back. While it is gated or paused it is never due; HeldAt
//     remembers when it would have been.
//   - Tick: a moment at which a Schedule fires, which starts a run.
//   - Capsule: an exported run: a file with a run, its family and their payloads, to be imported elsewhere.
//   - Override: the result that a person records for a step in place of its code.
//   - Pin (Pinned): keeps an ended run beyond its retention.
//   - Unit of work: what one operation of a store reads and changes in its transaction; each run is
//     read once and written once.
//   - Store logic (backends/internal/storelogic): the operations of a store that every backend shares.
//
// # Store
//
// Store is the contract that a backend fills: each of its methods is one transaction. Read it in
// this order: Runs (what clients ask for), Work (what a lease allows), Workers, Schedules,
// Namespaces, Keys, Views (reading), Upkeep (what the passing of time needs), Notifier.
//
// The rules (AfterStepFailed, AfterRunFailed, AfterLeaseLost, Park) are pure functions that the
// store logic calls inside its transactions, so that a decision exists once and needs no database
// to be tested.
//
// This package promises no compatibility; only proto and sdk do.
package engine
