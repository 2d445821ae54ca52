// Package model holds the data that the screens show: a live view of one server and namespace,
// updated by the server's streams. It does not depend on the terminal.
//
// Every object belongs to the UI goroutine. Calls run in their own goroutines and deliver their
// results through post, so there are no locks. The result of a cancelled call is dropped. The
// caller that creates an object closes it; Close waits for the object's goroutines.
//
// Start with link.go: a Link follows one namespace and publishes its changes, and all models
// subscribe to one. base.go and tasks.go hold what models share, reader.go reloads data after a
// change, and follower.go keeps a stream open. Lists that are loaded whole are in list.go and
// lists.go; the list of runs, which can be of any length, in runs*.go and window.go; one run in
// run.go and lanes.go; any other single object in item.go. action*.go holds what people can do.
package model
