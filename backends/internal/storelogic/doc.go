// Package storelogic holds the verbs of the store that look before they write, written once for both databases. A verb is a function over a Tx,
// the rows of one transaction, and decides with the rules of package engine; what a backend adds is statements. The few verbs that are
// asked thousands of times a second (starts, claims, a new step's result, an untied run's end, heartbeats) have statements of
// their own in each backend, and come here only when those do not apply.
//
// Read tx.go first, which says what a verb can ask of a database, and book.go, which every verb opens and closes; then steps.go, lease.go and
// end.go, which most others come down to. What a verb answers when its lease is over stands beside it or in repeat.go. What each verb
// promises is said by its method of engine.Store.
package storelogic
