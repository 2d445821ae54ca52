// Package storekit holds what the backends share in addition to the store logic: text encodings of
// columns, delivery of notifications to listeners, counts of commits, and column lists that
// statements share.
package storekit
