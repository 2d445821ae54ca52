//go:build !linux

package sqlite3

// SyncsData reports whether syncData is implemented.
const SyncsData = false

func syncData(uintptr) int32 { panic("syncing only data is not supported here") }
