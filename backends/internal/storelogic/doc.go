// Package storelogic holds the operations of the store that read before they write, written once
// for all backends. An operation is a function over a Tx, the rows of one transaction, and decides
// by the rules of package engine; a backend adds the statements, and embeds Operations, which opens
// the transactions. The few operations that are called thousands of times a second (starts, claims,
// a new step's result, the end of a run that concerns nobody else, heartbeats) are statements of
// each backend, and come here only when those do not apply.
//
// Read tx.go first, which says what an operation can ask of a database, and unit_of_work.go, which
// every operation begins with and flushes; then steps.go, lease.go and end.go, which most others
// come down to. What an operation returns when its lease is over is in its own file or in
// repeat.go. The methods of engine.Store say what each operation promises.
package storelogic
