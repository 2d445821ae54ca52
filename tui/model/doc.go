// Package model owns what the screens show: the live data of one server and namespace, kept up to
// date by what the server tells. It knows no terminal.
//
// Every object belongs to one goroutine, that of the screens. Calls to the server run in goroutines
// of their own and hand over what came of them through post, so there are no locks. An answer to a
// question that nobody asks any more is dropped. Whoever makes an object closes it; closing waits
// for its goroutines.
//
// Begin with link.go: a Link follows one namespace and tells what changes there, and all models
// hang on one. What they are made of is in base.go and tasks.go, how something is read again when
// it has changed in reader.go, and how a stream is kept open in follower.go. Lists that are loaded
// whole are in list.go and lists.go; the list of runs, which may be of any length, in runs*.go and
// window.go; one run in run.go and lanes.go; any other one thing in item.go. What people do to
// things is in action*.go.
package model
