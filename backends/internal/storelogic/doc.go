// Package storelogic holds the operations of the store that read before they write, once for all
// backends. An operation is a function over a Tx, the rows of one transaction, and decides by the
// rules of package engine. A backend provides the statements and embeds Operations, which opens the
// transactions. The operations that are called thousands of times a second (starts, claims, a new
// step's result, the end of a run that affects no other, heartbeats) are statements of each
// backend; they fall back to this package when the statement does not apply.
//
// Read tx.go first: what an operation can ask of a database. Then unit_of_work.go, which every
// operation begins with and flushes, and steps.go, lease.go and end.go, which most operations
// share. The answers to writes whose lease is over are in each operation's file or in repeat.go.
// The methods of engine.Store document what each operation promises.
package storelogic
