// Package storekit holds what the backends share beside the store logic: how columns are encoded as
// text, how notifications are handed to those who listen, how commits are counted, and how
// statements share a list of columns.
package storekit
