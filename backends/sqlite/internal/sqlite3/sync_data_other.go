//go:build !linux

package sqlite3

// SyncsData reports whether syncData is implemented.
const SyncsData = false

func syncData(uintptr) int32 { panic("no way to sync only data is known here") }
