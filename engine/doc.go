// Package engine is the language of Kagzi: its words and its rules. It does no I/O, knows no SQL and no
// gRPC; everything else translates to it or from it.
//
// A Run is one execution of a workflow. It waits in a Queue until a Worker claims it, which gives the worker a
// Lease: the right to write about the run, proven by a random Token. What the run's code has achieved is kept as
// Steps; a result that was recorded is never computed again. A run moves like this:
//
//	            claim                   CompleteRun
//	PENDING ─────────────▶ RUNNING ───────────────────▶ COMPLETED
//	   ▲  ▲                 │ │ │     FailRun
//	   │  └── retry, lost ──┘ │ └─────────────────────▶ FAILED
//	   │                      │ Sleep
//	   └─ (claimed directly) SLEEPING          CANCELLED, TERMINATED, TIMED_OUT: from any of the three
//
// Store is the contract that a backend fills: each of its methods is one transaction. The rules (AfterStepFailed,
// AfterRunFailed, AfterLeaseLost, Park) are pure functions that both backends call inside their transactions, so that
// a decision exists once and needs no database to be tested.
//
// This package promises no compatibility; only proto and sdk do.
package engine
